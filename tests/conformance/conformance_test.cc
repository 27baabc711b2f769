// ONNX's conformance tests on one lane, on the other, and cut across both.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/conformance/lane_runs.h"

namespace tandem::testing {
namespace {

constexpr int kFloor = 520;     // tests that must pass
constexpr int kCutFloor = 270;  // and be cut

Compare comparison(const NodeTest& test) {
  return [&test](const std::vector<HostTensor>& outputs) { return compare_outputs(test, outputs); };
}

class OnnxConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::shared_ptr<Platform>> on = platform();
    ASSERT_TRUE(on.ok()) << on.status().to_string();
    ASSERT_NE(lanes_of(**on).cpu, kNone);
    ASSERT_NE(lanes_of(**on).gpu, kNone) << "no OpenCL lane";
  }

  static void run_whole(const char* strategy) {
    run_node_tests(true, kFloor, [&](const NodeTest& test, const LoadedTest& loaded) {
      SessionOptions options = base_options();
      options.strategy = strategy;
      return run_on_lanes(loaded, options, comparison(test));
    });
  }

  static void run_cut(bool optimize, SyncMechanism sync) {
    int cut = 0;
    run_node_tests(optimize, kFloor, [&](const NodeTest& test, const LoadedTest& loaded) {
      bool was_cut = false;
      const std::string wrong = run_split(loaded, sync, comparison(test), &was_cut);
      cut += was_cut;
      return wrong;
    });
    std::printf("%d of those passed were cut across both lanes\n", cut);
    EXPECT_GE(cut, kCutFloor) << "partition axes of some operator were lost";
  }
};

TEST_F(OnnxConformance, Cpu) { run_whole("cpu"); }
TEST_F(OnnxConformance, Gpu) { run_whole("gpu"); }
TEST_F(OnnxConformance, Split) { run_cut(true, SyncMechanism::kAuto); }
TEST_F(OnnxConformance, SplitWithEvents) { run_cut(true, SyncMechanism::kEvent); }
// Without passes every node of the file is lowered as it stands.
TEST_F(OnnxConformance, SplitWithoutPasses) { run_cut(false, SyncMechanism::kAuto); }

}  // namespace
}  // namespace tandem::testing
