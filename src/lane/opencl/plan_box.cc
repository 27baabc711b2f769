// Operators whose kernels walk over a box of the output, element by element or line by line.
#include <algorithm>

#include "fmt/format.h"
#include "graph/reshape_groups.h"
#include "lane/opencl/box.h"
#include "lane/opencl/plan_internal.h"

namespace tandem::opencl {
namespace {

// Elements that one work-group takes: enough to make its start cheap, on a CPU that of a few
// thousand cycles of work.
constexpr int64_t kElementsPerGroup = 16384;
// Of the last dimension, so that a single long row is shared too. A multiple of all vector widths.
constexpr int64_t kColumnsPerGroup = 16384;

// Rows that a group of one work-item takes.
int64_t row_share(int64_t rows, int64_t row_elements, const DeviceTraits& device) {
  int64_t share = std::max<int64_t>(1, kElementsPerGroup / std::max<int64_t>(1, row_elements));
  if (device.compute_units > 1) {
    share = std::min(share, divide_up(rows, 4 * device.compute_units));
  }
  return std::max<int64_t>(1, share);
}

// Cuts rows of p->extent[BOX_LAST] elements, of which each costs as much as `weight` plain ones, as
// box.cl says. The groups along the first dimension.
template <typename Arguments>
size_t cut_rows(int64_t rows, int64_t weight, LoopWidth width, const DeviceTraits& device,
                Arguments* p) {
  const int64_t columns = p->extent[BOX_LAST];
  const int64_t share = row_share(rows, columns * weight, device);
  p->rows = static_cast<int>(rows);
  p->rows_per_group = static_cast<int>(share);
  if (width.work_items == 1) return static_cast<size_t>(divide_up(rows, share));
  return static_cast<size_t>(divide_up(rows * divide_up(columns, width.lanes), width.work_items));
}

// The groups along the second dimension of kernels that cut rows too.
size_t cut_columns(LoopWidth width, ElementwiseArguments* p) {
  p->columns_per_group = static_cast<int>(kColumnsPerGroup);
  if (width.work_items > 1) return 1;
  return static_cast<size_t>(divide_up(p->extent[BOX_LAST], kColumnsPerGroup));
}

int64_t elements_of(const Region& box) {
  int64_t count = 1;
  for (const Range& range : box) count *= range.size();
  return count;
}

Dims begin_of(const Region& box) {
  Dims begin;
  for (const Range& range : box) begin.push_back(range.begin);
  return begin;
}

const char* element_option(const TensorView& view) {
  return view.type == DataType::kFloat32 ? "float" : "long";
}

// One kernel of copy.cl; `which` is COPY, PAD, RESHAPE or GATHER.
KernelPlan start_copy(const char* which, const char* kernel, LoopWidth width, const char* element) {
  std::string options = fmt::format(" -DELEMENT={}", element);
  for (const char* each : {"COPY", "PAD", "RESHAPE", "GATHER"}) {
    options += fmt::format(" -D{}={}", each, int{std::string_view(each) == which});
  }
  return start_kernel("copy.cl", kernel, width, options);
}

// out[box] = a[walk], both given by the box's axes: operand 0 is out, operand 1 is a.
StatusOr<KernelPlan> plan_box_copy(const PlanContext& context, std::vector<BoxAxis> axes,
                                   SharedArgument a, SharedArgument out) {
  StatusOr<Box> box = make_box(std::move(axes), 2, false);
  if (!box.ok()) return box.status().with_context(context.op.name);
  ElementwiseArguments p{};
  box->extents(p.extent);
  box->strides(0, p.out_stride);
  box->strides(1, p.a_stride);
  const LoopWidth width = loop_width(context.device, box->contiguous);
  KernelPlan kernel = start_copy("COPY", "copy", width, element_option(context.output()));
  kernel.groups = {cut_rows(box->rows(), 1, width, context.device, &p), cut_columns(width, &p), 1};
  kernel.arguments = {a, out, value_argument(p)};
  return kernel;
}

SlicePlan single(const char* name, KernelPlan kernel, const PlanContext& context,
                 double flops_per_element) {
  SlicePlan plan;
  plan.name = name;
  plan.computed_flops = flops_per_element * static_cast<double>(elements_of(context.box));
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

// Stride over output dimension `d` of an operand that broadcasts as numpy does.
int64_t broadcast_stride(const TensorView& operand, size_t rank, size_t d) {
  const size_t missing = rank - operand.dims.size();
  if (d < missing || operand.dims[d - missing] == 1) return 0;
  return operand.strides[d - missing];
}

SharedArgument broadcast_at(const TensorView& operand, const Region& box) {
  const size_t missing = box.size() - operand.dims.size();
  Dims index;
  for (size_t d = missing; d < box.size(); ++d) {
    index.push_back(operand.dims[d - missing] == 1 ? 0 : box[d].begin);
  }
  return at(operand, index);
}

// Whether `count` source dimensions from `begin` on are walked through evenly in row-major order,
// and then the stride of one step.
bool even_walk(const TensorView& source, size_t begin, size_t end, int64_t* stride) {
  std::vector<BoxAxis> axes;
  for (size_t d = begin; d < end; ++d) axes.push_back({source.dims[d], {source.strides[d]}});
  axes = merge_axes(std::move(axes));
  if (axes.size() > 1) return false;
  *stride = axes.empty() ? 0 : axes[0].strides[0];
  return true;
}

}  // namespace

StatusOr<SlicePlan> plan_elementwise(const PlanContext& context) {
  const bool binary = context.op.kind() == OperatorKind::kBinary;
  const TensorView& y = context.output();
  if (y.type != DataType::kFloat32) return context.unsupported_layout("float32 elements");
  const TensorView& a = context.input(0);
  const TensorView& b = context.input(binary ? 1 : 0);
  const size_t rank = y.dims.size();
  std::vector<BoxAxis> axes;
  for (size_t d = 0; d < rank; ++d) {
    axes.push_back({context.box[d].size(),
                    {y.strides[d], broadcast_stride(a, rank, d), broadcast_stride(b, rank, d)}});
  }
  StatusOr<Box> box = make_box(std::move(axes), 3, true);
  if (!box.ok()) return box.status().with_context(context.op.name);
  ElementwiseArguments p{};
  box->extents(p.extent);
  box->strides(0, p.out_stride);
  box->strides(1, p.a_stride);
  box->strides(2, p.b_stride);
  if (binary) {
    const auto& attributes = context.op.as<BinaryAttributes>();
    p.operation = static_cast<int>(attributes.kind);
    set_activation(attributes.activation, &p);
  } else {
    set_activation(context.op.as<UnaryAttributes>().function, &p);
  }
  const LoopWidth width = loop_width(context.device, box->contiguous);
  KernelPlan kernel = start_kernel("elementwise.cl", "elementwise", width,
                                   fmt::format(" -DBINARY={}", int{binary}));
  kernel.groups = {cut_rows(box->rows(), 1, width, context.device, &p), cut_columns(width, &p), 1};
  kernel.arguments = {broadcast_at(a, context.box), broadcast_at(b, context.box),
                      at(y, begin_of(context.box)), value_argument(p)};
  return single(binary ? "cl_binary" : "cl_unary", std::move(kernel), context, 1);
}

StatusOr<SlicePlan> plan_concat(const PlanContext& context) {
  const auto axis = static_cast<size_t>(context.op.as<ConcatAttributes>().axis);
  const TensorView& y = context.output();
  SlicePlan plan;
  plan.name = "cl_concat";
  int64_t start = 0;  // of the operand, along the axis of the output
  for (size_t i = 0; i < context.op.inputs.size(); ++i) {
    const TensorView& x = context.input(i);
    Region part = context.box;
    part[axis].begin = std::max(part[axis].begin, start);
    part[axis].end = std::min(part[axis].end, start + x.dims[axis]);
    const int64_t operand_start = std::exchange(start, start + x.dims[axis]);
    if (is_empty(part)) continue;
    const Dims to = begin_of(part);
    Dims from = to;
    from[axis] -= operand_start;
    const SharedArgument source = at(x, from);
    const SharedArgument target = at(y, to);
    // The memory plan may have put the operand where it belongs already.
    if (source.data == target.data && x.strides == y.strides) continue;
    std::vector<BoxAxis> axes;
    for (size_t d = 0; d < y.dims.size(); ++d) {
      axes.push_back({part[d].size(), {y.strides[d], x.strides[d]}});
    }
    TANDEM_ASSIGN_OR_RETURN(KernelPlan kernel,
                            plan_box_copy(context, std::move(axes), source, target));
    plan.kernels.push_back(std::move(kernel));
  }
  return plan;
}

StatusOr<SlicePlan> plan_copy(const PlanContext& context) {
  const auto& copy = context.op.as<CopyAttributes>();
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  Dims from = copy.start;
  std::vector<BoxAxis> axes;
  for (size_t d = 0; d < y.dims.size(); ++d) {
    int64_t stride = 0;
    if (copy.source_axis[d] != kNone) {
      const auto source = static_cast<size_t>(copy.source_axis[d]);
      stride = x.strides[source] * copy.step[d];
      from[source] += context.box[d].begin * copy.step[d];
    }
    axes.push_back({context.box[d].size(), {y.strides[d], stride}});
  }
  TANDEM_ASSIGN_OR_RETURN(KernelPlan kernel, plan_box_copy(context, std::move(axes), at(x, from),
                                                           at(y, begin_of(context.box))));
  return single("cl_copy", std::move(kernel), context, 0);
}

StatusOr<SlicePlan> plan_reshape(const PlanContext& context) {
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const Dims begin = begin_of(context.box);
  // Where the source is walked through evenly within each group of dimensions, this is a copy.
  bool copies = true;
  std::vector<BoxAxis> axes(y.dims.size());
  int64_t offset = 0;
  for (const ReshapeGroup& group : reshape_groups(x.dims, y.dims)) {
    int64_t stride = 0;
    copies = copies && even_walk(x, group.source_begin, group.source_end, &stride);
    for (size_t d = group.output_end; d-- > group.output_begin;) {
      axes[d] = {context.box[d].size(), {y.strides[d], stride}};
      offset += begin[d] * stride;
      stride *= y.dims[d];
    }
  }
  if (copies) {
    const auto bytes = static_cast<int64_t>(element_size(x.type));
    TANDEM_ASSIGN_OR_RETURN(KernelPlan kernel,
                            plan_box_copy(context, std::move(axes),
                                          {x.as<std::byte>() + offset * bytes}, at(y, begin)));
    return single("cl_reshape_copy", std::move(kernel), context, 0);
  }
  if (x.dims.size() > kBoxRank || y.dims.size() > kBoxRank) {
    return context.unsupported_layout("at most eight dimensions");
  }
  ReshapeArguments p{};
  std::fill_n(p.extent, kBoxRank, 1);
  std::fill_n(p.source, kBoxRank, 1);
  int64_t number = 1;
  for (size_t d = y.dims.size(); d-- > 0;) {
    const size_t to = d + kBoxRank - y.dims.size();
    p.extent[to] = static_cast<int>(context.box[d].size());
    p.out_stride[to] = y.strides[d];
    p.number[to] = number;
    p.first_number += begin[d] * number;
    number *= y.dims[d];
  }
  for (size_t d = 0; d < x.dims.size(); ++d) {
    p.source[d + kBoxRank - x.dims.size()] = static_cast<int>(x.dims[d]);
    p.a_stride[d + kBoxRank - x.dims.size()] = x.strides[d];
  }
  const int64_t rows = elements_of(context.box) / p.extent[BOX_LAST];
  const LoopWidth width = loop_width(context.device, false);
  KernelPlan kernel = start_copy("RESHAPE", "reshape", width, element_option(y));
  kernel.groups[0] = cut_rows(rows, 1, width, context.device, &p);
  kernel.arguments = {SharedArgument{x.data}, at(y, begin), value_argument(p)};
  return single("cl_reshape", std::move(kernel), context, 0);
}

StatusOr<SlicePlan> plan_gather(const PlanContext& context) {
  const auto axis = static_cast<size_t>(context.op.as<GatherAttributes>().axis);
  const TensorView& x = context.input(0);
  const TensorView& indices = context.input(1);
  const TensorView& y = context.output();
  Dims x_from(x.dims.size(), 0);
  Dims index_from(indices.dims.size(), 0);
  std::vector<BoxAxis> axes;
  for (size_t d = 0; d < y.dims.size(); ++d) {
    int64_t x_stride = 0;
    int64_t index_stride = 0;
    const int64_t begin = context.box[d].begin;
    if (d < axis) {
      x_stride = x.strides[d];
      x_from[d] = begin;
    } else if (d < axis + indices.dims.size()) {
      index_stride = indices.strides[d - axis];
      index_from[d - axis] = begin;
    } else {
      const size_t source = d - indices.dims.size() + 1;
      x_stride = x.strides[source];
      x_from[source] = begin;
    }
    axes.push_back({context.box[d].size(), {y.strides[d], x_stride, index_stride}});
  }
  // Vectors need one index for all of their elements, that is a stride of 0, and x's stride 1.
  StatusOr<Box> box = make_box(std::move(axes), 3, true);
  if (!box.ok()) return box.status().with_context(context.op.name);
  const BoxAxis& last = box->axes[kBoxRank - 1];
  const bool vectors = box->contiguous && last.strides[1] == 1 && last.strides[2] == 0;
  GatherArguments p{};
  box->extents(p.extent);
  box->strides(0, p.out_stride);
  box->strides(1, p.x_stride);
  box->strides(2, p.index_stride);
  p.axis_stride = x.strides[axis];
  p.axis_extent = static_cast<int>(x.dims[axis]);
  const LoopWidth width = loop_width(context.device, vectors);
  KernelPlan kernel = start_copy("GATHER", "gather", width, element_option(y));
  kernel.groups[0] = cut_rows(box->rows(), 1, width, context.device, &p);
  kernel.arguments = {at(x, x_from), at(indices, index_from), at(y, begin_of(context.box)),
                      value_argument(p)};
  return single("cl_gather", std::move(kernel), context, 0);
}

StatusOr<SlicePlan> plan_pad(const PlanContext& context) {
  const auto& pad = context.op.as<PadAttributes>();
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const size_t rank = y.dims.size();
  if (rank > kBoxRank) return context.unsupported_layout("at most eight dimensions");
  // In the order of the output's strides; the longest dimension of a row-major tensor is often an
  // outer one, so that the one with stride 1 comes last whatever its extent.
  std::vector<size_t> order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(),
                   [&y](size_t a, size_t b) { return y.strides[a] > y.strides[b]; });
  PadArguments p{};
  std::fill_n(p.extent, kBoxRank, 1);
  std::fill_n(p.source, kBoxRank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = order[i];
    const size_t to = i + kBoxRank - rank;
    p.extent[to] = static_cast<int>(context.box[d].size());
    p.source[to] = static_cast<int>(x.dims[d]);
    p.first[to] = static_cast<int>(context.box[d].begin - pad.before[d]);
    p.out_stride[to] = y.strides[d];
    p.a_stride[to] = x.strides[d];
  }
  p.mode = static_cast<int>(pad.mode);
  p.value = pad.value;
  const int64_t rows = elements_of(context.box) / p.extent[BOX_LAST];
  const LoopWidth width = loop_width(context.device, false);
  KernelPlan kernel = start_copy("PAD", "pad", width, element_option(y));
  kernel.groups[0] = cut_rows(rows, 1, width, context.device, &p);
  kernel.arguments = {SharedArgument{x.data}, at(y, begin_of(context.box)), value_argument(p)};
  return single("cl_pad", std::move(kernel), context, 0);
}

StatusOr<SlicePlan> plan_reduce(const PlanContext& context) {
  const auto& reduce = context.op.as<ReduceAttributes>();
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  std::vector<BoxAxis> axes;
  std::vector<BoxAxis> reduced;
  Dims from(x.dims.size(), 0);
  double count = 1;
  size_t output_axis = 0;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (std::find(reduce.axes.begin(), reduce.axes.end(), static_cast<int>(d)) !=
        reduce.axes.end()) {
      reduced.push_back({x.dims[d], {x.strides[d]}});
      count *= static_cast<double>(x.dims[d]);
      if (reduce.keep_dims) ++output_axis;
      continue;
    }
    from[d] = context.box[output_axis].begin;
    axes.push_back({context.box[output_axis].size(), {y.strides[output_axis], x.strides[d]}});
    ++output_axis;
  }
  StatusOr<Box> box = make_box(std::move(axes), 2, false);
  if (!box.ok()) return box.status().with_context(context.op.name);
  StatusOr<Box> inner = make_box(std::move(reduced), 1, false);
  if (!inner.ok()) return inner.status().with_context(context.op.name);
  ReduceArguments p{};
  box->extents(p.extent);
  box->strides(0, p.out_stride);
  box->strides(1, p.a_stride);
  inner->extents(p.reduced_extent);
  inner->strides(0, p.reduced_stride);
  p.reduced_rows = static_cast<int>(inner->rows());
  p.kind = static_cast<int>(reduce.kind);
  p.factor = static_cast<float>(1 / count);
  const LoopWidth width = loop_width(context.device, box->contiguous);
  const bool shared = width.work_items > 1 && count >= kSharedTerms;
  KernelPlan kernel =
      start_kernel("reduce.cl", "reduce", width, fmt::format(" -DSHARED={}", int{shared}));
  kernel.groups[0] = cut_rows(box->rows(), static_cast<int64_t>(count), width, context.device, &p);
  if (shared) {
    kernel.groups[0] =
        static_cast<size_t>(box->rows() * divide_up(p.extent[BOX_LAST], width.lanes));
  }
  kernel.arguments = {at(x, from), at(y, begin_of(context.box)), value_argument(p)};
  return single("cl_reduce", std::move(kernel), context, count);
}

