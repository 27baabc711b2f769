#include "support/statistics.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(StatisticsTest, SummarizesUnsortedSamples) {
  const Summary summary = summarize({5, 1, 3, 2, 4});
  EXPECT_EQ(summary.count, 5);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.p90, 4.6);
  EXPECT_DOUBLE_EQ(summary.spread, (4.6 - 1.4) / 3);
}

TEST(StatisticsTest, MedianOfAnEvenCountIsBetweenTheMiddleOnes) {
  EXPECT_DOUBLE_EQ(summarize({1, 2, 4, 100}).median, 3);
}

TEST(StatisticsTest, OneSampleAndNone) {
  EXPECT_DOUBLE_EQ(summarize({7}).p90, 7);
  EXPECT_DOUBLE_EQ(summarize({7}).spread, 0);
  EXPECT_EQ(summarize({}).count, 0);
}

}  // namespace
}  // namespace tandem
