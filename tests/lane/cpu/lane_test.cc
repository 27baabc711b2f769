// The lane itself: creation, pinning, choice of implementations, and what it refuses.
#include <sched.h>

#include <thread>

#include "lane/cpu/cpu_lane.h"
#include "tests/lane/cpu/harness.h"

namespace tandem {
namespace {

using cpu::Case;

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE && cores.size() < 2; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

std::unique_ptr<Lane> lane() {
  auto made = make_cpu_lane({"cpu", usable_cores()});
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(made).value();
}

TEST(CpuLane, RefusesBadCores) {
  EXPECT_EQ(make_cpu_lane({"cpu", {}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(make_cpu_lane({"cpu", {CPU_SETSIZE + 1}}).status().code(),
            StatusCode::kInvalidArgument);
  const int core = usable_cores()[0];
  EXPECT_EQ(make_cpu_lane({"cpu", {core, core}}).status().code(), StatusCode::kInvalidArgument);
}

TEST(CpuLane, DescribesItself) {
  const auto l = lane();
  EXPECT_EQ(l->info().name, "cpu");
  EXPECT_EQ(l->info().kind, LaneKind::kCpu);
  EXPECT_EQ(l->info().max_threads, static_cast<int>(usable_cores().size()));
  EXPECT_FALSE(l->info().asynchronous);
  EXPECT_FALSE(l->info().fingerprint.empty());
}

TEST(CpuLane, PinsItsTeam) {
  const auto l = lane();
  // A thread of its own, so that the test's thread keeps its mask.
  std::thread([&] {
    ASSERT_TRUE(l->enter().ok());
    const std::vector<int>& cores = l->info().cores;
    std::vector<int> seen(cores.size(), -1);
#pragma omp parallel num_threads(l->info().max_threads)
    seen[omp_get_thread_num()] = sched_getcpu();
    EXPECT_EQ(seen, cores);
  }).join();
}

// A convolution between an input and an output in memory, on the lane.
class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ConvAttributes a;
    a.kernel = {3, 3};
    a.pads = {1, 1, 1, 1};
    case_.input({1, 64, 14, 14}, Case::kChannelsLast).constant({64, 64, 3, 3}, 0.05f);
    case_.op(a, {}, Case::kChannelsLast);
    x_ = std::make_unique<cpu::Memory>(case_.graph.tensor(case_.inputs[0]), 0, cpu::kNaN);
    y_ = std::make_unique<cpu::Memory>(case_.graph.output_of(0), 0, 0);
    copy_to_view(case_.values()[0], x_->view());
    bindings_.views.resize(case_.graph.tensors().size());
    bindings_.views[case_.inputs[0]] = x_->view();
    bindings_.views[case_.graph.op(0).output] = y_->view();
  }

  Case case_;
  std::unique_ptr<cpu::Memory> x_, y_;
  TensorBindings bindings_;
};

TEST_F(ProgramTest, SlicesMakeTheWhole) {
  const auto l = lane();
  std::thread([&] {
    ASSERT_TRUE(l->enter().ok());
    auto program = l->load(case_.graph, bindings_);
    ASSERT_TRUE(program.ok());
    const auto expected = reference(case_.graph, case_.values())[case_.graph.op(0).output];
    for (const PartitionAxis& axis : partition_axes(case_.graph, 0)) {
      const int64_t extent = case_.graph.output_of(0).dims[axis.axis];
      const int64_t cut = extent / 2 / axis.granularity * axis.granularity;
      ASSERT_GT(cut, 0);
      for (const Slice& slice : {Slice{0, axis.axis, 0, cut}, Slice{0, axis.axis, cut, extent}}) {
        auto planned = (*program)->implementation(slice, 1);
        ASSERT_TRUE(planned.ok()) << planned.status().to_string();
        auto task = (*program)->bind(slice, 1);
        ASSERT_TRUE(task.ok()) << task.status().to_string();
        EXPECT_EQ((*task)->info().name, planned->name);
        EXPECT_GT((*task)->info().computed_flops, 0);
        EXPECT_TRUE((*task)->launch().ok());
      }
      HostTensor got(DataType::kFloat32, case_.graph.output_of(0).dims);
      copy_from_view(y_->view(), got);
      for (int64_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got.data<float>()[i], expected.values[i], 2e-4) << i;
      }
    }
    EXPECT_GT((*program)->bytes(), 64u * 64 * 9 * 4);
  }).join();
}

TEST_F(ProgramTest, RefusesWhatIsNotBoundAndSlicesThatDoNotFit) {
  const auto l = lane();
  auto program = l->load(case_.graph, bindings_);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ((*program)->bind({0, 1, 8, 64}, 1).status().code(), StatusCode::kInvalidArgument);
  bindings_.views[case_.graph.op(0).output].data = nullptr;
  auto unbound = l->load(case_.graph, bindings_);
  ASSERT_TRUE(unbound.ok());
  EXPECT_EQ((*unbound)->bind({0, kNone, 0, 0}, 1).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(l->load(case_.graph, {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
