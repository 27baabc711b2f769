#include "schedule/mode_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "schedule/dependencies.h"
#include "tests/schedule/random_graph.h"
#include "tests/schedule/random_modes.h"
#include "tests/schedule/speed_model.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::SpeedModel;

std::vector<LaneTraits> lanes_of(int count) {
  std::vector<LaneTraits> lanes;
  for (int lane = 0; lane < count; ++lane) {
    lanes.push_back({.name = "lane" + std::to_string(lane), .asynchronous = lane + 1 == count});
  }
  return lanes;
}

Graph one_linear(int64_t rows, int64_t columns) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {rows, 64});
  const TensorId w = graph.add_constant("", HostTensor(DataType::kFloat32, {64, columns}));
  graph.mark_output(graph.add("linear", LinearAttributes{}, {x, w}).value());
  return graph;
}

double longest_us(const Mode& mode) {
  double us = 0;
  for (const Part& part : mode.parts) us = std::max(us, part.us);
  return us;
}

// Masks against Dependencies, which schedules' waits are derived from.
TEST(ModeBuilder, PartsWaitForWhatRegionsSay) {
  for (int seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const Graph graph = testing::random_graph(random, 15);
    const int lanes = 2 + seed % 2;
    const SpeedModel cost(graph, {1000, 2500, 700}, 0.01, 2);
    const auto problem = build_mode_problem({&graph, lanes_of(lanes), &cost});
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    ASSERT_TRUE(problem->validate().ok()) << problem->validate().message();
    for (int round = 0; round < 5; ++round) {
      const ModeSchedule chosen = random_mode_schedule(random, *problem);
      Dependencies dependencies(graph);
      for (size_t op = 0; op < problem->operators.size(); ++op) {
        const Mode& mode = problem->operators[op].modes[chosen.modes[op]];
        for (size_t p = 0; p < mode.parts.size(); ++p) {
          dependencies.add({static_cast<int>(op), static_cast<int>(p)}, mode.parts[p].slice);
        }
      }
      for (size_t op = 0; op < problem->operators.size(); ++op) {
        const Mode& mode = problem->operators[op].modes[chosen.modes[op]];
        for (size_t p = 0; p < mode.parts.size(); ++p) {
          std::set<PartRef> expected;
          for (Position q : dependencies.of(mode.parts[p].slice)) {
            expected.insert({q.lane, q.index});
          }
          std::set<PartRef> found;
          for (const ModeEdge& edge : problem->edges) {
            if (edge.to != static_cast<int>(op)) continue;
            const PartMask mask = edge.waits[problem->index(edge, chosen.modes[edge.from],
                                                            chosen.modes[op], static_cast<int>(p))];
            for (int q = 0; q < kMaxParts; ++q) {
              if (mask >> q & 1) found.insert({edge.from, q});
            }
          }
          EXPECT_EQ(found, expected) << "seed " << seed << ", " << problem->operators[op].name;
        }
      }
    }
  }
}

TEST(ModeBuilder, SchedulesOfItsModesPassTheCheck) {
  for (int seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const Graph graph = testing::random_graph(random, 15);
    const SpeedModel cost(graph, {1000, 2500, 700, 900}, 0.01, 2);
    const auto problem = build_mode_problem({&graph, lanes_of(2 + seed % 3), &cost});
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    const auto schedule =
        to_schedule(graph, *problem, random_mode_schedule(random, *problem), "random");
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    EXPECT_TRUE(check_schedule(graph, *schedule).ok())
        << check_schedule(graph, *schedule).message();
  }
}

TEST(ModeBuilder, OneModeIsNearTheBestOfAllCuts) {
  for (int seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const Graph graph = one_linear(1, 16 * random.integer(2, 60));
    const std::vector<double> speeds{random.real(100, 1000), random.real(100, 3000)};
    const SpeedModel cost(graph, speeds, random.real(0, 2), 1);
    const auto problem = build_mode_problem({&graph, lanes_of(2), &cost});
    ASSERT_TRUE(problem.ok());
    double best = std::min(cost.slice_us(0, {.op = 0}), cost.slice_us(1, {.op = 0}));
    const int64_t columns = graph.output_of(0).dims[1];
    for (int64_t at = 16; at < columns; at += 16) {
      best = std::min(
          best, std::max(cost.slice_us(0, {0, 1, 0, at}), cost.slice_us(1, {0, 1, at, columns})));
    }
    double found = INFINITY;
    for (const Mode& mode : problem->operators[0].modes) {
      found = std::min(found, longest_us(mode));
    }
    EXPECT_DOUBLE_EQ(found, best) << "seed " << seed;
  }
}

