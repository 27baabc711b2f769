#include "predict/tree_ensemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "predict/boosting.h"
#include "tests/support/random.h"

namespace tandem::predict {
namespace {

Frame random_frame(testing::Random& random, int rows, int columns) {
  std::vector<Feature> features;
  for (int i = 0; i < columns; ++i) features.push_back({"f" + std::to_string(i), "1", "test"});
  Frame frame(std::move(features));
  for (int r = 0; r < rows; ++r) {
    std::vector<double> row;
    // Few distinct values in some columns, so that thresholds are met exactly.
    for (int c = 0; c < columns; ++c) {
      row.push_back(c % 2 == 0 ? random.real(-3, 3) : static_cast<double>(random.integer(0, 6)));
    }
    EXPECT_TRUE(frame.add(row).ok());
  }
  return frame;
}

std::vector<float> targets_of(const Frame& frame) {
  std::vector<float> targets;
  for (size_t i = 0; i < frame.rows(); ++i) {
    targets.push_back(std::sin(frame.at(i, 0)) + frame.at(i, 1) * frame.at(i, 2));
  }
  return targets;
}

class TreeEnsembleTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Depths, TreeEnsembleTest, ::testing::Values(1, 2, 4, 6, 8));

TEST_P(TreeEnsembleTest, EqualsXgboostToTheBit) {
  testing::Random random(GetParam());
  const Frame frame = random_frame(random, 1003, 7);
  const StatusOr<Boosted> boosted = boost(frame, targets_of(frame), {}, Objective::kSquaredError,
                                          {.trees = 40, .depth = GetParam()});
  ASSERT_TRUE(boosted.ok()) << boosted.status().to_string();
  std::vector<float> ours(frame.rows());
  boosted->ensemble.predict(frame.values(), ours);
  EXPECT_EQ(boosted->rounds, 40);
  EXPECT_EQ(ours, boosted->by_xgboost);
  // However many rows are asked for at once.
  for (const size_t together : {1, 15, 16, 50}) {
    std::vector<float> in_parts(frame.rows());
    for (size_t row = 0; row < frame.rows(); row += together) {
      const size_t count = std::min(together, frame.rows() - row);
      boosted->ensemble.predict(
          std::span(frame.values()).subspan(row * frame.columns(), count * frame.columns()),
          std::span(in_parts).subspan(row, count));
    }
    EXPECT_EQ(in_parts, boosted->by_xgboost) << together;
  }
  // A model that predicts nothing would pass the above.
  EXPECT_GT(*std::max_element(ours.begin(), ours.end()), 1);
}

TEST_P(TreeEnsembleTest, LogOddsEqualThoseOfXgboost) {
  testing::Random random(GetParam());
  const Frame frame = random_frame(random, 500, 5);
  std::vector<float> targets;
  for (size_t i = 0; i < frame.rows(); ++i) targets.push_back(frame.at(i, 1) > 3 ? 1.0F : 0.0F);
  const StatusOr<Boosted> boosted =
      boost(frame, targets, {}, Objective::kLogistic, {.trees = 20, .depth = GetParam()});
  ASSERT_TRUE(boosted.ok()) << boosted.status().to_string();
  std::vector<float> ours(frame.rows());
  boosted->ensemble.predict(frame.values(), ours);
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], boosted->by_xgboost[i], 1e-5);
}

TEST(TreeEnsembleTest, TextKeepsEveryBit) {
  testing::Random random(9);
  const Frame frame = random_frame(random, 300, 4);
  const StatusOr<Boosted> boosted =
      boost(frame, targets_of(frame), {}, Objective::kSquaredError, {.trees = 10});
  ASSERT_TRUE(boosted.ok());
  const StatusOr<TreeEnsemble> read = TreeEnsemble::parse(boosted->ensemble.to_text());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  std::vector<float> before(frame.rows());
  std::vector<float> after(frame.rows());
  boosted->ensemble.predict(frame.values(), before);
  read->predict(frame.values(), after);
  EXPECT_EQ(before, after);
}

TEST(TreeEnsembleTest, ThresholdsThemselvesGoRight) {
  TreeEnsemble ensemble(1, 0.5F);
  const std::vector<TreeNode> nodes = {
      {.left = 1, .right = 2, .feature = 0, .threshold = 2}, {.leaf = 10}, {.leaf = 20}};
  ASSERT_TRUE(ensemble.add_tree(nodes).ok());
  const std::vector<float> rows = {1.999F, 2, 3, std::numeric_limits<float>::max()};
  std::vector<float> results(4);
  ensemble.predict(rows, results);
  EXPECT_EQ(results, (std::vector<float>{10.5F, 20.5F, 20.5F, 20.5F}));
}

