#include "predict/splits.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/random.h"

namespace tandem::predict {
namespace {

std::vector<std::string> random_groups(uint64_t seed, int rows, int groups) {
  testing::Random random(seed);
  std::vector<std::string> result;
  for (int i = 0; i < rows; ++i) {
    result.push_back("network " + std::to_string(random.integer(0, groups - 1)));
  }
  return result;
}

TEST(SplitsTest, NoGroupIsInTwoFolds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<std::string> groups = random_groups(seed, 400, 23);
    const std::vector<int> folds = group_folds(groups, 5, seed);
    std::map<std::string, int> fold_of;
    for (size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(fold_of.emplace(groups[i], folds[i]).first->second, folds[i]);
    }
  }
}

TEST(SplitsTest, FoldsShareTheRowsAboutEqually) {
  const std::vector<int> folds = group_folds(random_groups(3, 1000, 100), 5, 7);
  for (int fold = 0; fold < 5; ++fold) {
    EXPECT_NEAR(static_cast<double>(rows_of_fold(folds, fold).size()), 200, 40);
  }
}

TEST(SplitsTest, EveryRowIsHeldOutOnce) {
  const std::vector<int> folds = group_folds(random_groups(3, 100, 10), 4, 7);
  std::set<size_t> seen;
  for (int fold = 0; fold < 4; ++fold) {
    const std::vector<size_t> inside = rows_of_fold(folds, fold);
    EXPECT_EQ(inside.size() + rows_outside_fold(folds, fold).size(), 100u);
    for (const size_t row : inside) EXPECT_TRUE(seen.insert(row).second);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(SplitsTest, TheSeedDecides) {
  const std::vector<std::string> groups = random_groups(3, 200, 40);
  EXPECT_EQ(group_folds(groups, 5, 1), group_folds(groups, 5, 1));
  EXPECT_NE(group_folds(groups, 5, 1), group_folds(groups, 5, 2));
}

TEST(SplitsTest, DrawsRowsWithoutRepeats) {
  const std::vector<size_t> rows = {3, 5, 8, 13, 21, 34};
  const std::vector<size_t> drawn = draw_rows(rows, 4, 1);
  EXPECT_EQ(std::set<size_t>(drawn.begin(), drawn.end()).size(), 4u);
  for (const size_t row : drawn) EXPECT_EQ(std::count(rows.begin(), rows.end(), row), 1);
  EXPECT_EQ(draw_rows(rows, 100, 1), rows);
}

}  // namespace
}  // namespace tandem::predict
