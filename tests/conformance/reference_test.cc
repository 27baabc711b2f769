// ONNX's conformance tests on the double-precision reference: tells a mistake of the importer from
// one of a lane, and is how the reference itself is checked.
#include <gtest/gtest.h>

#include "tests/conformance/lane_runs.h"

namespace tandem::testing {
namespace {

constexpr int kFloor = 520;  // tests that must pass

std::string run_reference(const NodeTest& test, const LoadedTest& loaded) {
  return compare_outputs(test, reference_outputs(loaded));
}

TEST(OnnxReference, WithPasses) { run_node_tests(true, kFloor, run_reference); }
TEST(OnnxReference, WithoutPasses) { run_node_tests(false, kFloor, run_reference); }

}  // namespace
}  // namespace tandem::testing