TEST(ModeBuilder, KeepsTheListShortAndUseful) {
  const Graph graph = one_linear(256, 1024);
  for (int lanes = 1; lanes <= 4; ++lanes) {
    const SpeedModel cost(graph, {1000, 2500, 700, 900}, 1, 2);
    const auto problem = build_mode_problem({&graph, lanes_of(lanes), &cost});
    ASSERT_TRUE(problem.ok());
    const std::vector<Mode>& modes = problem->operators[0].modes;
    EXPECT_LE(modes.size(), 12u);
    EXPECT_GE(modes.size(), lanes == 1 ? 1u : 8u);
    for (size_t a = 0; a < modes.size(); ++a) {
      for (size_t b = 0; b < modes.size(); ++b) EXPECT_TRUE(a == b || modes[a] != modes[b]);
    }
  }
}

// A cost model where two threads are best for small slices.
class ThreadModel : public SpeedModel {
 public:
  using SpeedModel::SpeedModel;
  double slice_us(int lane, const Slice& slice, int threads = 0) const override {
    if (threads == 0) threads = 8;
    return SpeedModel::slice_us(lane, slice) / threads + threads * threads;
  }
};

TEST(ModeBuilder, TakesAsManyThreadsAsAreFastest) {
  const Graph graph = one_linear(1, 64);
  const ThreadModel cost(graph, {1e9}, 16, 1);
  std::vector<LaneTraits> lanes = lanes_of(1);
  lanes[0].max_threads = 8;
  const auto problem = build_mode_problem({&graph, lanes, &cost});
  ASSERT_TRUE(problem.ok());
  EXPECT_EQ(problem->operators[0].modes[0].parts[0].threads, 2);
}

// Crossings of 5 us; one lane's signals and waits take it 2 us each.
class SlowCommands : public SpeedModel {
 public:
  explicit SlowCommands(const Graph& graph) : SpeedModel(graph, {1000, 2500, 700}, 0.01, 5) {}
  double command_us(int lane) const override { return lane == 1 ? 2 : 0; }
};

// From the end of one slice to the start of one that waits for it, a crossing takes as long as the
// costs say, whoever is busy with it.
TEST(ModeBuilder, CrossingsAreDividedIntoCommandsAndLatency) {
  const Graph graph = one_linear(8, 64);
  const SlowCommands cost(graph);
  const auto problem = build_mode_problem({&graph, lanes_of(3), &cost});
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  for (int from = 0; from < 3; ++from) {
    EXPECT_EQ(problem->lanes[from].send_us, from == 1 ? 2 : 0);
    EXPECT_EQ(problem->lanes[from].receive_us, from == 1 ? 2 : 0);
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      EXPECT_EQ(problem->lanes[from].send_us + problem->latency_us[from][to] +
                    problem->lanes[to].receive_us,
                5);
    }
  }
}

TEST(ModeBuilder, PinsAreAllThatIsLeft) {
  const Graph graph = one_linear(1, 160);
  const SpeedModel cost(graph, {1000, 1000}, 1, 2);
  ModeOptions options;
  options.pins = {{0, 1, 1}};
  auto problem = build_mode_problem({&graph, lanes_of(2), &cost}, options);
  ASSERT_TRUE(problem.ok());
  ASSERT_EQ(problem->operators[0].modes.size(), 1u);
  EXPECT_EQ(problem->operators[0].modes[0].parts[0].lane, 1);

  options.pins = {{0, 1, 0.3}};
  problem = build_mode_problem({&graph, lanes_of(2), &cost}, options);
  ASSERT_TRUE(problem.ok());
  ASSERT_EQ(problem->operators[0].modes.size(), 1u);
  ASSERT_EQ(problem->operators[0].modes[0].parts.size(), 2u);
  EXPECT_EQ(problem->operators[0].modes[0].parts[1].slice, (Slice{0, 1, 112, 160}));

  options.pins = {{0, 1, 1.5}};
  EXPECT_THAT(build_mode_problem({&graph, lanes_of(2), &cost}, options).status().message(),
              HasSubstr("1.5"));
  const Graph tiny = one_linear(1, 16);
  options.pins = {{0, 1, 0.5}};
  EXPECT_THAT(build_mode_problem({&tiny, lanes_of(2), &cost}, options).status().message(),
              HasSubstr("cannot be cut"));
}

TEST(ModeBuilder, PartitionsOfSchedulesBecomeModes) {
  const Graph graph = one_linear(1, 160);
  const SpeedModel cost(graph, {1000, 1000}, 1, 2);
  Schedule schedule;
  schedule.lanes = {{{.slice = {0, 1, 48, 160}}}, {{.slice = {0, 1, 0, 48}}}};
  ModeOptions options;
  options.partitions = {&schedule};
  const auto problem = build_mode_problem({&graph, lanes_of(2), &cost}, options);
  ASSERT_TRUE(problem.ok());
  const Mode& mode = problem->operators[0].modes.back();
  ASSERT_EQ(mode.parts.size(), 2u);
  EXPECT_EQ(mode.parts[0].slice, (Slice{0, 1, 48, 160}));
  EXPECT_EQ(mode.parts[0].lane, 0);
  EXPECT_EQ(mode.parts[1].lane, 1);
  EXPECT_DOUBLE_EQ(mode.parts[1].us, cost.slice_us(1, {0, 1, 0, 48}));
}

}  // namespace
}  // namespace tandem
