#include "schedule/mode_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/beam.h"
#include "schedule/joint.h"
#include "schedule/local_search.h"
#include "tests/schedule/random_modes.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::RandomModes;

ModeSchedule schedule_with(std::string_view strategy, const ModeTables& tables,
                           const SearchOptions& options = {}, SearchReport* report = nullptr) {
  const auto scheduler = make_mode_scheduler(strategy);
  EXPECT_TRUE(scheduler.ok()) << scheduler.status().message();
  auto schedule = (*scheduler)->schedule(tables, options, report);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  const Status valid = check_mode_schedule(tables.problem, *schedule);
  EXPECT_TRUE(valid.ok()) << strategy << ": " << valid.message();
  return *schedule;
}

RandomModes shape_of(int seed) {
  return {.operators = 1 + seed % 30,
          .lanes = 1 + seed % 4,
          .most_modes = 1 + seed % 7,
          .feeding = seed % 3 == 0,
          .copies = seed % 4 == 0,
          .contention = seed % 5 == 0};
}

TEST(MakeModeScheduler, UnknownNamesListTheKnownOnes) {
  const auto scheduler = make_mode_scheduler("fastest");
  ASSERT_EQ(scheduler.status().code(), StatusCode::kNotFound);
  for (std::string_view name : mode_scheduler_names()) {
    EXPECT_THAT(scheduler.status().message(), HasSubstr(std::string(name)));
    EXPECT_TRUE(make_mode_scheduler(name).ok());
  }
}

TEST(ModeSchedulers, AllAnswersAreSchedulesAndJointIsTheBest) {
  for (int seed = 0; seed < 120; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, shape_of(seed));
    const ModeTables tables(problem);
    SearchOptions options;
    options.evaluations = 500;
    const double joint = predicted_makespan_us(tables, schedule_with("joint", tables, options));
    for (const char* strategy : {"inter", "inter_heft", "inter_lookahead", "intra", "chain"}) {
      EXPECT_LE(joint, predicted_makespan_us(tables, schedule_with(strategy, tables)) + 1e-9)
          << strategy << ", seed " << seed;
    }
    for (int lane = 0; lane < tables.lanes; ++lane) {
      const ModeSchedule alone = single_lane_modes(tables, lane);
      EXPECT_TRUE(check_mode_schedule(problem, alone).ok());
      EXPECT_LE(joint, predicted_makespan_us(tables, alone) + 1e-9) << "seed " << seed;
    }
    EXPECT_GE(joint, (tables.has_contention ? 0 : lower_bound_us(tables)) - 1e-9);
  }
}

TEST(Joint, IsTheSameForASeedAndANumberOfEvaluations) {
  for (int seed = 0; seed < 10; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, {.operators = 25, .lanes = 3});
    const ModeTables tables(problem);
    SearchOptions options;
    options.seed = seed;
    options.evaluations = 1000;
    SearchReport report;
    const ModeSchedule once = schedule_with("joint", tables, options, &report);
    EXPECT_EQ(schedule_with("joint", tables, options), once);
    EXPECT_GT(report.tried, 0);
    EXPECT_FALSE(report.stages.empty());
    EXPECT_FALSE(report.starts.empty());
  }
}

TEST(Joint, MoreEvaluationsFindMore) {
  double few = 0;
  double many = 0;
  for (int seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, {.operators = 40, .lanes = 3});
    const ModeTables tables(problem);
    SearchOptions options;
    options.evaluations = 1;
    few += predicted_makespan_us(tables, schedule_with("joint", tables, options));
    options.evaluations = 5000;
    many += predicted_makespan_us(tables, schedule_with("joint", tables, options));
  }
  EXPECT_LT(many, few * 0.99);
}

// Two parts each, on two lanes, that keep to themselves.
ModeProblem chain_of(int length, double latency) {
  ModeProblem problem;
  problem.lanes = {{.name = "a"}, {.name = "b"}};
  problem.latency_us = {{0, latency}, {latency, 0}};
  for (int op = 0; op < length; ++op) {
    problem.operators.push_back({"op" + std::to_string(op),
                                 {{{{.lane = 0, .us = 10}}},
                                  {{{.lane = 1, .us = 10}}},
                                  {{{.lane = 0, .us = 6}, {.lane = 1, .us = 6}}}}});
    if (op == 0) continue;
    ModeEdge edge{op - 1, op, {}, {}};
    // Whole to whole and to both; both to whole; each to its own.
    edge.waits = {1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 3, 0, 3, 0, 1, 2};
    problem.edges.push_back(edge);
  }
  return problem;
}

TEST(Chain, StaysDividedWhereJoiningWouldCostMore) {
  const ModeProblem problem = chain_of(6, 8);
  const ModeTables tables(problem);
  // One at a time, dividing gains 4 and telling the other lane costs 8.
  EXPECT_DOUBLE_EQ(evaluate(tables, schedule_with("intra", tables)).makespan_us, 60);
  EXPECT_DOUBLE_EQ(evaluate(tables, schedule_with("chain", tables)).makespan_us, 36);
  EXPECT_DOUBLE_EQ(evaluate(tables, schedule_with("joint", tables)).makespan_us, 36);
}

TEST(Stages, AreWhereEverythingBeforeComesBeforeEverythingAfter) {
  // Diamonds in a row: two operators side by side, then one that reads both.
  ModeProblem problem;
  problem.lanes = {{.name = "a"}};
  problem.latency_us = {{0}};
  for (int op = 0; op < 31; ++op) {
    problem.operators.push_back({"op" + std::to_string(op), {{{{.lane = 0, .us = 1}}}}});
    const auto edge = [&](int from) { problem.edges.push_back({from, op, {1}, {}}); };
    if (op == 0) continue;
    if (op % 3 == 0) {
      edge(op - 1);
      edge(op - 2);
    } else {
      edge(op - op % 3);
    }
  }
  const ModeTables tables(problem);
  const std::vector<Window> stages = stages_of(tables);
  ASSERT_GT(stages.size(), 2u);
  EXPECT_EQ(stages.front().first, 0);
  EXPECT_EQ(stages.back().last, 31);
  for (size_t i = 1; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i].first, stages[i - 1].last);
    EXPECT_NE(stages[i].first % 3, 2);  // not between the two that are side by side
  }
}

TEST(BeamSearch, WiderBeamsOfAllStatesFindTheBestModes) {
  for (int seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(
        random, {.operators = 5, .lanes = 2, .most_modes = 3, .feeding = false, .copies = false});
    const ModeTables tables(problem);
    OrderedModes solution;
    for (int op = 0; op < tables.operators; ++op) solution.order.push_back(op);
    solution.modes.assign(tables.operators, 0);
    double best = OrderEvaluator::kNever;
    for (int64_t code = 0; code < 243; ++code) {
      int64_t rest = code;
      bool valid = true;
      for (int op = 0; op < tables.operators; ++op, rest /= 3) {
        valid = valid && rest % 3 < tables.mode_count(op);
        solution.modes[op] = static_cast<int>(rest % 3);
      }
      if (!valid) continue;
      best = std::min(best, evaluate(tables, schedule_of(tables, solution)).makespan_us);
    }
    int64_t tried = 0;
    const OrderedModes found = beam_search(tables, solution.order, 1000, &tried);
    // Sends are not known while it grows, so that it may miss by as much.
    const double slack = tables.has_out_us ? 2.0 * tables.operators : 1e-9;
    EXPECT_LE(evaluate(tables, schedule_of(tables, found)).makespan_us, best + slack)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem
