#include "lane/opencl/kernel_plan.h"

#include <algorithm>
#include <type_traits>

#include "fmt/format.h"
#include "lane/opencl/plan_internal.h"

namespace tandem::opencl {

// The kernels know functions by number.
static_assert(IDENTITY == static_cast<int>(Function::kIdentity));
static_assert(GELU_TANH == static_cast<int>(Function::kGeluTanh));
static_assert(COS == static_cast<int>(Function::kCos));

ImplementationInfo SlicePlan::info() const {
  ImplementationInfo info;
  info.name = name;
  info.computed_flops = computed_flops;
  info.dispatches = static_cast<int64_t>(kernels.size());
  for (const KernelPlan& kernel : kernels) {
    info.work_groups +=
        static_cast<int64_t>(kernel.groups[0] * kernel.groups[1] * kernel.groups[2]);
  }
  if (!kernels.empty()) {
    for (size_t d = 0; d < 3; ++d) {
      info.local_size[d] = static_cast<int64_t>(kernels[0].local[d]);
      info.global_size[d] = static_cast<int64_t>(kernels[0].groups[d] * kernels[0].local[d]);
    }
  }
  return info;
}

// Work-items to a group where each has its own vector: a few times what any GPU runs in step.
constexpr int kItems = 128;

// Of input lines that kernels over images keep in the first-level cache, and the fewest channels
// whose lines are worth jumping over the others for. Not where the images come from beyond the
// second-level cache, which is good at whole lines.
constexpr int64_t kImageBytes = 24 << 10;
constexpr int64_t kLeastChannels = 32;
constexpr int64_t kCachedBytes = 768 << 10;
constexpr int64_t kGroupsPerUnit = 4;

Status PlanContext::unsupported_layout(const char* what) const {
  return unsupported(
      fmt::format("the OpenCL kernel of {} ({}) needs {}", op.name, to_string(op.kind()), what));
}

LoopWidth loop_width(const DeviceTraits& device, bool contiguous) {
  if (device.single_item_groups) return {1, contiguous ? 16 : 1};
  return {kItems, contiguous ? 4 : 1};
}

ImageCut cut_image(int64_t lines, int64_t pixels, int64_t channels, int64_t lines_in_use,
                   const TensorView& in, LoopWidth width, const DeviceTraits& device) {
  if (width.work_items > 1) {
    const int64_t vectors = lines * pixels * divide_up(channels, width.lanes);
    return {1, channels, {static_cast<size_t>(divide_up(vectors, width.work_items)), 1, 1}};
  }
  int64_t channel_share = channels;
  const int64_t channel_bytes = in.dims[2] * in.dims[3] * int64_t{sizeof(float)};
  if (in.dims[0] * channels * channel_bytes <= kCachedBytes) {
    // As many channels as have their input lines stay in the first-level cache from one output line
    // to the next.
    const int64_t line_bytes = lines_in_use * in.dims[3] * int64_t{sizeof(float)};
    channel_share = std::clamp(kImageBytes / line_bytes / kLineFloats * kLineFloats, kLeastChannels,
                               std::max(kLeastChannels, channels));
  }
  const int64_t blocks = divide_up(channels, channel_share);
  int64_t line_share = lines;
  if (device.compute_units > 1) {
    line_share = divide_up(lines, divide_up(kGroupsPerUnit * device.compute_units, blocks));
  }
  // Equal shares of whole vectors.
  const int64_t share = round_up(divide_up(channels, blocks), kLineFloats);
  return {line_share,
          share,
          {static_cast<size_t>(divide_up(lines, line_share)),
           static_cast<size_t>(divide_up(channels, share)), 1}};
}

KernelPlan start_kernel(const char* file, const char* kernel, LoopWidth width,
                        const std::string& options) {
  KernelPlan plan;
  plan.files = {"arguments.cl", "common.cl", "box.cl", "product.cl", "epilogue.cl", file};
  plan.kernel = kernel;
  plan.options = fmt::format("-cl-mad-enable -DWORK_ITEMS={} -DLANES={}{}", width.work_items,
                             width.lanes, options);
  plan.local = {static_cast<size_t>(width.work_items), 1, 1};
  return plan;
}

SharedArgument at(const TensorView& view, const Dims& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * view.strides[d];
  return {view.as<std::byte>() + offset * static_cast<int64_t>(element_size(view.type))};
}

StatusOr<SlicePlan> plan_slice(const Graph& graph, const TensorBindings& bindings,
                               const Slice& slice, const DeviceTraits& device) {
  const Operator& op = graph.op(slice.op);
  const PlanContext context{graph, bindings, op, output_region(graph, slice), device};
  switch (op.kind()) {
    case OperatorKind::kConv:
    case OperatorKind::kConvTranspose:
    case OperatorKind::kLinear:
      return plan_conv(context);
    case OperatorKind::kMatMul:
      return plan_matmul(context);
    case OperatorKind::kPool:
      return plan_pool(context);
    case OperatorKind::kReduce:
      return plan_reduce(context);
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm:
      return plan_lines(context);
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
      return plan_elementwise(context);
    case OperatorKind::kConcat:
      return plan_concat(context);
    case OperatorKind::kCopy:
      return plan_copy(context);
    case OperatorKind::kReshape:
      return plan_reshape(context);
    case OperatorKind::kGather:
      return plan_gather(context);
    case OperatorKind::kPad:
      return plan_pad(context);
    case OperatorKind::kResize:
      return plan_resize(context);
  }
  return internal_error(fmt::format("{} has an unknown kind", op.name));
}

}  // namespace tandem::opencl
