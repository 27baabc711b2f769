#include "schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/schedule/random_graph.h"
#include "tests/schedule/speed_model.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

using testing::SpeedModel;

const std::vector<LaneTraits> kLanes{{"cpu", false}, {"gpu", true}};

Graph linear_chain(int length, int64_t size) {
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {size, size});
  for (int i = 0; i < length; ++i) {
    const TensorId w = graph.add_constant("", HostTensor(DataType::kFloat32, {size, size}));
    x = graph.add("linear" + std::to_string(i), LinearAttributes{}, {x, w}).value();
  }
  graph.mark_output(x);
  return graph;
}

Schedule schedule_with(std::string_view strategy, const Graph& graph, const CostModel* cost,
                       const std::vector<LaneTraits>& lanes = kLanes) {
  const auto scheduler = make_scheduler(strategy);
  Schedule schedule = (*scheduler)->schedule({&graph, lanes, cost}).value();
  EXPECT_TRUE(check_schedule(graph, schedule).ok()) << check_schedule(graph, schedule).message();
  return schedule;
}

TEST(MakeScheduler, UnknownNamesListTheKnownOnes) {
  const auto scheduler = make_scheduler("fastest");
  ASSERT_FALSE(scheduler.ok());
  EXPECT_EQ(scheduler.status().code(), StatusCode::kNotFound);
  for (std::string_view name : scheduler_names()) {
    EXPECT_THAT(scheduler.status().message(), HasSubstr(std::string(name)));
    EXPECT_TRUE(make_scheduler(name).ok());
  }
}

TEST(SingleLane, RunsEverythingThere) {
  const Graph graph = linear_chain(3, 64);
  EXPECT_EQ(schedule_with("cpu", graph, nullptr).lanes[0].size(), 3u);
  EXPECT_EQ(schedule_with("gpu", graph, nullptr).lanes[1].size(), 3u);
}

TEST(SingleLane, SaysThatThereIsNoSuchLane) {
  const Graph graph = linear_chain(1, 64);
  const auto schedule = (*make_scheduler("gpu"))->schedule({&graph, {{"cpu", false}}, nullptr});
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(schedule.status().message(), HasSubstr("GPU"));
}

TEST(Intra, SplitsByTheLanesSpeeds) {
  const Graph graph = linear_chain(1, 512);
  const SpeedModel cost(graph, {1000, 3000}, 1, 2);
  const Schedule schedule = schedule_with("intra", graph, &cost);
  ASSERT_EQ(schedule.lanes[0].size(), 1u);
  ASSERT_EQ(schedule.lanes[1].size(), 1u);
  const Slice& first = schedule.lanes[0][0].slice;
  EXPECT_NEAR(static_cast<double>(first.end - first.begin) / 512, 0.25, 0.04);
}

// On one operator, nothing beats the choice: not any cut, not any lane.
TEST(Intra, IsOptimalForOneOperator) {
  for (int64_t size : {32, 100, 256, 400}) {
    const Graph graph = linear_chain(1, size);
    for (double ratio : {0.2, 0.7, 1.0, 2.3}) {
      for (double overhead : {0.0, 20.0}) {
        const SpeedModel cost(graph, {1000, 1000 * ratio}, overhead, 5);
        const Schedule schedule = schedule_with("intra", graph, &cost);
        double chosen = 0;
        for (int lane = 0; lane < 2; ++lane) {
          for (const ScheduledSlice& s : schedule.lanes[lane]) {
            chosen = std::max(chosen, cost.slice_us(lane, s.slice));
          }
        }
        double best = std::min(cost.slice_us(0, {.op = 0}), cost.slice_us(1, {.op = 0}));
        for (const PartitionAxis& axis : partition_axes(graph, 0)) {
          for (int64_t at = axis.granularity; at < size; at += axis.granularity) {
            best = std::min(best, std::max(cost.slice_us(0, {0, axis.axis, 0, at}),
                                           cost.slice_us(1, {0, axis.axis, at, size})));
          }
        }
        EXPECT_NEAR(chosen, best, 1e-9) << size << " " << ratio << " " << overhead;
      }
    }
  }
}

TEST(Intra, SmallOperatorsStayTogetherOnOneLane) {
  const Graph graph = linear_chain(6, 32);
  const SpeedModel cost(graph, {1000, 1000}, 1, 500);
  const Schedule schedule = schedule_with("intra", graph, &cost);
  EXPECT_TRUE(schedule.lanes[0].empty() != schedule.lanes[1].empty());
}

