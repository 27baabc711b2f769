#include "schedule/choose_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

namespace tandem {
namespace {

// Times with the steps of tiles, by lane; contention and threads where asked for.
class TiledModel : public CostModel {
 public:
  struct LaneSpeed {
    double us_per_tile = 1;
    int64_t tile = 16;  // elements of the cut axis
    double overhead = 0;
    Contention contention{};
    double us_per_thread = 0;
  };
  TiledModel(const Graph& graph, std::vector<LaneSpeed> lanes) : graph_(graph), lanes_(lanes) {}

  double slice_us(int lane, const Slice& slice, int threads = 0) const override {
    const LaneSpeed& speed = lanes_[lane];
    const Dims& dims = graph_.output_of(slice.op).dims;
    double tiles = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool cut = !slice.whole() && static_cast<int>(axis) == slice.axis;
      const int64_t extent = cut ? slice.end - slice.begin : dims[axis];
      tiles *= std::ceil(static_cast<double>(extent) / static_cast<double>(speed.tile));
    }
    const int team = threads == 0 ? kThreads : threads;
    return speed.overhead + speed.us_per_tile * tiles / team + speed.us_per_thread * team;
  }
  Contention contention(int lane, const Slice&) const override { return lanes_[lane].contention; }
  double crossing_us(int from, int to) const override { return from == 1 && to == 0 ? 3 : 2; }
  double enqueue_us(int lane) const override { return lane == 1 ? 4 : 0; }
  StartCosts start(int lane, int host) const override {
    return start_costs ? *start_costs : CostModel::start(lane, host);
  }
  std::optional<StartCosts> start_costs;

  static constexpr int kThreads = 4;

 private:
  const Graph& graph_;
  std::vector<LaneSpeed> lanes_;
};

Graph linear(int64_t rows, int64_t features) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {rows, 64});
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {64, features}));
  graph.mark_output(graph.add("linear", LinearAttributes{}, {x, w}).value());
  return graph;
}

Problem problem_of(const Graph& graph, const CostModel& cost) {
  Problem problem{&graph, {{"cpu", false}, {"gpu", true, 0}}, &cost};
  problem.lanes[0].max_threads = TiledModel::kThreads;
  return problem;
}

// Of cutting at `at`, without contention, by the documented rules.
double split_us(const CostModel& cost, const PartitionAxis& axis, int64_t at, int64_t extent) {
  const StartCosts start = cost.start(1, 0);
  double cpu = std::numeric_limits<double>::infinity();
  for (int threads : {1, 2, 4}) {
    cpu = std::min(cpu, start.host_us + cost.slice_us(0, {0, axis.axis, 0, at}, threads));
  }
  return std::max(cpu, start.queue_us + cost.slice_us(1, {0, axis.axis, at, extent}));
}

class BestSplit : public ::testing::TestWithParam<bool> {};

