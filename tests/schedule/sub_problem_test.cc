#include "schedule/sub_problem.h"

#include <gtest/gtest.h>

#include "schedule/evaluator.h"
#include "schedule/mode_scheduler.h"
#include "schedule/random_problem.h"

namespace tandem {
namespace {

TEST(SubProblem, OfAllIsTheProblemButForItsName) {
  ModeProblem problem = random_problem({.operators = 15, .lanes = 3});
  ModeProblem all = sub_problem(problem, 0, 15);
  EXPECT_NE(all.name, problem.name);
  all.name = problem.name;
  EXPECT_EQ(all, problem);
}

TEST(SubProblem, TakesOperatorsAndWhatTheyReadOfEachOther) {
  const ModeProblem problem =
      random_problem({.family = GraphFamily::kLayered, .operators = 30, .lanes = 2});
  const ModeProblem part = sub_problem(problem, 10, 22);
  EXPECT_TRUE(part.validate().ok()) << part.validate().message();
  ASSERT_EQ(part.operators.size(), 12u);
  for (int op = 0; op < 12; ++op) EXPECT_EQ(part.operators[op], problem.operators[op + 10]);
  size_t edges = 0;
  for (const ModeEdge& edge : problem.edges) {
    edges += edge.from >= 10 && edge.to < 22;
  }
  EXPECT_EQ(part.edges.size(), edges);
}

// Lanes are free and inputs are there sooner than within the whole.
TEST(SubProblem, TakesNoLongerThanTheWhole) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const ModeProblem problem = random_problem({.operators = 16, .lanes = 2, .seed = seed});
    const ModeProblem part = sub_problem(problem, 4, 12);
    const ModeTables whole_tables(problem);
    const ModeTables part_tables(part);
    for (int lane = 0; lane < 2; ++lane) {
      EXPECT_LT(evaluate(part_tables, single_lane_modes(part_tables, lane)).makespan_us,
                evaluate(whole_tables, single_lane_modes(whole_tables, lane)).makespan_us);
    }
  }
}

}  // namespace
}  // namespace tandem
