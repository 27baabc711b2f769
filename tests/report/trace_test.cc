#include "report/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/drift.h"
#include "report/html_report.h"
#include "report/recorder.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;

// A lane after the other; every slice takes what it is predicted to, times `factor` of its lane.
Timeline timeline_of(const Schedule& schedule, const std::vector<double>& factors) {
  Timeline timeline;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    timeline.lanes.emplace_back();
    double at = 0.5;
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      const auto slice = static_cast<int>(i);
      for (const Wait& wait : schedule.lanes[lane][i].waits) {
        timeline.lanes[lane].push_back({SpanKind::kWait, slice, wait, at, at + 1});
        at += 1;
      }
      const double end = at + factors[lane] * schedule.lanes[lane][i].predicted_us;
      timeline.lanes[lane].push_back({SpanKind::kSlice, slice, {}, at, end});
      at = end;
    }
    timeline.makespan_us = std::max(timeline.makespan_us, at);
  }
  return timeline;
}

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() : graph_(testing::random_graph(random_, 20)) {
    schedule_ = testing::random_schedule(random_, graph_, 2);
    for (auto& lane : schedule_.lanes) {
      for (ScheduledSlice& slice : lane) {
        slice.predicted_us = static_cast<double>(random_.integer(2, 40));
      }
    }
  }
  Trace trace() const {
    const std::vector<std::string> lanes = {"cpu", "gpu"};
    Trace trace{"net", "joint", "svm", R"({"date":"today"})", R"({"median":1.5})", lanes, {}, {}};
    trace.measured = trace_timeline(graph_, schedule_, lanes, timeline_of(schedule_, {1.5, 1}));
    trace.predicted = trace_timeline(graph_, schedule_, lanes, timeline_of(schedule_, {1, 1}));
    return trace;
  }

  Random random_{4};
  Graph graph_;
  Schedule schedule_;
};

TEST_F(TraceTest, ComesBackFromPerfetto) {
  const Trace written = trace();
  const auto read = from_perfetto(to_perfetto(written), "t");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->model, written.model);
  EXPECT_EQ(read->strategy, written.strategy);
  EXPECT_EQ(read->sync, written.sync);
  EXPECT_EQ(read->conditions, written.conditions);
  EXPECT_EQ(read->times, written.times);
  EXPECT_EQ(read->lanes, written.lanes);
  for (const auto part : {&Trace::measured, &Trace::predicted}) {
    ASSERT_EQ((*read.*part).size(), 2U);
    for (int lane = 0; lane < 2; ++lane) {
      const std::vector<TraceSpan>& before = (written.*part)[lane];
      const std::vector<TraceSpan>& after = (*read.*part)[lane];
      ASSERT_EQ(after.size(), before.size());
      for (size_t i = 0; i < after.size(); ++i) {
        EXPECT_EQ(after[i].kind, before[i].kind);
        EXPECT_EQ(after[i].name, before[i].name);
        EXPECT_EQ(after[i].op, before[i].op);
        EXPECT_EQ(after[i].slice, before[i].slice);
        EXPECT_NEAR(after[i].begin_us, before[i].begin_us, 1e-3);
        EXPECT_NEAR(after[i].end_us, before[i].end_us, 1e-3);
        EXPECT_EQ(after[i].after, before[i].after);
      }
    }
  }
}

TEST_F(TraceTest, RefusesWhatIsNone) {
  const std::string whole = to_perfetto(trace());
  for (size_t size = 0; size < whole.size(); size += 1 + size / 50) {
    const auto read = from_perfetto(whole.substr(0, size), "my.trace");
    // Cut between two packets it may still be a trace, of less.
    if (read.ok()) continue;
    EXPECT_EQ(read.status().code(), StatusCode::kCorrupt);
    EXPECT_THAT(read.status().message(), HasSubstr("my.trace"));
  }
  EXPECT_FALSE(from_perfetto("", "t").ok());
}

TEST_F(TraceTest, NamesCannotBreakTheReport) {
  Trace evil = trace();
  evil.model = "<script>alert(\"&\")</script>";
  evil.measured[0][0].name = "</title></svg>";
  const std::string page = html_report(evil);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&quot;&amp;&quot;)"));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;/svg&gt;"));
}

TEST_F(TraceTest, DriftIsTheRatioOfEachLane) {
  const std::vector<Timeline> runs = {timeline_of(schedule_, {9, 9}),
                                      timeline_of(schedule_, {1.5, 1}),
                                      timeline_of(schedule_, {0.1, 0.1})};
  const std::vector<LaneDrift> lanes = drift(schedule_, timeline_of(schedule_, {1, 1}), runs);
  EXPECT_NEAR(lanes[0].ratio(), 1.5, 1e-9);
  EXPECT_NEAR(lanes[1].ratio(), 1, 1e-9);
  const std::string text = drift_text(graph_, {"cpu", "gpu"}, lanes);
  EXPECT_THAT(text, HasSubstr("lane cpu takes 1.50x"));
  EXPECT_EQ(text.find("gpu"), std::string::npos);
  EXPECT_EQ(drift_text(graph_, {"cpu", "gpu"}, lanes, 0.6), "");
  // A lane that is faster than predicted is as far off.
  const auto fast =
      drift(schedule_, timeline_of(schedule_, {1, 1}), {timeline_of(schedule_, {0.5, 1})});
  // So is one that was to be slowed down by the others and is not.
  const auto alone =
      drift(schedule_, timeline_of(schedule_, {2, 1}), {timeline_of(schedule_, {1, 1})});
  EXPECT_NEAR(alone[0].ratio(), 0.5, 1e-9);
  EXPECT_THAT(drift_text(graph_, {"cpu", "gpu"}, fast), HasSubstr("lane cpu takes 0.50x"));
}

TEST(Recorder, TypicalIsTheMedian) {
  Recorder recorder;
  EXPECT_EQ(recorder.typical(), nullptr);
  for (const double us : {5.0, 1.0, 3.0}) {
    Timeline timeline;
    timeline.makespan_us = us;
    recorder.recorded({}, timeline);
  }
  EXPECT_EQ(recorder.typical()->makespan_us, 3);
}

}  // namespace
}  // namespace tandem