StatusOr<SlicePlan> plan_lines(const PlanContext& context) {
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const bool softmax = context.op.kind() == OperatorKind::kSoftmax;
  const size_t axis =
      softmax ? static_cast<size_t>(context.op.as<SoftmaxAttributes>().axis) : y.dims.size() - 1;
  std::vector<BoxAxis> axes;
  for (size_t d = 0; d < y.dims.size(); ++d) {
    if (d != axis) axes.push_back({context.box[d].size(), {y.strides[d], x.strides[d]}});
  }
  StatusOr<Box> box = make_box(std::move(axes), 2, false);
  if (!box.ok()) return box.status().with_context(context.op.name);
  LineArguments p{};
  box->extents(p.extent);
  box->strides(0, p.out_stride);
  box->strides(1, p.a_stride);
  p.out_step = y.strides[axis];
  p.a_step = x.strides[axis];
  p.length = static_cast<int>(y.dims[axis]);
  const int64_t lines = box->rows() * p.extent[BOX_LAST];
  // A GPU's work-items share a line: lines are what makes groups.
  const int64_t share = context.device.single_item_groups
                            ? row_share(lines, int64_t{4} * p.length, context.device)
                            : 1;
  p.lines = static_cast<int>(lines);
  p.lines_per_group = static_cast<int>(share);
  if (!softmax) p.epsilon = context.op.as<LayerNormAttributes>().epsilon;
  const bool log = softmax && context.op.as<SoftmaxAttributes>().log;
  const bool contiguous = p.length == 1 || (p.out_step == 1 && p.a_step == 1);
  KernelPlan kernel =
      start_kernel("lines.cl", "lines", loop_width(context.device, contiguous),
                   fmt::format(" -DLAYER_NORM={} -DLOG_SOFTMAX={}", int{!softmax}, int{log}));
  kernel.groups[0] = static_cast<size_t>(divide_up(lines, share));
  kernel.arguments = {at(x, begin_of(context.box)), SharedArgument{}, SharedArgument{},
                      at(y, begin_of(context.box)), value_argument(p)};
  if (!softmax) {
    kernel.arguments[1] = PackedArgument{PackedKind::kScale};
    kernel.arguments[2] = PackedArgument{PackedKind::kBias};
  }
  return single(softmax ? "cl_softmax" : "cl_layer_norm", std::move(kernel), context, 8);
}

}  // namespace tandem::opencl