TEST_P(BestSplit, NothingIsBetter) {
  const bool with_start_costs = GetParam();
  for (const int64_t rows : {1, 50, 512}) {
    for (const int64_t features : {48, 200, 1000}) {
      for (const double ratio : {0.1, 0.9, 3.0}) {
        for (const double us_per_thread : {0.0, 5.0}) {
          const Graph graph = linear(rows, features);
          TiledModel cost(graph, {{0.7, 32, 1, {}, us_per_thread}, {0.7 * ratio, 48, 2}});
          if (with_start_costs) cost.start_costs = {5, 20};
          double best = cost.start(1, 0).queue_us + cost.slice_us(1, {.op = 0});
          for (int threads : {1, 2, 4}) {
            best = std::min(best, cost.slice_us(0, {.op = 0}, threads));
          }
          for (const PartitionAxis& axis : partition_axes(graph, 0)) {
            const int64_t extent = graph.output_of(0).dims[axis.axis];
            for (int64_t at = axis.granularity; at < extent; at += axis.granularity) {
              best = std::min(best, split_us(cost, axis, at, extent));
            }
          }
          const Split split = choose_split(problem_of(graph, cost), 0);
          EXPECT_NEAR(split.end_us, best, 1e-9) << rows << "x" << features << " " << ratio;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(StartCosts, BestSplit, ::testing::Bool());

// Unless a model says otherwise, starting costs what going on does.
TEST(ChooseSplit, StartCostsAreThoseOfEnqueueingAndSeeing) {
  const Graph graph = linear(1, 64);
  const TiledModel cost(graph, {{}, {}});
  EXPECT_EQ(cost.start(1, 0), (StartCosts{4, 4 + 3}));
  EXPECT_EQ(cost.start(1, kNone), (StartCosts{4, 4}));
}

// Half of it on each lane would be faster if the device were awake.
TEST(ChooseSplit, WhatIsFasterThanADeviceStartsIsNotDivided) {
  const Graph graph = linear(1, 256);
  TiledModel cost(graph, {{4, 16}, {1, 16}});
  ASSERT_EQ(choose_split(problem_of(graph, cost), 0).parts.size(), 2u);
  cost.start_costs = {10, 45};
  const Split split = choose_split(problem_of(graph, cost), 0);
  ASSERT_EQ(split.parts.size(), 1u);
  EXPECT_EQ(split.parts[0].lane, 0);
}

TEST(ChooseSplit, PartsCoverTheOperatorAtTheGranularity) {
  const Graph graph = linear(50, 1000);
  const TiledModel cost(graph, {{1, 16, 1}, {0.4, 16, 1}});
  const Split split = choose_split(problem_of(graph, cost), 0);
  ASSERT_EQ(split.parts.size(), 2u);
  Schedule schedule;
  schedule.lanes.resize(2);
  for (const SplitPart& part : split.parts) schedule.lanes[part.lane].push_back({part.slice});
  EXPECT_TRUE(check_schedule(graph, schedule).ok()) << check_schedule(graph, schedule).message();
}

// Threads that cost more than they bring are left out.
TEST(ChooseSplit, FewerThreadsWhereTheyAreFaster) {
  const Graph graph = linear(1, 64);
  const TiledModel cost(graph, {{1, 16, 0, {}, 3}, {1000, 16, 0}});
  const Split split = choose_split(problem_of(graph, cost), 0);
  ASSERT_EQ(split.parts.size(), 1u);
  EXPECT_EQ(split.parts[0].lane, 0);
  EXPECT_EQ(split.parts[0].threads, 1);
}

std::vector<SplitPart> two_parts(double first_us, double second_us) {
  return {{0, {.op = 0}, 0, first_us}, {1, {.op = 0}, 0, second_us}};
}

TEST(Ends, WithoutContentionLanesDoNotMatterToEachOther) {
  const Graph graph = linear(16, 64);
  const TiledModel cost(graph, {{}, {}});
  EXPECT_EQ(ends_us(cost, two_parts(10, 20), {1, 5}), (std::vector<double>{11, 25}));
}

TEST(Ends, SlowDownOnlyWhileBothRun) {
  const Graph graph = linear(16, 64);
  // Lane 1 is half memory-bound: lane 0 takes 1 + 0.5 * 0.2 + 0.5 * 1 = 1.6 times as long beside
  // it. Lane 0 is not at all: lane 1 takes 1.25 times as long.
  const TiledModel cost(graph, {{1, 16, 0, {0, 2, 1.2}}, {1, 16, 0, {0.5, 3, 1.25}}});
  // Beside each other from 4 on. Lane 0 has 6 left then, and needs 9.6: until 13.6. Meanwhile lane
  // 1 does 9.6 / 1.25 = 7.68 of its 20; the rest takes 12.32.
  const std::vector<double> ends = ends_us(cost, two_parts(10, 20), {0, 4});
  EXPECT_NEAR(ends[0], 13.6, 1e-9);
  EXPECT_NEAR(ends[1], 13.6 + 12.32, 1e-9);
  // One after another.
  EXPECT_EQ(ends_us(cost, two_parts(10, 20), {0, 10}), (std::vector<double>{10, 30}));
}

TEST(ChooseSplit, ContentionMovesTheCut) {
  const Graph graph = linear(64, 2048);
  const TiledModel even(graph, {{1, 16, 0}, {1, 16, 0}});
  const TiledModel slowed(graph, {{1, 16, 0}, {1, 16, 0, {0, 1.5, 1.5}}});
  const auto share_of_lane_1 = [&](const CostModel& cost) {
    const Split split = choose_split(problem_of(graph, cost), 0);
    EXPECT_EQ(split.parts.size(), 2u);
    const Slice& slice = split.parts.back().slice;
    return static_cast<double>(work_of(graph, slice).flops) / work_of(graph, 0).flops;
  };
  EXPECT_LT(share_of_lane_1(slowed), 0.9 * share_of_lane_1(even));
}

}  // namespace
}  // namespace tandem
