#include "schedule/exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/joint.h"
#include "tests/schedule/random_modes.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;

// Every choice of modes and every order of parts, one by one.
class AllSchedules {
 public:
  explicit AllSchedules(const ModeTables& tables) : tables_(tables), modes_(tables.operators) {}

  double least_us() {
    choose(0);
    return least_us_;
  }

 private:
  void choose(int op) {
    if (op < tables_.operators) {
      for (modes_[op] = 0; modes_[op] < tables_.mode_count(op); ++modes_[op]) choose(op + 1);
      return;
    }
    schedule_ = {modes_, std::vector<std::vector<PartRef>>(tables_.lanes)};
    std::vector<PartRef> left;
    for (int o = 0; o < tables_.operators; ++o) {
      for (int p = 0; p < tables_.part_count(o, modes_[o]); ++p) left.push_back({o, p});
    }
    order(left);
  }

  void order(const std::vector<PartRef>& left) {
    if (left.empty()) {
      if (!check_mode_schedule(tables_.problem, schedule_).ok()) return;
      least_us_ = std::min(least_us_, evaluate(tables_, schedule_).makespan_us);
      return;
    }
    for (size_t i = 0; i < left.size(); ++i) {
      const int lane = tables_.lane[tables_.part(left[i].op, modes_[left[i].op], left[i].part)];
      // Lanes one after another: only their orders count.
      const bool earlier_left = std::any_of(left.begin(), left.end(), [&](const PartRef& ref) {
        return tables_.lane[tables_.part(ref.op, modes_[ref.op], ref.part)] < lane;
      });
      if (earlier_left) continue;
      std::vector<PartRef> rest = left;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
      schedule_.lanes[lane].push_back(left[i]);
      order(rest);
      schedule_.lanes[lane].pop_back();
    }
  }

  const ModeTables& tables_;
  std::vector<int> modes_;
  ModeSchedule schedule_;
  double least_us_ = 1e30;
};

TEST(Exact, EqualsTheBestOfAllSchedules) {
  int better_than_joint = 0;
  for (int seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, {.operators = 2 + seed % 3,
                                                      .lanes = 1 + seed % 3,
                                                      .most_modes = 3,
                                                      .most_parts = 2,
                                                      .feeding = seed % 2 == 0,
                                                      .copies = seed % 3 == 0});
    const ModeTables tables(problem);
    const auto found = ExactScheduler().schedule(tables, {}, nullptr);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(check_mode_schedule(problem, *found).ok());
    const double us = evaluate(tables, *found).makespan_us;
    EXPECT_NEAR(us, AllSchedules(tables).least_us(), 1e-9) << "seed " << seed;
    EXPECT_LE(lower_bound_us(tables), us + 1e-9);
    const auto joint = JointScheduler().schedule(tables, {}, nullptr);
    better_than_joint += evaluate(tables, *joint).makespan_us > us + 1e-9;
    EXPECT_LE(us, evaluate(tables, *joint).makespan_us + 1e-9);
  }
  EXPECT_LT(better_than_joint, 15);
}

TEST(Exact, RefusesWhatItCannotProve) {
  Random random(1);
  const ModeProblem large = random_modes(random, {.operators = 21});
  auto refused = ExactScheduler().schedule(ModeTables(large), {}, nullptr);
  ASSERT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("at most 20 operators"));
  const ModeProblem hard = random_modes(random, {.operators = 20, .lanes = 3, .most_inputs = 1});
  SearchOptions options;
  options.evaluations = 100;
  refused = ExactScheduler().schedule(ModeTables(hard), options, nullptr);
  ASSERT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("100 nodes"));
}

}  // namespace
}  // namespace tandem
