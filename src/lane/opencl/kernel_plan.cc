#include "lane/opencl/kernel_plan.h"

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

Status PlanContext::unsupported_layout(const char* what) const {
  return unsupported(
      fmt::format("the OpenCL kernel of {} ({}) needs {}", op.name, to_string(op.kind()), what));
}

LoopWidth loop_width(const DeviceTraits& device, bool contiguous) {
  if (device.single_item_groups) return {1, contiguous ? 16 : 1};
  return {kItems, contiguous ? 4 : 1};
}

size_t image_groups(LoopWidth width, int64_t lines, int64_t pixels, int64_t channels) {
  if (width.work_items == 1) return static_cast<size_t>(lines);
  return static_cast<size_t>(
      divide_up(lines * pixels * divide_up(channels, width.lanes), width.work_items));
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
