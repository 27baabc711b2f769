#include "report/predicted_timeline.h"

#include <gtest/gtest.h>

#include "report/gantt.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::Random;
using testing::random_graph;
using testing::random_schedule;

// Random costs; lane 1 is fed by lane 0.
class Costs : public CostModel {
 public:
  Costs(Random& random, int lanes) : crossings_(lanes, std::vector<double>(lanes)) {
    for (auto& row : crossings_) {
      for (double& us : row) us = random.real(0, 5);
    }
    enqueue_us_of_gpu = random.real(0, 3);
  }
  double slice_us(int, const Slice&, int) const override { return 0; }
  double crossing_us(int from, int to) const override { return crossings_[from][to]; }
  double enqueue_us(int lane) const override { return lane == 1 ? enqueue_us_of_gpu : 0; }

  double enqueue_us_of_gpu = 0;

 private:
  std::vector<std::vector<double>> crossings_;
};

struct Case {
  explicit Case(uint64_t seed) : random(seed), graph(random_graph(random, 25)), costs(random, 3) {
    schedule = random_schedule(random, graph, 3);
    for (auto& lane : schedule.lanes) {
      for (ScheduledSlice& slice : lane) slice.predicted_us = random.real(0, 20);
    }
    problem.graph = &graph;
    problem.cost = &costs;
    problem.lanes = {{"cpu0"}, {"gpu", true, 0}, {"cpu1"}};
  }

  Random random;
  Graph graph;
  Costs costs;
  Schedule schedule;
  Problem problem;
};

using Ends = std::vector<std::vector<double>>;

// When slices end by the rules as the header states them, found by trying again until nothing
// changes, whatever the order.
Ends relaxed_ends(const Case& c) {
  Ends ends;
  for (const auto& lane : c.schedule.lanes) ends.emplace_back(lane.size(), 0);
  const double fed = c.costs.enqueue_us(1) * static_cast<double>(c.schedule.lanes[1].size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      for (size_t i = 0; i < ends[lane].size(); ++i) {
        const ScheduledSlice& slice = c.schedule.lanes[lane][i];
        double begin = i > 0 ? ends[lane][i - 1] : lane == 0 ? fed : 0;
        for (const Wait& wait : slice.waits) {
          begin = std::max(begin, ends[wait.lane][wait.count - 1]) +
                  c.costs.crossing_us(wait.lane, static_cast<int>(lane));
        }
        if (lane == 1) begin = std::max(begin, static_cast<double>(i + 1) * c.costs.enqueue_us(1));
        const double end = begin + slice.predicted_us;
        changed = changed || end != ends[lane][i];
        ends[lane][i] = end;
      }
    }
  }
  return ends;
}

TEST(PredictedTimeline, FollowsTheRules) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Case c(seed);
    const Timeline timeline = predicted_timeline(c.problem, c.schedule);
    const Ends ends = relaxed_ends(c);
    double makespan = 0;
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      size_t slices = 0;
      double free = 0;
      for (const Span& span : timeline.lanes[lane]) {
        EXPECT_GE(span.begin_us, free) << to_string(span.kind);
        free = span.end_us;
        if (span.kind != SpanKind::kSlice) continue;
        EXPECT_NEAR(span.end_us, ends[lane][span.slice], 1e-9);
        EXPECT_NEAR(span.us(), c.schedule.lanes[lane][span.slice].predicted_us, 1e-9);
        ++slices;
      }
      EXPECT_EQ(slices, ends[lane].size());
      for (const double end : ends[lane]) makespan = std::max(makespan, end);
    }
    EXPECT_NEAR(timeline.makespan_us, makespan, 1e-9);
  }
}

// A slice on a critical path that takes longer makes the run as much longer.
TEST(PredictedTimeline, SlowerCriticalSlicesDelayTheEnd) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Case c(seed);
    c.costs.enqueue_us_of_gpu = 0;
    const Timeline before = predicted_timeline(c.problem, c.schedule);
    const auto critical = critical_slices(c.schedule, before);
    int tried = 0;
    for (size_t lane = 0; lane < critical.size(); ++lane) {
      for (size_t i = 0; i < critical[lane].size(); ++i) {
        if (!critical[lane][i]) continue;
        double& us = c.schedule.lanes[lane][i].predicted_us;
        us += 0.125;
        const Timeline after = predicted_timeline(c.problem, c.schedule);
        us -= 0.125;
        EXPECT_NEAR(after.makespan_us, before.makespan_us + 0.125, 1e-9);
        ++tried;
      }
    }
    EXPECT_GT(tried, 0);
  }
}

TEST(Gantt, DrawsWhatIsThere) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {4, 32});
  const TensorId a = graph.add("first", UnaryAttributes{}, {x}).value();
  graph.mark_output(graph.add("second", UnaryAttributes{}, {a}).value());
  Schedule schedule;
  schedule.lanes = {{{.slice = {.op = 0}}}, {{.slice = {.op = 1}}}};
  Timeline timeline;
  timeline.lanes = {{{SpanKind::kSlice, 0, {}, 0, 500}},
                    {{SpanKind::kWait, 0, {0, 1}, 0, 500}, {SpanKind::kSlice, 0, {}, 500, 1000}}};
  timeline.makespan_us = 1000;
  EXPECT_EQ(gantt(graph, schedule, timeline, {"cpu", "gpu"}, 26),
            "cpu |[first===]          |\n"
            "gpu |..........[second==]|\n"
            "     0           1.000 ms\n");
  timeline.makespan_us = 0;
  EXPECT_EQ(gantt(graph, schedule, timeline, {"cpu", "gpu"}, 26), "");
}

}  // namespace
}  // namespace tandem
