#include "report/predicted_timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "report/gantt.h"
#include "schedule/plan.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::Random;
using testing::random_graph;
using testing::random_schedule;

// Random costs; lane 1 is fed by lane 0.
class Costs : public CostModel {
 public:
  Costs(Random& random, int lanes)
      : random_(&random), crossings_(lanes, std::vector<double>(lanes)) {
    for (auto& row : crossings_) {
      for (double& us : row) us = random.real(0, 5);
    }
    enqueue_us_of_gpu = random.real(0, 3);
    command_us_of_gpu = random.real(0, 2);
  }
  double slice_us(int lane, const Slice& slice, int) const override {
    const auto [entry, fresh] = slices.try_emplace({lane, slice.op, slice.axis, slice.begin}, 0);
    if (fresh) entry->second = random_->real(3, 20);
    return entry->second;
  }
  double crossing_us(int from, int to) const override { return crossings_[from][to]; }
  double command_us(int lane) const override { return lane == 1 ? command_us_of_gpu : 0; }
  double enqueue_us(int lane) const override { return lane == 1 ? enqueue_us_of_gpu : 0; }
  double latency_us(int from, int to) const {
    return std::max(0.0, crossings_[from][to] - command_us(from) - command_us(to));
  }

  double enqueue_us_of_gpu = 0;
  double command_us_of_gpu = 0;
  mutable std::map<std::tuple<int, OperatorId, int, int64_t>, double> slices;

 private:
  Random* random_;
  std::vector<std::vector<double>> crossings_;
};

struct Case {
  explicit Case(uint64_t seed) : random(seed), graph(random_graph(random, 25)), costs(random, 3) {
    schedule = random_schedule(random, graph, 3);
    problem.graph = &graph;
    problem.cost = &costs;
    problem.lanes = {{"cpu0"}, {"gpu", true, 0}, {"cpu1"}};
  }
  Timeline timeline() const {
    return predicted_timeline(problem, schedule, evaluate_schedule(problem, schedule).value());
  }

  Random random;
  Graph graph;
  Costs costs;
  Schedule schedule;
  Problem problem;
};

using Ends = std::vector<std::vector<double>>;

// Of each slice, whether slices of other lanes read what it makes.
std::vector<std::vector<bool>> awaited(const Case& c, const Dependencies& dependencies) {
  std::vector<std::vector<bool>> result;
  for (const auto& lane : c.schedule.lanes) result.emplace_back(lane.size(), false);
  for (size_t lane = 0; lane < result.size(); ++lane) {
    for (const ScheduledSlice& scheduled : c.schedule.lanes[lane]) {
      for (const Position maker : dependencies.of(scheduled.slice)) {
        if (maker.lane != static_cast<int>(lane)) result[maker.lane][maker.index] = true;
      }
    }
  }
  return result;
}

// When slices end by the rules of docs/scheduling.md, from regions that are read, without modes and
// without waits; found by trying again until nothing changes, whatever the order.
Ends relaxed_ends(const Case& c) {
  const Dependencies dependencies(c.graph, c.schedule);
  const auto is_awaited = awaited(c, dependencies);
  Ends ends;
  for (const auto& lane : c.schedule.lanes) ends.emplace_back(lane.size(), 0);
  const double fed = c.costs.enqueue_us(1) * static_cast<double>(c.schedule.lanes[1].size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      const double free_from[] = {fed, c.costs.enqueue_us(1), 0};
      for (size_t i = 0; i < ends[lane].size(); ++i) {
        const Slice& slice = c.schedule.lanes[lane][i].slice;
        const auto l = static_cast<int>(lane);
        double begin = i > 0 ? ends[lane][i - 1] : free_from[lane];
        std::set<int> others;
        for (const Position maker : dependencies.of(slice)) {
          if (maker.lane != l) others.insert(maker.lane);
          const double latency = maker.lane == l ? 0 : c.costs.latency_us(maker.lane, l);
          begin = std::max(begin, ends[maker.lane][maker.index] + latency);
        }
        const double commands = c.costs.command_us(l) * (static_cast<double>(others.size()) +
                                                         (is_awaited[lane][i] ? 1 : 0));
        const double end =
            begin + commands + std::max(c.costs.slice_us(l, slice, 0), c.costs.enqueue_us(l));
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
    const Timeline timeline = c.timeline();
    const Ends ends = relaxed_ends(c);
    const auto is_awaited = awaited(c, Dependencies(c.graph, c.schedule));
    double makespan = 0;
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      size_t slices = 0;
      double free = 0;
      for (const Span& span : timeline.lanes[lane]) {
        EXPECT_GE(span.begin_us, free) << to_string(span.kind);
        EXPECT_GE(span.us(), 0) << to_string(span.kind);
        free = span.end_us;
        if (span.kind != SpanKind::kSlice) continue;
        const double signal =
            is_awaited[lane][span.slice] ? c.costs.command_us(static_cast<int>(lane)) : 0;
        EXPECT_NEAR(span.end_us + signal, ends[lane][span.slice], 1e-9);
        const Slice& slice = c.schedule.lanes[lane][span.slice].slice;
        EXPECT_NEAR(span.us(), c.costs.slice_us(static_cast<int>(lane), slice, 0), 1e-9);
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
    const Timeline before = c.timeline();
    const auto critical = critical_slices(c.schedule, before);
    int tried = 0;
    for (size_t lane = 0; lane < critical.size(); ++lane) {
      for (size_t i = 0; i < critical[lane].size(); ++i) {
        if (!critical[lane][i]) continue;
        const Slice& slice = c.schedule.lanes[lane][i].slice;
        double& us = c.costs.slices.at({static_cast<int>(lane), slice.op, slice.axis, slice.begin});
        us += 0.125;
        const Timeline after = c.timeline();
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
