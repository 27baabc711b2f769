// What executors record, on plain threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/protocol/fake_bench.h"
#include "tests/runtime/protocol/lane_setups.h"
#include "tests/runtime/timeline_recorder.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using testing::FakeBench;
using ::testing::HasSubstr;
using testing::LaneSetup;
using testing::Random;
using testing::random_graph;
using testing::random_schedule;
using testing::TimelineRecorder;
using testing::violation_of;

class TimelinesTest : public ::testing::TestWithParam<LaneSetup> {};

// What is recorded never contradicts the schedule, whether a run is recorded does not show in its
// results, and runs that the tracer does not want are not.
TEST_P(TimelinesTest, NeverViolateTheSchedule) {
  const LaneSetup& setup = GetParam();
  for (uint64_t seed = 100; seed < 104; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(2, 40)));
    FakeBench bench(setup.cpu_lanes, setup.queue_lanes, setup.feeder, setup.memory);
    const auto recorder = std::make_shared<TimelineRecorder>();
    ExecutorOptions options;
    options.sync.mechanism = setup.mechanism;
    options.sync.device_spin_limit = 60s;
    options.deadline = 60s;
    options.tracer = recorder;
    bench.prepare(graph, random_schedule(random, graph, setup.cpu_lanes + setup.queue_lanes),
                  options);
    for (int run = 0; run < 4; ++run) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " run " + std::to_string(run));
      recorder->wanted = run != 1;
      bench.expect_right(random);
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(recorder->timelines.size(), 3U);
    for (const Timeline& timeline : recorder->timelines) {
      ASSERT_EQ(violation_of(graph, bench.schedule, timeline), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, TimelinesTest, ::testing::ValuesIn(testing::kLaneSetups),
                         [](const auto& info) { return info.param.name; });

// Operators that alternate between a CPU lane and a queue, each of which takes some time.
class SlowChain {
 public:
  explicit SlowChain(SyncMechanism mechanism) : bench_(1, 1, Feeder::kOwnThread) {
    TensorId x = graph_.add_input("x", DataType::kFloat32, {4, 32});
    for (int i = 0; i < 3; ++i) x = graph_.add("", UnaryAttributes{}, {x}).value();
    graph_.mark_output(x);
    Schedule schedule;
    schedule.lanes.resize(2);
    for (int op = 0; op < 3; ++op) schedule.lanes[op % 2].push_back({.slice = {.op = op}});
    EXPECT_TRUE(derive_waits(graph_, &schedule).ok());
    const auto slow = [](const Slice&) {
      std::this_thread::sleep_for(20ms);
      return Status();
    };
    bench_.cpus[0]->faults.set(slow);
    bench_.queues[0]->device_faults.set(slow);
    ExecutorOptions options;
    options.sync.mechanism = mechanism;
    options.sync.device_spin_limit = 60s;
    options.tracer = recorder_;
    bench_.prepare(graph_, schedule, options);
  }
  Timeline run() {
    recorder_->timelines.clear();
    bench_.expect_right(random_);
    return recorder_->timelines.empty() ? Timeline{} : recorder_->timelines[0];
  }
  const Graph& graph() const { return graph_; }
  const Schedule& schedule() const { return bench_.schedule; }

 private:
  Graph graph_;
  FakeBench bench_;
  std::shared_ptr<TimelineRecorder> recorder_ = std::make_shared<TimelineRecorder>();
  Random random_{1};
};

// A lane that waits shows a span for as long, with what it waits for.
TEST(Timelines, ShowWaits) {
  for (const SyncMechanism mechanism :
       {SyncMechanism::kSvm, SyncMechanism::kEvent, SyncMechanism::kFinish}) {
    SCOPED_TRACE(to_string(mechanism));
    SlowChain chain(mechanism);
    EXPECT_EQ(crossings(chain.schedule()).size(), 2U);
    EXPECT_EQ(crossings(chain.schedule())[0], (Crossing{1, 0, 0, 1}));
    // Whoever comes late, because the machine has other work, need not wait.
    std::vector<double> longest(2, 0);
    for (int attempt = 0; attempt < 50 && std::min(longest[0], longest[1]) < 10'000; ++attempt) {
      const Timeline timeline = chain.run();
      ASSERT_EQ(violation_of(chain.graph(), chain.schedule(), timeline), "");
      for (int lane = 0; lane < 2; ++lane) {
        for (const Span& span : timeline.lanes[lane]) {
          if (span.kind != SpanKind::kWait) continue;
          longest[lane] = std::max(longest[lane], span.us());
          EXPECT_EQ(span.slice, lane == 0 ? 1 : 0);
          EXPECT_EQ(span.wait, (Wait{1 - lane, 1}));
        }
      }
    }
    EXPECT_GE(longest[0], 10'000);
    EXPECT_GE(longest[1], 10'000);
  }
}

// What judges timelines finds what is wrong with them.
TEST(Timelines, ViolationsAreSeen) {
  SlowChain chain(SyncMechanism::kSvm);
  const Timeline right = chain.run();
  const auto after = [&](const auto& change) {
    Timeline wrong = right;
    change(wrong);
    return violation_of(chain.graph(), chain.schedule(), wrong);
  };
  const auto slice = [](Timeline& timeline, int lane, int index) -> Span& {
    return *std::find_if(
        timeline.lanes[lane].begin(), timeline.lanes[lane].end(),
        [index](const Span& span) { return span.kind == SpanKind::kSlice && span.slice == index; });
  };
  const auto wait = [](Timeline& timeline, int lane) -> Span& {
    return *std::find_if(timeline.lanes[lane].begin(), timeline.lanes[lane].end(),
                         [](const Span& span) { return span.kind == SpanKind::kWait; });
  };
  ASSERT_EQ(after([](Timeline&) {}), "");
  EXPECT_THAT(after([](Timeline& t) { t.lanes.pop_back(); }), HasSubstr("not its lanes"));
  EXPECT_THAT(after([](Timeline& t) { t.lanes[0].clear(); }), HasSubstr("slice 0 is missing"));
  EXPECT_THAT(after([](Timeline& t) { t.makespan_us /= 2; }), HasSubstr("after the run"));
  EXPECT_THAT(after([&](Timeline& t) { slice(t, 0, 1).begin_us = slice(t, 0, 0).begin_us; }),
              HasSubstr("before what came before"));
  EXPECT_THAT(after([&](Timeline& t) { std::swap(slice(t, 0, 0).slice, slice(t, 0, 1).slice); }),
              HasSubstr("not the next one"));
  EXPECT_THAT(after([&](Timeline& t) { slice(t, 1, 0).begin_us = slice(t, 0, 0).begin_us; }),
              HasSubstr("which it reads"));
  EXPECT_THAT(after([&](Timeline& t) { wait(t, 0).end_us = wait(t, 0).begin_us; }),
              HasSubstr("ends before them"));
  EXPECT_THAT(after([&](Timeline& t) { wait(t, 0).wait.count = 2; }),
              HasSubstr("not the schedule's"));
  EXPECT_THAT(after([&](Timeline& t) { wait(t, 0).end_us = slice(t, 0, 1).end_us; }),
              HasSubstr("ends after its begin"));
}

}  // namespace
}  // namespace tandem
