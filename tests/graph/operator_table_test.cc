// The table itself: complete, buildable, reproducible.
#include "tests/support/operator_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tandem::testing {
namespace {

TEST(OperatorTable, NamesAreUniqueAndEveryCaseBuilds) {
  std::set<std::string> names;
  for (const OperatorCase& c : operator_table()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    StatusOr<BuiltCase> built = build(c, 1);
    EXPECT_TRUE(built.ok()) << c.name << ": " << built.status().to_string();
  }
}

TEST(OperatorTable, HasEveryKindAndFunction) {
  std::set<OperatorKind> kinds;
  std::set<Function> functions;
  for (const OperatorCase& c : operator_table()) {
    kinds.insert(c.kind());
    if (const auto* unary = std::get_if<UnaryAttributes>(&c.attributes)) {
      functions.insert(unary->function.function);
    }
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kOperatorKinds));
  EXPECT_EQ(functions.size(), static_cast<size_t>(Function::kCos) + 1);
}

TEST(OperatorTable, RandomCasesBuildAndRepeat) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const OperatorCase c = random_case(seed);
    StatusOr<BuiltCase> built = build(c, seed);
    ASSERT_TRUE(built.ok()) << c.name << ": " << built.status().to_string();
    StatusOr<BuiltCase> again = build(random_case(seed), seed);
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(built->inputs.size(), again->inputs.size());
    for (size_t i = 0; i < built->inputs.size(); ++i) {
      ASSERT_EQ(built->inputs[i].bytes, again->inputs[i].bytes);
    }
  }
}

// The tolerance is of use only if a missing summand stands out from it.
TEST(OperatorTable, ToleranceIsSmallNextToTheValues) {
  for (const OperatorCase& c : operator_table()) {
    StatusOr<BuiltCase> built = build(c, 1);
    ASSERT_TRUE(built.ok());
    if (work_of(built->graph, 0).flops > 1e7) continue;  // the reference takes its time
    const Expected expected = expected_output(*built);
    double squares = 0;
    double tolerance = 0;
    for (size_t i = 0; i < expected.tolerance.size(); ++i) {
      ASSERT_TRUE(std::isfinite(expected.output.values[i])) << c.name;
      squares += expected.output.values[i] * expected.output.values[i];
      tolerance = std::max(tolerance, expected.tolerance[i]);
    }
    const double rms = std::sqrt(squares / static_cast<double>(expected.tolerance.size()));
    EXPECT_LT(tolerance, 4e-3 * std::max(rms, 0.1)) << c.name;
  }
}

}  // namespace
}  // namespace tandem::testing
