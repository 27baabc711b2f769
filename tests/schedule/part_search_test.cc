#include "schedule/part_search.h"

#include <gtest/gtest.h>

#include "schedule/joint.h"
#include "tests/schedule/random_modes.h"

namespace tandem {
namespace {

using testing::Random;

SearchBudget budget_of(int64_t evaluations) {
  SearchBudget budget;
  budget.evaluations = evaluations;
  return budget;
}

TEST(AnnealParts, MakesSchedulesBetterAndNeverWorse) {
  int better = 0;
  for (int seed = 0; seed < 80; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, {.operators = 1 + seed % 40,
                                                      .lanes = 1 + seed % 4,
                                                      .feeding = seed % 3 == 0,
                                                      .copies = seed % 4 == 0});
    const ModeTables tables(problem);
    const ModeSchedule start = random_mode_schedule(random, problem);
    ModeSchedule found = start;
    SearchBudget budget = budget_of(1000);
    EXPECT_LE(anneal_parts(tables, 1000, seed, &budget, &found), 1000);
    EXPECT_GE(budget.evaluations, -2);
    const Status valid = check_mode_schedule(problem, found);
    ASSERT_TRUE(valid.ok()) << valid.message() << ", seed " << seed;
    const double before = evaluate(tables, start).makespan_us;
    const double after = evaluate(tables, found).makespan_us;
    EXPECT_LE(after, before * (1 + 1e-12)) << "seed " << seed;
    EXPECT_GE(after, lower_bound_us(tables) - 1e-9) << "seed " << seed;
    better += after < before * 0.8;
  }
  EXPECT_GT(better, 40);
}

// Two operators on two lanes, each in two parts, and a long one after one part of each: the two
// lanes have to start with different operators.
TEST(AnnealParts, FindsOrdersThatNoOrderOfOperatorsHas) {
  ModeProblem problem;
  problem.lanes = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
  problem.latency_us.assign(4, std::vector<double>(4, 0));
  const auto add = [&](const char* name, std::vector<Part> parts) {
    problem.operators.push_back({name, {{std::move(parts)}}});
  };
  add("x", {{.lane = 0, .us = 10}, {.lane = 1, .us = 10}});
  add("y", {{.lane = 0, .us = 10}, {.lane = 1, .us = 10}});
  add("after x", {{.lane = 2, .us = 50}});
  add("after y", {{.lane = 3, .us = 50}});
  problem.edges = {{0, 2, {1}, {}}, {1, 3, {2}, {}}};
  ASSERT_TRUE(problem.validate().ok());
  const ModeTables tables(problem);
  // Whichever of x and y comes first.
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2, 3}, {1, 0, 2, 3}}) {
    ModeSchedule schedule = schedule_of(tables, OrderedModes{{0, 0, 0, 0}, order});
    EXPECT_DOUBLE_EQ(evaluate(tables, schedule).makespan_us, 70);
    SearchBudget budget = budget_of(1000);
    anneal_parts(tables, 1000, 1, &budget, &schedule);
    EXPECT_DOUBLE_EQ(evaluate(tables, schedule).makespan_us, 60);
  }
}

TEST(Joint, FindsOptimaOfSmallProblems) {
  for (int seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, {.operators = 4 + seed % 3, .lanes = 2});
    const ModeTables tables(problem);
    const auto exact = make_mode_scheduler("exact");
    ASSERT_TRUE(exact.ok());
    const auto optimum = (*exact)->schedule(tables, {}, nullptr);
    ASSERT_TRUE(optimum.ok()) << optimum.status().message();
    const auto joint = JointScheduler().schedule(tables, {}, nullptr);
    ASSERT_TRUE(joint.ok());
    const double us = evaluate(tables, *optimum).makespan_us;
    EXPECT_NEAR(evaluate(tables, *joint).makespan_us, us, 1e-6 * us) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem
