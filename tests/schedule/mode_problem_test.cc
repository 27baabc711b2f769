#include "schedule/mode_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/random_modes.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;

// Two operators on two lanes; the second's part 0 waits for the first's only part.
ModeProblem small_problem() {
  ModeProblem problem;
  problem.lanes = {{.name = "a"}, {.name = "b"}};
  problem.latency_us = {{0, 1}, {1, 0}};
  problem.operators = {{"first", {{{{.lane = 0, .us = 5}}}}},
                       {"second", {{{{.lane = 0, .us = 1}, {.lane = 1, .us = 2}}}}}};
  ModeEdge edge{0, 1, {}, {}};
  edge.waits = {1, 0};
  problem.edges = {edge};
  return problem;
}

TEST(ModeProblem, ComesBackFromJsonAsItWas) {
  for (int seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const ModeProblem problem =
        random_modes(random, {.operators = 8, .lanes = 1 + seed % 4, .contention = seed % 2 == 1});
    ASSERT_TRUE(problem.validate().ok()) << problem.validate().message();
    const auto read = mode_problem_from_json(to_json(problem));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, problem);
    const ModeSchedule schedule = random_mode_schedule(random, problem);
    const auto again = mode_schedule_from_json(problem, to_json(schedule, 3));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, schedule);
  }
}

TEST(ModeProblem, RefusesOtherFiles) {
  const std::string good = to_json(small_problem());
  EXPECT_TRUE(mode_problem_from_json(good).ok());
  EXPECT_EQ(mode_problem_from_json("{}").status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(mode_problem_from_json("no json").status().code(), StatusCode::kCorrupt);
  std::string later = good;
  later.replace(later.find("\"version\":1"), 11, "\"version\":9");
  EXPECT_EQ(mode_problem_from_json(later).status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(mode_problem_from_json(later).status().message(), HasSubstr("version 9"));
}

TEST(ModeProblem, ValidateNamesWhatIsWrong) {
  const auto message = [](const auto& change) {
    ModeProblem problem = small_problem();
    change(problem);
    return problem.validate().message();
  };
  EXPECT_EQ(message([](ModeProblem&) {}), "");
  EXPECT_THAT(message([](ModeProblem& p) { p.operators[1].modes.clear(); }), HasSubstr("second"));
  EXPECT_THAT(message([](ModeProblem& p) { p.operators[0].modes[0].parts[0].lane = 2; }),
              HasSubstr("lane 2"));
  EXPECT_THAT(message([](ModeProblem& p) { p.operators[0].modes[0].parts[0].us = -1; }),
              HasSubstr("first"));
  EXPECT_THAT(message([](ModeProblem& p) { p.edges[0].waits[0] = 2; }),
              HasSubstr("does not exist"));
  EXPECT_THAT(message([](ModeProblem& p) { p.edges[0].to = 0; }), HasSubstr("later one"));
  EXPECT_THAT(message([](ModeProblem& p) { p.edges.push_back(p.edges[0]); }),
              HasSubstr("two edges"));
  EXPECT_THAT(message([](ModeProblem& p) { p.lanes[1].fed_by = 1; }), HasSubstr("fed by"));
}

TEST(CheckModeSchedule, NamesWhatIsWrong) {
  const ModeProblem problem = small_problem();
  const ModeSchedule good{{0, 0}, {{{0, 0}, {1, 0}}, {{1, 1}}}};
  const auto message = [&](const auto& change) {
    ModeSchedule schedule = good;
    change(schedule);
    return check_mode_schedule(problem, schedule).message();
  };
  EXPECT_EQ(message([](ModeSchedule&) {}), "");
  EXPECT_THAT(message([](ModeSchedule& s) { s.lanes[1].clear(); }),
              HasSubstr("no lane has part 1"));
  EXPECT_THAT(message([](ModeSchedule& s) { s.lanes[1].push_back({1, 1}); }), HasSubstr("twice"));
  EXPECT_THAT(message([](ModeSchedule& s) { s.lanes[1][0].part = 0; }), HasSubstr("belongs"));
  EXPECT_THAT(message([](ModeSchedule& s) { s.modes[0] = 1; }), HasSubstr("no mode 1"));
  EXPECT_THAT(message([](ModeSchedule& s) { std::swap(s.lanes[0][0], s.lanes[0][1]); }),
              HasSubstr("wait for each other"));
}

TEST(CheckModeSchedule, AcceptsRandomSchedulesAndRefusesReversedOnes) {
  int refused = 0;
  for (int seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, {.operators = 6, .lanes = 2});
    ModeSchedule schedule = random_mode_schedule(random, problem);
    EXPECT_TRUE(check_mode_schedule(problem, schedule).ok());
    // Something on a lane depends on something before it there: not so the other way round.
    for (auto& lane : schedule.lanes) std::reverse(lane.begin(), lane.end());
    refused += !check_mode_schedule(problem, schedule).ok();
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace tandem
