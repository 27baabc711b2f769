// Every case of the operator table on every lane: whole, with teams of one and two threads, and cut
// along every axis at a random legal place with the parts on different lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>

#include "graph/partition.h"
#include "lane/cpu/cpu_lane.h"
#include "lane/opencl/opencl_lane_impl.h"
#include "tests/lanes/lane_harness.h"
#include "tests/support/random.h"

namespace tandem::testing {
namespace {

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// The lanes of this process; PoCL can be started only once in it.
struct Lanes {
  std::unique_ptr<LaneThread> cpu;   // one core
  std::unique_ptr<LaneThread> team;  // two cores, or half of many
  std::unique_ptr<LaneThread> gpu;
  opencl::LaneImpl* queue = nullptr;  // of gpu
  Status status;

  Lanes() { status = start(); }

  Status start() {
    const std::vector<int> cores = usable_cores();
    if (cores.empty()) return internal_error("no usable core");
    OpenClLaneOptions options;
    const auto half = cores.begin() + static_cast<std::ptrdiff_t>(cores.size() / 2);
    const bool many = cores.size() >= 4;
    options.cores = many ? std::vector<int>(cores.begin(), half) : std::vector{cores.front()};
    options.program_cache_dir =
        (std::filesystem::path(::testing::TempDir()) / "tandem_lanes_test_programs").string();
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<opencl::LaneImpl> opencl,
                            opencl::LaneImpl::create(options));
    queue = opencl.get();
    gpu = std::make_unique<LaneThread>(std::move(opencl));
    TANDEM_RETURN_IF_ERROR(gpu->entered());
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Lane> one, make_cpu_lane({"cpu", {cores.back()}}));
    cpu = std::make_unique<LaneThread>(std::move(one));
    TANDEM_RETURN_IF_ERROR(cpu->entered());
    std::vector<int> members = {cores.front()};
    if (cores.size() > 1) members.push_back(cores.back());
    if (many) members.assign(half, cores.end());
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Lane> several, make_cpu_lane({"cpu.team", members}));
    team = std::make_unique<LaneThread>(std::move(several));
    return team->entered();
  }
};

Lanes& lanes() {
  static Lanes* const lanes = new Lanes;  // outlives static destruction, as drivers do not like it
  return *lanes;
}

// The OpenCL lane wants to be the first in this process to use OpenCL, or threads.
class LanesFirst : public ::testing::Environment {
 public:
  void SetUp() override { lanes(); }
};
const auto* const kLanesFirst = ::testing::AddGlobalTestEnvironment(new LanesFirst);

// Which kernels an OpenCL lane takes, whatever its device: those for one work-item to a group, as
// CPUs want them, or those for many, as GPUs do; the latter as if the device had a single compute
// unit, or so many that there is never enough work for them.
enum class Kernels { kSingle, kMany, kManyUnits };

struct Runner {
  const char* name;
  LaneThread* thread;
  int threads;
  Kernels kernels = Kernels::kSingle;
};

Status run_slice_on(const Runner& runner, const BuiltCase& built, const TensorBindings& bindings,
                    const Slice& slice) {
  const opencl::DeviceTraits own = lanes().queue->traits();
  opencl::DeviceTraits traits = own;
  if (runner.kernels != Kernels::kSingle) traits.single_item_groups = false;
  if (runner.kernels == Kernels::kManyUnits) traits.compute_units = 128;
  lanes().queue->set_traits(traits);
  const Status status = run_slice(*runner.thread, built, bindings, slice, runner.threads);
  lanes().queue->set_traits(own);
  return status;
}

std::vector<Runner> runners() {
  return {{"cpu, 1 thread", lanes().cpu.get(), 1},
          {"cpu, all threads", lanes().team.get(), 0},
          {"gpu", lanes().gpu.get(), 0},
          {"gpu, many items", lanes().gpu.get(), 0, Kernels::kMany},
          {"gpu, many items and units", lanes().gpu.get(), 0, Kernels::kManyUnits}};
}

