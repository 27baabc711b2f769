#include "predict/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/random.h"

namespace tandem::predict {
namespace {

TEST(MetricsTest, EqualsBruteForce) {
  testing::Random random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (int i = 0; i < 101; ++i) {
      measured.push_back(random.real(1, 1000));
      predicted.push_back(measured.back() * random.real(0.7, 1.5));
    }
    const ErrorSummary summary = summarize_errors(predicted, measured);
    std::vector<double> errors;
    double sum = 0;
    double off = 0;
    double all = 0;
    int within = 0;
    for (int i = 0; i < 101; ++i) {
      errors.push_back(std::fabs(predicted[i] - measured[i]) / measured[i]);
      sum += errors.back();
      off += std::fabs(predicted[i] - measured[i]);
      all += measured[i];
      within += errors.back() <= 0.1;
    }
    std::sort(errors.begin(), errors.end());
    EXPECT_EQ(summary.count, 101u);
    EXPECT_NEAR(summary.mape, sum / 101, 1e-12);
    EXPECT_NEAR(summary.within_10, within / 101.0, 1e-12);
    EXPECT_NEAR(summary.time_weighted, off / all, 1e-12);
    EXPECT_NEAR(summary.p90, errors[90], 1e-12);  // 90 of the other 100 are less
  }
}

TEST(MetricsTest, NothingIsZero) {
  EXPECT_EQ(summarize_errors({}, {}).count, 0u);
  EXPECT_EQ(summarize_errors({}, {}).mape, 0);
}

TEST(MetricsTest, RepeatsCompareEachMeasurementWithTheOthersOfItsKey) {
  const std::vector<std::string> keys = {"a", "b", "a", "a", "c"};
  const std::vector<double> measured = {10, 7, 20, 30, 9};
  const ErrorSummary summary = repeat_errors(keys, measured);
  EXPECT_EQ(summary.count, 3u);
  // Others' means: 25, 20, 15.
  EXPECT_NEAR(summary.mape, (1.5 + 0 + 0.5) / 3, 1e-12);
}

}  // namespace
}  // namespace tandem::predict
