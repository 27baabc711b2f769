// ONNX's conformance tests on one lane, on the other, and cut across both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "graph/partition.h"
#include "lane/lane.h"
#include "schedule/schedule.h"
#include "tandem/platform.h"
#include "tandem/session.h"
#include "tests/conformance/node_tests.h"

namespace tandem::testing {
namespace {

constexpr int kFloor = 520;     // tests that must pass
constexpr int kCutFloor = 270;  // and be cut

// Drivers start once per process.
StatusOr<std::shared_ptr<Platform>> platform() {
  static const StatusOr<std::shared_ptr<Platform>> shared = [] {
    PlatformOptions options;
    options.program_cache_dir =
        (std::filesystem::path(::testing::TempDir()) / "tandem_conformance_programs").string();
    return Platform::create(options);
  }();
  return shared;
}

// The first CPU lane and the OpenCL lane.
struct Pair {
  int cpu = kNone;
  int gpu = kNone;
};
Pair lanes_of(const Platform& platform) {
  Pair pair;
  for (int i = static_cast<int>(platform.lanes().size()) - 1; i >= 0; --i) {
    (platform.lanes()[i]->info().kind == LaneKind::kOpenCl ? pair.gpu : pair.cpu) = i;
  }
  return pair;
}

// Cuts every operator that can be cut about half-way, along its axis number `choice` (or its last
// one, if it has fewer), and deals the others to the lanes in turn. `cuts` counts the former.
StatusOr<Schedule> split_schedule(const Graph& graph, size_t lanes, Pair pair, size_t choice,
                                  int* cuts) {
  Schedule schedule;
  schedule.strategy = "split";
  schedule.lanes.resize(lanes);
  const auto put = [&](int lane, const Slice& slice) {
    ScheduledSlice scheduled;
    scheduled.slice = slice;
    schedule.lanes[lane].push_back(scheduled);
  };
  for (OperatorId op = 0; op < static_cast<OperatorId>(graph.operators().size()); ++op) {
    if (is_alias(graph, op)) continue;
    // Which lane begins changes from one operator to the next, so that data has to cross.
    const int first = op % 2 == 0 ? pair.cpu : pair.gpu;
    const int second = op % 2 == 0 ? pair.gpu : pair.cpu;
    const std::vector<PartitionAxis> axes = partition_axes(graph, op);
    if (axes.empty()) {
      put(first, {op});
      continue;
    }
    const PartitionAxis axis = axes[std::min(choice, axes.size() - 1)];
    const int64_t extent = graph.output_of(op).dims[axis.axis];
    const int64_t half =
        std::max(axis.granularity, extent / 2 / axis.granularity * axis.granularity);
    put(first, {op, axis.axis, 0, half});
    put(second, {op, axis.axis, half, extent});
    ++*cuts;
  }
  TANDEM_RETURN_IF_ERROR(derive_waits(graph, &schedule));
  return schedule;
}

// "" if all is well, else what is wrong.
std::string run(const NodeTest& test, const LoadedTest& loaded, const SessionOptions& options) {
  StatusOr<std::shared_ptr<Platform>> on = platform();
  StatusOr<std::unique_ptr<Session>> session = Session::create(*loaded.model, *on, options);
  if (!session.ok()) return session.status().to_string();
  std::vector<HostTensor> outputs;
  // Twice: a session must not depend on what an earlier run left behind.
  for (int i = 0; i < 2; ++i) {
    const Status status = (*session)->run(loaded.inputs, &outputs);
    if (!status.ok()) return status.to_string();
    const std::string difference = compare_outputs(test, outputs);
    if (!difference.empty()) return difference;
  }
  return "";
}

SessionOptions base_options() {
  SessionOptions options;
  options.calibration_dir = "none";
  return options;
}

// Runs the test once per choice of axes. `cut`: whether any operator was cut.
std::string run_split(const NodeTest& test, const LoadedTest& loaded, SyncMechanism sync,
                      bool* cut) {
  StatusOr<std::shared_ptr<Platform>> on = platform();
  const Graph& graph = loaded.model->graph();
  size_t choices = 1;
  for (OperatorId op = 0; op < static_cast<OperatorId>(graph.operators().size()); ++op) {
    choices = std::max(choices, partition_axes(graph, op).size());
  }
  int cuts = 0;
  for (size_t choice = 0; choice < choices; ++choice) {
    StatusOr<Schedule> schedule =
        split_schedule(graph, (*on)->lanes().size(), lanes_of(**on), choice, &cuts);
    if (!schedule.ok()) return schedule.status().to_string();
    const Status valid = check_schedule(graph, *schedule);
    if (!valid.ok()) return valid.to_string();
    SessionOptions options = base_options();
    options.sync = sync;
    options.schedule = std::make_shared<const Schedule>(std::move(*schedule));
    const std::string wrong = run(test, loaded, options);
    if (!wrong.empty()) return "cut along axis choice " + std::to_string(choice) + ": " + wrong;
  }
  *cut = cuts > 0;
  return "";
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
      return run(test, loaded, options);
    });
  }

  static void run_cut(bool optimize, SyncMechanism sync) {
    int cut = 0;
    run_node_tests(optimize, kFloor, [&](const NodeTest& test, const LoadedTest& loaded) {
      bool was_cut = false;
      const std::string wrong = run_split(test, loaded, sync, &was_cut);
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