void run_whole(const OperatorCase& c, Placement placement, uint64_t seed) {
  SCOPED_TRACE(c.name);
  StatusOr<BuiltCase> built = build(c, seed);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  const Expected expected = expected_output(*built);
  BoundCase bound(*built, placement, lanes().queue);
  const Slice whole{0};
  for (const Runner& runner : runners()) {
    bound.clear_output();
    const Status status = run_slice_on(runner, *built, bound.bindings(), whole);
    EXPECT_TRUE(status.ok()) << runner.name << ": " << status.to_string();
    if (!status.ok()) continue;
    EXPECT_TRUE(bound.check(expected, output_region(built->graph, whole))) << runner.name;
  }
}

// Cuts along every axis in two or three, each part on a lane of its own. Returns the number of
// cuts.
int run_split(const OperatorCase& c, Placement placement, uint64_t seed) {
  SCOPED_TRACE(c.name);
  StatusOr<BuiltCase> built = build(c, seed);
  EXPECT_TRUE(built.ok()) << built.status().to_string();
  if (!built.ok()) return 0;
  const Expected expected = expected_output(*built);
  BoundCase bound(*built, placement, lanes().queue);
  Random r(seed);
  std::vector<Runner> order = runners();
  int cuts = 0;
  for (const PartitionAxis& axis : partition_axes(built->graph, 0)) {
    const int64_t extent = built->graph.output_of(0).dims[axis.axis];
    std::vector<int64_t> bounds = {0, extent};
    for (int64_t n = r.integer(1, 2); n > 0; --n) {
      bounds.push_back(axis.granularity * r.integer(1, (extent - 1) / axis.granularity));
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    for (size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[static_cast<size_t>(r.integer(0, static_cast<int64_t>(i)))]);
    }
    bound.clear_output();
    Region written = output_region(built->graph, {0});
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      const Slice slice{0, axis.axis, bounds[i], bounds[i + 1]};
      const Runner& runner = order[i];
      const std::string where = to_string(built->graph, slice) + " on " + runner.name;
      const Status status = run_slice_on(runner, *built, bound.bindings(), slice);
      EXPECT_TRUE(status.ok()) << where << ": " << status.to_string();
      if (!status.ok()) return cuts;
      written[axis.axis].end = slice.end;
      const ::testing::AssertionResult right = bound.check(expected, written);
      EXPECT_TRUE(right) << where;
      if (!right) return cuts;
      ++cuts;
    }
  }
  return cuts;
}

class OperatorTable : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { ASSERT_TRUE(lanes().status.ok()) << lanes().status.to_string(); }

  OperatorKind kind() const { return static_cast<OperatorKind>(GetParam()); }
};

TEST_P(OperatorTable, Whole) {
  for (const OperatorCase& c : operator_table()) {
    if (c.kind() == kind()) run_whole(c, Placement::kOwn, 1);
  }
}

TEST_P(OperatorTable, WholeInsideOtherTensors) {
  for (const OperatorCase& c : operator_table()) {
    if (c.kind() == kind()) run_whole(c, Placement::kInside, 2);
  }
}

TEST_P(OperatorTable, Split) {
  int cuts = 0;
  for (const OperatorCase& c : operator_table()) {
    if (c.kind() == kind()) cuts += run_split(c, Placement::kOwn, 3);
  }
  EXPECT_GT(cuts, 0);
}

TEST_P(OperatorTable, SplitInsideOtherTensors) {
  for (const OperatorCase& c : operator_table()) {
    if (c.kind() == kind()) run_split(c, Placement::kInside, 4);
  }
}

// TANDEM_RANDOM_CASES: how many per kind; TANDEM_RANDOM_SEED: where they start.
int64_t environment(const char* name, int64_t fallback) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : fallback;
}

TEST_P(OperatorTable, RandomCases) {
  const int64_t count = environment("TANDEM_RANDOM_CASES", 100);
  const int64_t first = environment("TANDEM_RANDOM_SEED", 0);
  for (int64_t i = first; i < first + count; ++i) {
    const uint64_t seed = static_cast<uint64_t>(i * kOperatorKinds + GetParam());
    const OperatorCase c = random_case(seed);
    const Placement placement = i % 2 == 0 ? Placement::kOwn : Placement::kInside;
    run_whole(c, placement, seed);
    run_split(c, placement, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, OperatorTable, ::testing::Range(0, kOperatorKinds),
                         [](const ::testing::TestParamInfo<int>& info) {
                           return std::string(to_string(static_cast<OperatorKind>(info.param)));
                         });

}  // namespace
}  // namespace tandem::testing