// Copies by the byte, to and from the second lane.
class CopyingModel : public SpeedModel {
 public:
  CopyingModel(const Graph& graph, double us_per_byte)
      : SpeedModel(graph, {1000, 1000}, 1, 1), us_per_byte_(us_per_byte) {}
  double copy_us(int lane, const CopySize& size) const override {
    EXPECT_EQ(lane, 1);
    return us_per_byte_ * static_cast<double>(size.bytes);
  }

 private:
  double us_per_byte_;
};

TEST(Intra, SplitsAcrossMemoriesOnlyWhereCopiesAreWorthIt) {
  const Graph graph = linear_chain(6, 64);
  const std::vector<LaneTraits> lanes{{"cpu", false}, {"gpu", true, kNone, true}};
  // An operator takes 64 * 64 * 128 / 1000 = 524 us whole, and its output has 16 KiB.
  const CopyingModel cheap(graph, 1e-3);
  const Schedule split = schedule_with("intra", graph, &cheap, lanes);
  EXPECT_EQ(split.lanes[0].size(), 6u);
  EXPECT_EQ(split.lanes[1].size(), 6u);
  const CopyingModel dear(graph, 0.1);
  const Schedule alone = schedule_with("intra", graph, &dear, lanes);
  EXPECT_EQ(alone.lanes[0].size(), 6u);
  EXPECT_TRUE(alone.lanes[1].empty());
}

TEST(CopySize, CountsPiecesThatLieApart) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {2, 3, 4, 32});
  const auto size = [&](const Region& region) { return copy_size(graph, {x, region}); };
  EXPECT_EQ(size({{0, 2}, {0, 3}, {0, 4}, {0, 32}}).pieces, 1);
  EXPECT_EQ(size({{0, 2}, {0, 3}, {0, 4}, {0, 32}}).bytes, 2 * 3 * 4 * 32 * 4);
  EXPECT_EQ(size({{0, 1}, {1, 2}, {0, 4}, {0, 32}}).pieces, 1);   // a row of pixels
  EXPECT_EQ(size({{0, 2}, {1, 3}, {0, 4}, {0, 32}}).pieces, 2);   // rows of two pictures
  EXPECT_EQ(size({{0, 2}, {0, 3}, {0, 4}, {0, 16}}).pieces, 24);  // channels of every pixel
  EXPECT_EQ(size({{0, 2}, {0, 3}, {0, 4}, {0, 16}}).bytes, 24 * 16 * 4);
}

TEST(Intra, IsNeverPredictedSlowerThanTheBestLane) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    testing::Random random(seed);
    const Graph graph = testing::random_graph(random, 40);
    const SpeedModel cost(graph, {random.real(10, 1000), random.real(10, 1000)}, random.real(0, 5),
                          random.real(0, 10));
    const auto total = [&](const Schedule& schedule, int lane) {
      double sum = 0;
      for (const ScheduledSlice& s : schedule.lanes[lane]) sum += cost.slice_us(lane, s.slice);
      return sum;
    };
    const double best = std::min(total(schedule_with("cpu", graph, &cost), 0),
                                 total(schedule_with("gpu", graph, &cost), 1));
    const Schedule intra = schedule_with("intra", graph, &cost);
    EXPECT_LE(std::max(total(intra, 0), total(intra, 1)), best * (1 + 1e-9)) << "seed " << seed;
  }
}

TEST(Intra, UsesAnyNumberOfLanes) {
  const Graph graph = linear_chain(2, 480);
  const SpeedModel cost(graph, {1000, 1000, 2000, 1000}, 0, 1);
  const std::vector<LaneTraits> lanes{{"a"}, {"b"}, {"c"}, {"d", true}};
  const Schedule schedule = schedule_with("intra", graph, &cost, lanes);
  const double whole = cost.slice_us(0, {.op = 0});
  for (int lane = 0; lane < 4; ++lane) {
    ASSERT_EQ(schedule.lanes[lane].size(), 2u);
    EXPECT_NEAR(cost.slice_us(lane, schedule.lanes[lane][0].slice), whole / 5, whole / 40);
  }
}

TEST(Intra, OneLane) {
  const Graph graph = linear_chain(2, 64);
  const SpeedModel cost(graph, {1000}, 0, 1);
  EXPECT_EQ(schedule_with("intra", graph, &cost, {{"cpu", false}}).lanes[0].size(), 2u);
}

TEST(Intra, NeedsCosts) {
  const Graph graph = linear_chain(1, 64);
  EXPECT_FALSE((*make_scheduler("intra"))->schedule({&graph, kLanes, nullptr}).ok());
}

}  // namespace
}  // namespace tandem
