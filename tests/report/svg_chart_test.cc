#include "report/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Where marks are, in order.
std::vector<std::pair<double, double>> marks(const std::string& svg) {
  const std::regex mark("M([-0-9.]+) ([-0-9.]+)h0");
  std::vector<std::pair<double, double>> found;
  for (std::sregex_iterator at(svg.begin(), svg.end(), mark), end; at != end; ++at) {
    found.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  }
  return found;
}

TEST(SvgChart, LinearAxesAreLinearAndUpwards) {
  const auto at = marks(to_svg({.series = {{"s", {{0, 0}, {10, 30}, {20, 60}}}}}));
  ASSERT_EQ(at.size(), 3u);
  EXPECT_NEAR(at[1].first, (at[0].first + at[2].first) / 2, 0.11);
  EXPECT_NEAR(at[1].second, (at[0].second + at[2].second) / 2, 0.11);
  EXPECT_LT(at[0].first, at[2].first);
  EXPECT_GT(at[0].second, at[2].second);
}

TEST(SvgChart, LogarithmicAxesHaveOneRangeForADiagonal) {
  const Chart chart{.logarithmic = true,
                    .diagonal = true,
                    .series = {{"s", {{1, 1}, {10, 10}, {100, 100}, {0, 5}, {-1, 5}, {NAN, 5}}}}};
  const auto at = marks(to_svg(chart));
  ASSERT_EQ(at.size(), 3u);  // of others there is no logarithm
  EXPECT_NEAR(at[1].first - at[0].first, at[2].first - at[1].first, 0.11);
  EXPECT_NEAR(at[0].second - at[1].second, at[1].second - at[2].second, 0.11);
}

TEST(SvgChart, LinesAreJoinedAndNamesEscaped) {
  const std::string svg =
      to_svg({.title = "a < b & c", .series = {{"<s>", {{1, 1}, {2, 2}}, true}}});
  EXPECT_THAT(svg, HasSubstr("<polyline points="));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, Not(HasSubstr("<s>")));
  EXPECT_TRUE(marks(svg).empty());
}

TEST(SvgChart, NothingToDrawIsAChartAllTheSame) {
  EXPECT_THAT(to_svg({}), HasSubstr("</svg>"));
  EXPECT_THAT(to_svg({.logarithmic = true, .diagonal = true}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace tandem
