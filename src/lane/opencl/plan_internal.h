// The planners of kernel_plan.h, one per family of operators.
#pragma once

#include "lane/opencl/arguments.h"
#include "lane/opencl/kernel_plan.h"

namespace tandem::opencl {

// A slice in context.
struct PlanContext {
  const Graph& graph;
  const TensorBindings& bindings;
  const Operator& op;
  const Region box;  // of the output
  const DeviceTraits& device;

  const TensorView& input(size_t index) const { return bindings[op.inputs[index]]; }
  const TensorView& output() const { return bindings[op.output]; }
  Status unsupported_layout(const char* what) const;
};

StatusOr<SlicePlan> plan_conv(const PlanContext& context);  // and transposed, linear, depthwise
StatusOr<SlicePlan> plan_matmul(const PlanContext& context);
StatusOr<SlicePlan> plan_pool(const PlanContext& context);
StatusOr<SlicePlan> plan_resize(const PlanContext& context);
// Everything that walks over a box.
StatusOr<SlicePlan> plan_elementwise(const PlanContext& context);
StatusOr<SlicePlan> plan_concat(const PlanContext& context);
StatusOr<SlicePlan> plan_copy(const PlanContext& context);
StatusOr<SlicePlan> plan_reshape(const PlanContext& context);
StatusOr<SlicePlan> plan_gather(const PlanContext& context);
StatusOr<SlicePlan> plan_pad(const PlanContext& context);
StatusOr<SlicePlan> plan_reduce(const PlanContext& context);
StatusOr<SlicePlan> plan_lines(const PlanContext& context);  // softmax, layer norm

// Work-items per group and vector width of kernels that loop over a contiguous dimension.
struct LoopWidth {
  int work_items;
  int lanes;
};
LoopWidth loop_width(const DeviceTraits& device, bool contiguous);

// Sums of as many terms are shared by the work-items of a group where there are many.
inline constexpr int64_t kSharedTerms = 64;

// The parts that all programs have in common: files in front of `file`, and options.
KernelPlan start_kernel(const char* file, const char* kernel, LoopWidth width,
                        const std::string& options);

// How the kernels that loop over lines of pixels share them (kernels/box.cl). `lines_in_use`: input
// lines that one output line needs.
struct ImageCut {
  int64_t lines_per_group, channels_per_group;
  std::array<size_t, 3> groups;
};
ImageCut cut_image(int64_t lines, int64_t pixels, int64_t channels, int64_t lines_in_use,
                   const TensorView& in, LoopWidth width, const DeviceTraits& device);

template <typename Arguments>
std::array<size_t, 3> set_image_cut(int64_t lines_in_use, const TensorView& in, LoopWidth width,
                                    const DeviceTraits& device, Arguments* p) {
  const ImageCut cut = cut_image(int64_t{p->images} * p->box_height, p->box_width, p->channels,
                                 lines_in_use, in, width, device);
  p->lines_per_group = static_cast<int>(cut.lines_per_group);
  p->channels_per_group = static_cast<int>(cut.channels_per_group);
  return cut.groups;
}

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// A kernel of `file` over the products of kernels/item_product.cl.
struct GroupTile;
KernelPlan start_group_tile(const char* file, const char* kernel, const GroupTile& tile,
                            const std::string& options);

// Address of element `index` per dimension.
SharedArgument at(const TensorView& view, const Dims& index);

// The activation's number and parameters, into any argument structure that has them.
template <typename Arguments>
void set_activation(const Activation& activation, Arguments* arguments) {
  arguments->function = static_cast<int>(activation.function);
  arguments->alpha = activation.alpha;
  arguments->beta = activation.beta;
}

}  // namespace tandem::opencl
