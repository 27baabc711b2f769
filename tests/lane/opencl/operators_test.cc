// Every operator kind against the reference: odd shapes, paddings, strides, groups; whole and cut
// along every axis; with the kernels for CPUs and, run on whatever device there is, those for GPUs.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "graph/reference.h"
#include "gtest/gtest.h"
#include "lane/opencl/opencl_lane_impl.h"
#include "tests/lane/opencl/operator_cases.h"
#include "tests/lane/opencl/test_lane.h"

namespace tandem::opencl {
namespace {

// How much more than a direct sum a Winograd convolution may round (winograd.h).
constexpr double kWinogradTolerance = 4;

// The whole output, and for every axis three slices whose bounds keep the granularity.
std::vector<std::vector<Slice>> partitions(const Graph& graph) {
  std::vector<std::vector<Slice>> result = {{Slice{0, kNone, 0, 0}}};
  for (const PartitionAxis& axis : partition_axes(graph, 0)) {
    const int64_t extent = graph.output_of(0).dims[static_cast<size_t>(axis.axis)];
    const int64_t steps = (extent + axis.granularity - 1) / axis.granularity;
    if (steps < 2) continue;
    std::vector<Slice> slices;
    int64_t begin = 0;
    for (const int64_t cut : {steps / 3, steps / 2, steps}) {
      const int64_t end = std::min(extent, cut * axis.granularity);
      if (end > begin) slices.push_back({0, axis.axis, begin, end});
      begin = std::max(begin, end);
    }
    result.push_back(std::move(slices));
  }
  return result;
}

void check_case(const Case& c, LaneImpl* lane, double tolerance) {
  const Graph& graph = c.graph;
  ASSERT_EQ(graph.operators().size(), 1u) << c.name;
  const std::vector<ReferenceTensor> expected = reference(graph, c.inputs);
  const ReferenceTensor& want = expected[static_cast<size_t>(graph.op(0).output)];
  for (const std::vector<Slice>& slices : partitions(graph)) {
    Memory memory(lane, graph);
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      copy_to_view(c.inputs[i], memory.bindings[graph.inputs()[i]]);
    }
    auto program = lane->load(graph, memory.bindings);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    std::vector<std::unique_ptr<Task>> tasks;
    for (const Slice& slice : slices) {
      ASSERT_TRUE(check_slice(graph, slice).ok()) << to_string(graph, slice);
      auto task = (*program)->bind(slice, 0);
      ASSERT_TRUE(task.ok()) << c.name << ": " << task.status().to_string();
      tasks.push_back(std::move(task).value());
    }
    // What the first launches left must not hide what is not written.
    memory.spoil(graph.op(0).output);
    for (const auto& task : tasks) ASSERT_TRUE(task->launch().ok());
    ASSERT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
    HostTensor got;
    copy_from_view(memory.bindings[graph.op(0).output], got);
    int failures = 0;
    for (int64_t i = 0; i < got.size() && failures < 3; ++i) {
      const double value = got.data<float>()[i];
      const double right = want.values[static_cast<size_t>(i)];
      if (!(std::abs(value - right) <= tolerance * (1 + std::abs(right)))) {
        ++failures;
        ADD_FAILURE() << c.name << " " << to_string(graph, slices.front()) << " ... ("
                      << slices.size() << " slices), " << tasks[0]->info().name << ": element " << i
                      << " is " << value << ", should be " << right;
      }
    }
    EXPECT_TRUE(memory.untouched_outside(graph.op(0).output)) << c.name;
  }
}

// The lane with other traits, for as long as this lives.
class TraitsScope {
 public:
  TraitsScope(LaneImpl* lane, const DeviceTraits& traits) : lane_(lane), own_(lane->traits()) {
    lane->set_traits(traits);
  }
  ~TraitsScope() { lane_->set_traits(own_); }
  TraitsScope(const TraitsScope&) = delete;
  TraitsScope& operator=(const TraitsScope&) = delete;

