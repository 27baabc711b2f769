#include "schedule/random_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "schedule/mode_scheduler.h"

namespace tandem {
namespace {

TEST(RandomTopology, HasAsManyOperatorsAsAsked) {
  for (const GraphFamily family : graph_families()) {
    for (int operators = 0; operators <= 60; operators += 7) {
      const auto inputs = random_topology(family, operators, 3);
      EXPECT_EQ(static_cast<int>(inputs.size()), operators) << to_string(family);
    }
  }
}

TEST(RandomTopology, ReadsEarlierOperatorsOnceEach) {
  for (const GraphFamily family : graph_families()) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto inputs = random_topology(family, 40, seed);
      EXPECT_TRUE(inputs[0].empty());
      for (size_t op = 1; op < inputs.size(); ++op) {
        ASSERT_FALSE(inputs[op].empty()) << to_string(family) << ", operator " << op;
        EXPECT_GE(inputs[op].front(), 0);
        EXPECT_LT(inputs[op].back(), static_cast<int>(op));
        EXPECT_TRUE(std::is_sorted(inputs[op].begin(), inputs[op].end(), std::less_equal<>()));
      }
    }
  }
}

int widest_fork(const std::vector<std::vector<int>>& inputs) {
  std::vector<int> readers(inputs.size(), 0);
  for (const auto& read : inputs) {
    for (const int from : read) ++readers[from];
  }
  return *std::max_element(readers.begin(), readers.end());
}

TEST(RandomTopology, FamiliesAreWhatTheirNamesSay) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    // A residual network is a chain but for its shortcuts: nothing has more than two inputs.
    for (const auto& read : random_topology(GraphFamily::kResidual, 40, seed)) {
      EXPECT_LE(read.size(), 2u);
    }
    for (const GraphFamily family : {GraphFamily::kSeriesParallel, GraphFamily::kInception,
                                     GraphFamily::kHrnet, GraphFamily::kLayered}) {
      EXPECT_GE(widest_fork(random_topology(family, 40, seed)), 2) << to_string(family);
    }
  }
}

TEST(RandomProblem, IsTheSameForTheSameOptions) {
  for (const GraphFamily family : graph_families()) {
    RandomProblemOptions options{.family = family, .operators = 12, .lanes = 3, .seed = 5};
    const ModeProblem problem = random_problem(options);
    EXPECT_EQ(problem, random_problem(options));
    options.seed = 6;
    EXPECT_NE(problem, random_problem(options));
  }
}

// Parts of a mode follow each other along one axis from its begin to its end.
void expect_partition(const Mode& mode) {
  if (mode.parts.size() == 1) {
    EXPECT_TRUE(mode.parts[0].slice.whole());
    return;
  }
  std::set<int> lanes;
  for (size_t i = 0; i < mode.parts.size(); ++i) {
    const Slice& slice = mode.parts[i].slice;
    EXPECT_EQ(slice.axis, mode.parts[0].slice.axis);
    EXPECT_EQ(slice.begin, i == 0 ? 0 : mode.parts[i - 1].slice.end);
    EXPECT_LT(slice.begin, slice.end);
    lanes.insert(mode.parts[i].lane);
  }
  EXPECT_EQ(mode.parts.back().slice.end, 64);
  EXPECT_EQ(lanes.size(), mode.parts.size());
}

TEST(RandomProblem, IsValidAndItsModesArePartitions) {
  for (int i = 0; i < 60; ++i) {
    const ModeProblem problem = random_problem({.family = graph_families()[i % 5],
                                                .operators = 5 + i % 30,
                                                .lanes = 1 + i % 4,
                                                .max_modes = 4 + i % 9,
                                                .seed = static_cast<uint64_t>(i)});
    EXPECT_TRUE(problem.validate().ok()) << problem.validate().message();
    for (const ModeOperator& op : problem.operators) {
      EXPECT_LE(op.modes.size(), std::max<size_t>(4 + i % 9, problem.lanes.size()));
      for (size_t lane = 0; lane < problem.lanes.size(); ++lane) {
        EXPECT_EQ(op.modes[lane].parts.size(), 1u);
        EXPECT_EQ(op.modes[lane].parts[0].lane, static_cast<int>(lane));
      }
      for (const Mode& mode : op.modes) expect_partition(mode);
    }
  }
}

// Whatever is cut, nothing that an operator makes is read by nobody before it is there: all parts
// of a producer are waited for by some part of each consumer.
TEST(RandomProblem, EveryPartIsWaitedForByEachConsumer) {
  for (int i = 0; i < 30; ++i) {
    const ModeProblem problem = random_problem({.family = graph_families()[i % 5],
                                                .operators = 20,
                                                .lanes = 2 + i % 3,
                                                .seed = static_cast<uint64_t>(i)});
    for (const ModeEdge& edge : problem.edges) {
      const auto& from_modes = problem.operators[edge.from].modes;
      const auto& to_modes = problem.operators[edge.to].modes;
      for (size_t f = 0; f < from_modes.size(); ++f) {
        for (size_t t = 0; t < to_modes.size(); ++t) {
          unsigned waited = 0;
          for (size_t p = 0; p < to_modes[t].parts.size(); ++p) {
            waited |= edge.waits[problem.index(edge, static_cast<int>(f), static_cast<int>(t),
                                               static_cast<int>(p))];
          }
          EXPECT_EQ(waited, (1u << from_modes[f].parts.size()) - 1);
        }
      }
    }
  }
}

TEST(RandomProblem, EverySchedulersAnswerPassesTheChecker) {
  for (int i = 0; i < 20; ++i) {
    const ModeProblem problem = random_problem({.family = graph_families()[i % 5],
                                                .operators = 6 + i,
                                                .lanes = 2 + i % 3,
                                                .seed = static_cast<uint64_t>(i)});
    const ModeTables tables(problem);
    double least = evaluate(tables, single_lane_modes(tables, 0)).makespan_us;
    double joint = 0;
    for (const char* strategy : {"inter_heft", "inter_lookahead", "intra", "chain", "joint"}) {
      const auto schedule =
          (*make_mode_scheduler(strategy))->schedule(tables, SearchOptions{}, nullptr);
      ASSERT_TRUE(schedule.ok()) << schedule.status().message();
      EXPECT_TRUE(check_mode_schedule(problem, *schedule).ok());
      joint = evaluate(tables, *schedule).makespan_us;  // the last one's
      least = std::min(least, joint);
      EXPECT_GE(joint, lower_bound_us(tables) - 1e-6);
    }
    EXPECT_LE(joint, least + 1e-6) << problem.name;
  }
}

}  // namespace
}  // namespace tandem
