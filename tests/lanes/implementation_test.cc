// What the CPU lane picks for slices of the operator table: implementation() says what bind() does,
// and no library ever runs its reference code, whatever the strides.
#include <dnnl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <map>

#include "graph/partition.h"
#include "lane/cpu/cpu_lane.h"
#include "tests/lanes/lane_harness.h"
#include "tests/support/random.h"

namespace tandem::testing {
namespace {

std::vector<int> two_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// The whole operator, and some random legal slices along every axis.
std::vector<Slice> slices_of(const Graph& graph, Random& r) {
  constexpr int kPerAxis = 3;
  std::vector<Slice> slices = {{0}};
  for (const PartitionAxis& axis : partition_axes(graph, 0)) {
    const int64_t extent = graph.output_of(0).dims[axis.axis];
    const int64_t units = (extent + axis.granularity - 1) / axis.granularity;
    for (int i = 0; i < kPerAxis; ++i) {
      const int64_t begin = r.integer(0, units - 1), end = r.integer(begin + 1, units);
      slices.push_back(
          {0, axis.axis, begin * axis.granularity, std::min(end * axis.granularity, extent)});
    }
  }
  return slices;
}

class CpuImplementation : public ::testing::Test {
 protected:
  void SetUp() override {
    cores_ = two_cores();
    ASSERT_FALSE(cores_.empty());
    StatusOr<std::unique_ptr<Lane>> lane = make_cpu_lane({"cpu", cores_});
    ASSERT_TRUE(lane.ok()) << lane.status().to_string();
    thread_ = std::make_unique<LaneThread>(std::move(lane).value());
    ASSERT_TRUE(thread_->entered().ok());
  }

  // Asks, binds and runs; counts what was picked.
  void walk(const OperatorCase& c, Placement placement, uint64_t seed) {
    SCOPED_TRACE(c.name + (placement == Placement::kInside ? ", inside other tensors" : ""));
    StatusOr<BuiltCase> built = build(c, seed);
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    const BoundCase bound(*built, placement, nullptr);
    Random r(seed);
    const Status status = thread_->run([&]() -> Status {
      TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<LaneProgram> program,
                              thread_->lane().load(built->graph, bound.bindings()));
      for (const Slice& slice : slices_of(built->graph, r)) {
        const int threads = static_cast<int>(r.integer(1, static_cast<int64_t>(cores_.size())));
        TANDEM_ASSIGN_OR_RETURN(const ImplementationInfo info,
                                program->implementation(slice, threads));
        TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, program->bind(slice, threads));
        const std::string where = to_string(built->graph, slice) + ": " + info.name;
        EXPECT_EQ(info, task->info()) << where << " against " << task->info().name;
        EXPECT_EQ(info.threads, threads) << where;
        EXPECT_GT(info.work_groups, 0) << where;
        EXPECT_GE(info.computed_flops, 0) << where;
        EXPECT_EQ(info.library_variant.find("ref"), std::string::npos) << info.library_variant;
        EXPECT_EQ(info.library_variant.empty(), !info.name.starts_with("onednn")) << where;
        TANDEM_RETURN_IF_ERROR(task->launch());
        ++picked_[info.name];
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

  void walk_all() {
    uint64_t seed = 1;
    for (const Placement placement : {Placement::kOwn, Placement::kInside}) {
      for (const OperatorCase& c : operator_table()) walk(c, placement, ++seed);
      for (int i = 0; i < kRandomCases; ++i) {
        ++seed;
        walk(random_case(seed), placement, seed);
      }
    }
  }

  static constexpr int kRandomCases = 400;
  std::vector<int> cores_;
  std::unique_ptr<LaneThread> thread_;
  std::map<std::string, int> picked_;
};

TEST_F(CpuImplementation, IsWhatBindDoesAndNeverALibrarysReference) {
  // oneDNN's own word for it: a line per primitive that it runs.
  ASSERT_EQ(dnnl_set_verbose(1), dnnl_success);
  ::testing::internal::CaptureStdout();
  walk_all();
  const std::string log = ::testing::internal::GetCapturedStdout();
  dnnl_set_verbose(0);
  int convolutions = 0;
  for (size_t at = log.find(",convolution,"); at != std::string::npos;
       at = log.find(",convolution,", at + 1)) {
    const std::string line = log.substr(at, log.find('\n', at) - at);
    EXPECT_FALSE(line.starts_with(",convolution,ref")) << line;
    ++convolutions;
  }
  EXPECT_GE(convolutions, picked_["onednn_direct"] + picked_["onednn_winograd"]);
  // What the table must reach for this to mean anything.
  EXPECT_GT(picked_["loops_tiled_gemm"], 0);
  EXPECT_GT(picked_["loops_batched_gemm"], 0);
  EXPECT_GT(picked_["loops_depthwise"], 0);
}

}  // namespace
}  // namespace tandem::testing