 private:
  LaneImpl* lane_;
  DeviceTraits own_;
};

DeviceTraits traits_with(bool single_item_groups, int compute_units,
                         std::optional<int> winograd_outputs = {}) {
  DeviceTraits traits;
  traits.single_item_groups = single_item_groups;
  traits.compute_units = compute_units;
  traits.winograd_outputs = winograd_outputs;
  return traits;
}

// `products`: tiles of kernels for many work-items follow from the number of compute units.
void check_all(const std::vector<Case>& cases, bool products) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  std::vector<DeviceTraits> all = {traits_with(true, 1, 0), traits_with(true, 8),
                                   traits_with(false, 16)};
  if (products) all.push_back(traits_with(false, 1));
  for (const DeviceTraits& traits : all) {
    const TraitsScope scope(lane, traits);
    for (const Case& c : cases) {
      SCOPED_TRACE(traits.single_item_groups ? "single-item groups" : "many-item groups");
      const bool winograd = traits.single_item_groups && !traits.winograd_outputs;
      check_case(c, lane, c.tolerance * (winograd ? kWinogradTolerance : 1));
    }
  }
}

TEST(OpenClOperators, Convolutions) { check_all(conv_cases(), true); }
// An infinity and a NaN in the first group's input channels must not reach the other groups, even
// where groups share a panel of output channels.
TEST(OpenClOperators, GroupsAreIsolated) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  std::vector<Case> cases;
  for (const auto& [c, m, groups] : std::vector<std::array<int64_t, 3>>{
           {128, 128, 32}, {24, 36, 3}, {32, 32, 2}, {6, 24, 6}, {12, 12, 12}, {160, 40, 2}}) {
    cases.push_back(conv_case({.n = 1, .c = c, .h = 5, .w = 6, .m = m, .groups = groups}));
  }
  cases.push_back(conv_transpose_case(16, 24, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4));
  for (const DeviceTraits& traits : {traits_with(true, 1), traits_with(false, 16)}) {
    const TraitsScope scope(lane, traits);
    for (const Case& c : cases) {
      const Operator& op = c.graph.op(0);
      const int64_t groups = op.kind() == OperatorKind::kConv
                                 ? op.as<ConvAttributes>().groups
                                 : op.as<ConvTransposeAttributes>().groups;
      HostTensor x = c.inputs[0];
      const int64_t poisoned = x.size() / groups;  // elements of the first group
      for (int64_t i = 0; i < poisoned; ++i) {
        x.data<float>()[i] = i % 2 == 0 ? std::numeric_limits<float>::infinity()
                                        : std::numeric_limits<float>::quiet_NaN();
      }
      Memory memory(lane, c.graph);
      copy_to_view(x, memory.bindings[c.graph.inputs()[0]]);
      auto program = lane->load(c.graph, memory.bindings);
      ASSERT_TRUE(program.ok()) << program.status().to_string();
      auto task = (*program)->bind({0, kNone, 0, 0}, 0);
      ASSERT_TRUE(task.ok()) << task.status().to_string();
      ASSERT_TRUE((*task)->launch().ok());
      ASSERT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
      HostTensor got;
      copy_from_view(memory.bindings[op.output], got);
      for (int64_t i = got.size() / groups; i < got.size(); ++i) {
        ASSERT_TRUE(std::isfinite(got.data<float>()[i]))
            << c.name << ", " << (*task)->info().name << ": element " << i;
      }
    }
  }
}

TEST(OpenClOperators, WinogradConvolutions) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  for (const DeviceTraits& traits :
       {traits_with(true, 1, 2), traits_with(true, 1, 4), traits_with(true, 8, 4)}) {
    const TraitsScope scope(lane, traits);
    for (const Case& c : conv_cases()) {
      const auto& conv = c.graph.op(0).as<ConvAttributes>();
      if (conv.kernel != Size2{3, 3} || conv.groups > 1) continue;
      check_case(c, lane, c.tolerance * kWinogradTolerance);
    }
  }
}

