#include "support/json_error.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tandem {
namespace {

using nlohmann::json;

std::string problem_of(const std::function<void()>& fails) {
  try {
    fails();
  } catch (const json::exception& error) {
    return json_problem(error.what());
  }
  return "nothing is wrong";
}

TEST(JsonProblem, SaysWhereTheTextIsNoJson) {
  const auto parsing = [](const std::string& text) {
    return problem_of([&] { const json parsed = json::parse(text); });
  };
  EXPECT_EQ(parsing("[1]"), "nothing is wrong");
  EXPECT_EQ(parsing("{\n  \"a\": ,"),
            "it is no JSON: line 2, column 8: unexpected ','; expected '[', '{', or a literal");
  EXPECT_EQ(
      parsing(""),
      "it is no JSON: line 1, column 1: unexpected end of input; expected '[', '{', or a literal");
}

TEST(JsonProblem, SaysWhichValueIsMissingOrOfAnotherKind) {
  const json document = json::parse(R"({"lanes": [{"us": 1}, {"us": "fast"}]})");
  EXPECT_EQ(problem_of([&] { static_cast<void>(document.at("operators")); }),
            "'operators' is missing");
  EXPECT_EQ(problem_of([&] { static_cast<void>(document.at("lanes").at(1).at("name")); }),
            "'name' is missing");
  EXPECT_EQ(problem_of([&] { document.at("lanes").at(1).at("us").get<double>(); }),
            "type must be number, but is string");
}

TEST(JsonProblem, IsShortAndOfCharactersThatCanBeShown) {
  const std::string text = "\"" + std::string(10'000, 'x') + "\x01\"";
  const std::string problem = problem_of([&] { const json parsed = json::parse(text); });
  EXPECT_LT(problem.size(), 200);
  for (const char c : json_problem("a \x7f\x80 b")) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(JsonProblem, LeavesOtherTextsAsTheyAre) {
  EXPECT_EQ(json_problem("the family is unknown"), "the family is unknown");
  EXPECT_EQ(json_problem("(of a lane) it is negative"), "(of a lane) it is negative");
  EXPECT_EQ(json_problem(""), "");
}

}  // namespace
}  // namespace tandem