// The shallow side of a tree is filled up: the greatest number must end there as others do.
TEST(TreeEnsembleTest, ShallowLeavesHoldForAnyValue) {
  TreeEnsemble ensemble(2, 0);
  const std::vector<TreeNode> nodes = {{.left = 1, .right = 2, .feature = 1, .threshold = 0},
                                       {.leaf = 1},
                                       {.left = 3, .right = 4, .feature = 0, .threshold = 0},
                                       {.leaf = 2},
                                       {.leaf = 3}};
  ASSERT_TRUE(ensemble.add_tree(nodes).ok());
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<float> rows = {kMax, -1, -kMax, -1, -1, 1, kMax, 1};
  std::vector<float> results(4);
  ensemble.predict(rows, results);
  EXPECT_EQ(results, (std::vector<float>{1, 1, 2, 3}));
}

TEST(TreeEnsembleTest, RefusesWhatIsNoTree) {
  TreeEnsemble ensemble(1, 0);
  const TreeNode leaf{.leaf = 1};
  EXPECT_FALSE(ensemble.add_tree({}).ok());
  const TreeNode loop{.left = 0, .right = 1};
  EXPECT_FALSE(ensemble.add_tree(std::vector<TreeNode>{loop, leaf}).ok());
  const TreeNode beyond{.left = 1, .right = 7};
  EXPECT_FALSE(ensemble.add_tree(std::vector<TreeNode>{beyond, leaf}).ok());
  const TreeNode unknown{.left = 1, .right = 2, .feature = 5};
  EXPECT_FALSE(ensemble.add_tree(std::vector<TreeNode>{unknown, leaf, leaf}).ok());
}

TEST(TreeEnsembleTest, RefusesDamagedText) {
  for (
      const char* text : {
          "",
          "{}",
          "[]",
          R"({"features":1,"base_score":0,"depths":[1],"comparisons":[0],"thresholds":[1],"leaves":[1]})",
          R"({"features":1,"base_score":0,"depths":[1],"comparisons":[3],"thresholds":[1],"leaves":[1,2]})",
          R"({"features":1,"base_score":0,"depths":[40],"comparisons":[],"thresholds":[],"leaves":[]})",
      }) {
    EXPECT_EQ(TreeEnsemble::parse(text).status().code(), StatusCode::kCorrupt) << text;
  }
}

TEST(BoostingTest, StopsWhereValidationNoLongerImproves) {
  testing::Random random(4);
  const Frame frame = random_frame(random, 400, 3);
  std::vector<float> noise;  // that nothing explains
  for (size_t i = 0; i < frame.rows(); ++i) noise.push_back(static_cast<float>(random.real(-1, 1)));
  std::vector<size_t> validation;
  for (size_t i = 0; i < 100; ++i) validation.push_back(i);
  const StatusOr<Boosted> boosted =
      boost(frame, noise, validation, Objective::kSquaredError, {.trees = 100, .patience = 5});
  ASSERT_TRUE(boosted.ok());
  EXPECT_LT(boosted->rounds, 60);
  EXPECT_EQ(boosted->ensemble.trees(), static_cast<size_t>(boosted->rounds));
}

TEST(BoostingTest, TheSameEveryTime) {
  testing::Random random(5);
  const Frame frame = random_frame(random, 200, 3);
  const std::vector<float> targets = targets_of(frame);
  const auto text = [&] {
    return boost(frame, targets, {}, Objective::kSquaredError, {.trees = 10})->ensemble.to_text();
  };
  EXPECT_EQ(text(), text());
}

TEST(BoostingTest, RefusesOptionsOutOfRange) {
  EXPECT_FALSE(BoostingOptions{.trees = 0}.validate().ok());
  EXPECT_FALSE(BoostingOptions{.depth = 9}.validate().ok());
  EXPECT_FALSE(BoostingOptions{.learning_rate = 0}.validate().ok());
  EXPECT_FALSE(BoostingOptions{.row_share = 1.5}.validate().ok());
  EXPECT_FALSE(BoostingOptions{.feature_share = std::nan("")}.validate().ok());
  EXPECT_TRUE(BoostingOptions{}.validate().ok());
}

TEST(FrameTest, RefusesWhatIsNoNumber) {
  Frame frame({{"bytes", "B", "test"}});
  const Status status = frame.add(std::vector<double>{std::nan("")});
  EXPECT_THAT(status.message(), ::testing::HasSubstr("bytes"));
  EXPECT_FALSE(frame.add(std::vector<double>{1e300}).ok());
  EXPECT_FALSE(frame.add(std::vector<double>{1, 2}).ok());
  EXPECT_EQ(frame.rows(), 0u);
}

}  // namespace
}  // namespace tandem::predict