// The table of winograd.h.
TEST(OpenClOperators, WinogradError) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  struct Bound {
    int outputs;
    double max, rms;  // relative to the root mean square of the outputs, for 64 channels
  };
  for (const int64_t channels : {64, 128, 256, 512}) {
    const Case c = conv_case({.n = 1, .c = channels, .h = 14, .w = 14, .m = 64, .bias = false});
    const std::vector<double> want =
        reference(c.graph, c.inputs)[static_cast<size_t>(c.graph.op(0).output)].values;
    double square = 0;
    for (const double value : want) square += value * value;
    const double scale = std::sqrt(square / static_cast<double>(want.size()));
    // Rounding errors of a sum grow with the root of its length.
    const double growth = std::sqrt(static_cast<double>(channels) / 64);
    for (const Bound& bound : {Bound{0, 4e-6, 6e-7}, Bound{2, 4e-6, 4e-7}, Bound{4, 7e-6, 1e-6}}) {
      const TraitsScope scope(lane, traits_with(true, 1, bound.outputs));
      Memory memory(lane, c.graph);
      copy_to_view(c.inputs[0], memory.bindings[c.graph.inputs()[0]]);
      auto program = lane->load(c.graph, memory.bindings);
      ASSERT_TRUE(program.ok()) << program.status().to_string();
      auto task = (*program)->bind({0, kNone, 0, 0}, 0);
      ASSERT_TRUE(task.ok()) << task.status().to_string();
      EXPECT_EQ((*task)->info().name.find("cl_winograd") == 0, bound.outputs > 0);
      ASSERT_TRUE((*task)->launch().ok());
      ASSERT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
      HostTensor got;
      copy_from_view(memory.bindings[c.graph.op(0).output], got);
      double most = 0;
      double sum = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const double error = std::abs(got.data<float>()[i] - want[i]) / scale;
        most = std::max(most, error);
        sum += error * error;
      }
      const double rms = std::sqrt(sum / static_cast<double>(want.size()));
      const std::string name = fmt::format("{}_channels_{}", (*task)->info().name, channels);
      RecordProperty(name, fmt::format("max {:.1e} rms {:.1e}", most, rms));
      EXPECT_LT(most, bound.max * growth) << name;
      EXPECT_LT(rms, bound.rms * growth) << name;
    }
  }
}

// What the rule chooses for layers of well-known networks, and what is reported of it.
TEST(OpenClOperators, WinogradChoice) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  const TraitsScope scope(lane, traits_with(true, 1));
  const auto info = [lane](const ConvShape& shape, const Slice& slice) {
    const Case c = conv_case(shape);
    Memory memory(lane, c.graph);
    auto program = lane->load(c.graph, memory.bindings);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    auto chosen = (*program)->implementation(slice, 0);
    EXPECT_TRUE(chosen.ok()) << chosen.status().to_string();
    return std::move(chosen).value();
  };
  const Slice whole{0, kNone, 0, 0};
  const ImplementationInfo large = info({.n = 1, .c = 64, .h = 56, .w = 56, .m = 64}, whole);
  EXPECT_EQ(large.name, "cl_winograd_4x4_10x32");
  EXPECT_EQ(large.dispatches, 1);
  EXPECT_GE(large.work_groups, 2);
  EXPECT_DOUBLE_EQ(large.computed_flops, 2.0 * 36 * 200 * 64 * 64);  // 14 x 14 patches
  EXPECT_EQ(info({.n = 1, .c = 512, .h = 7, .w = 7, .m = 512}, whole).name.find("cl_winograd_2x2"),
            0u);
  EXPECT_EQ(info({.n = 1, .c = 3, .h = 56, .w = 56, .m = 64}, whole).name.find("cl_conv_"), 0u);
  // A slice of rows is a smaller image.
  EXPECT_EQ(info({.n = 1, .c = 64, .h = 56, .w = 56, .m = 64}, {0, 2, 8, 28}).computed_flops,
            2.0 * 36 * 70 * 64 * 64);
}

TEST(OpenClOperators, Matrices) { check_all(matrix_cases(), true); }
TEST(OpenClOperators, Others) { check_all(other_cases(), false); }

}  // namespace
}  // namespace tandem::opencl
