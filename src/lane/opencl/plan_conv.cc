// Convolution, transposed convolution and linear, which share tile.cl; depthwise convolution.
#include <algorithm>
#include <numeric>

#include "fmt/format.h"
#include "graph/resize.h"
#include "lane/opencl/box.h"
#include "lane/opencl/packing.h"
#include "lane/opencl/plan_internal.h"
#include "lane/opencl/tile_problem.h"
#include "lane/opencl/tile_shape.h"

namespace tandem::opencl {
namespace {

SlicePlan plan_tiles(TileProblem problem, int64_t in_channels, const DeviceTraits& device) {
  TileArguments& p = problem.arguments;
  const PanelLayout& layout = problem.layout;
  p.group_channels = static_cast<int>(layout.group_channels);
  p.group_outputs = static_cast<int>(layout.group_outputs);
  p.last_group = static_cast<int>(layout.groups - 1);
  p.exact_input = !vectors_stay_inside(problem, in_channels);
  if (const std::optional<SlicePlan> plan = plan_winograd(problem, device)) return *plan;
  if (const std::optional<SlicePlan> plan = plan_grouped(problem, device)) return *plan;
  if (const std::optional<SlicePlan> plan = plan_narrow(problem, device)) return *plan;
  if (const std::optional<SlicePlan> plan = plan_conv_items(problem, device)) return *plan;
  const int64_t panels = divide_up(p.channels, kPanel);
  const int64_t depth = layout.taps * p.group_channels;
  // Panels that need the same input channels, from where the slice starts.
  const int64_t same_input = layout.groups == 1 ? panels
                                                : std::gcd(layout.group_outputs / kPanel,
                                                           static_cast<int64_t>(p.first_panel));
  SlicePlan plan;
  std::string options = fmt::format(" -DPOINTWISE={} -DTRANSPOSED={}", int{problem.pointwise},
                                    int{problem.transposed});
  std::vector<Argument> arguments = {problem.input, PackedArgument{PackedKind::kWeights},
                                     PackedArgument{PackedKind::kBias}, problem.residual,
                                     problem.output};
  KernelPlan kernel;
  if (device.single_item_groups && problem.contiguous && layout.shares_input()) {
    const TileShape shape = choose_tile(p.rows, panels, same_input);
    const TileCut cut = cut_tiles(shape, p.rows, panels, same_input, device.compute_units);
    if (p.group_channels <= shape.k_block) {
      p.channels_per_block = p.group_channels;
      p.taps_per_block = static_cast<int>(std::max<int64_t>(1, shape.k_block / p.group_channels));
    } else {
      const int64_t blocks = divide_up(p.group_channels, shape.k_block);
      p.channels_per_block =
          static_cast<int>(round_up(divide_up(p.group_channels, blocks), kLineFloats));
      p.taps_per_block = 1;
    }
    p.tiles_per_group = static_cast<int>(cut.tiles_per_group);
    p.panels_per_group = static_cast<int>(cut.panels_per_group);
    const bool one_block =
        p.channels_per_block >= p.group_channels && p.taps_per_block >= layout.taps;
    const int64_t group_rows = cut.tiles_per_group * shape.rows;
    options += fmt::format(" -DTILE_ROWS={} -DTILE_PANELS={} -DTILE_PITCH={} -DNARROW_INPUT={}",
                           shape.rows, shape.panels, shape.pitch(),
                           int{p.group_channels <= 4 && !p.exact_input});
    kernel = start_kernel("tile.cl", "tile", {1, 16}, options);
    arguments.push_back(
        LocalArgument{sizeof(float) * static_cast<size_t>(group_rows * shape.pitch())});
    arguments.push_back(LocalArgument{shape.sums_bytes(
        one_block ? 1 : cut.tiles_per_group * cut.panels_per_group / shape.panels)});
    arguments.push_back(LocalArgument{2 * sizeof(int64_t) * static_cast<size_t>(group_rows)});
    kernel.groups = {static_cast<size_t>(divide_up(p.rows, group_rows)),
                     static_cast<size_t>(divide_up(panels, cut.panels_per_group)), 1};
    plan.name = fmt::format("cl_{}_{}x{}", problem.name, shape.rows, shape.panels * kPanel);
    plan.computed_flops = 2.0 * static_cast<double>(round_up(p.rows, shape.rows)) *
                          static_cast<double>(round_up(panels, shape.panels) * kPanel) *
                          static_cast<double>(depth);
  } else {
    const ItemTile items = choose_item_tile(p.channels);
    options += fmt::format(" -DTILE_ROWS={} -DITEMS_X={} -DITEMS_Y={} -DOWN_GROUPS={}", items.rows,
                           items.x, items.y, int{!layout.shares_input()});
    kernel = start_kernel("tile.cl", "tile", {items.x * items.y, 4}, options);
    kernel.local = {static_cast<size_t>(items.x), static_cast<size_t>(items.y), 1};
    kernel.groups = {static_cast<size_t>(divide_up(p.channels, items.x * 4)),
                     static_cast<size_t>(divide_up(p.rows, items.y * items.rows)), 1};
    plan.name = fmt::format("cl_{}_{}x4_items", problem.name, items.rows);
    plan.computed_flops = 2.0 * static_cast<double>(kernel.groups[0] * kernel.groups[1]) * items.x *
                          4 * items.y * items.rows * static_cast<double>(depth);
  }
  arguments.push_back(value_argument(p));
  kernel.arguments = std::move(arguments);
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

// What windows over images have in common, for any argument structure with these members.
template <typename Attributes, typename Arguments>
void set_window(const Attributes& attributes, const Region& box, const TensorView& in,
                Arguments* p) {
  p->box_height = static_cast<int>(box[2].size());
  p->box_width = static_cast<int>(box[3].size());
  p->first_y = static_cast<int>(box[2].begin);
  p->first_x = static_cast<int>(box[3].begin);
  p->channels = static_cast<int>(box[1].size());
  p->in_height = static_cast<int>(in.dims[2]);
  p->in_width = static_cast<int>(in.dims[3]);
  p->kernel_height = static_cast<int>(attributes.kernel[0]);
  p->kernel_width = static_cast<int>(attributes.kernel[1]);
  p->stride_y = static_cast<int>(attributes.stride[0]);
  p->stride_x = static_cast<int>(attributes.stride[1]);
  p->dilation_y = static_cast<int>(attributes.dilation[0]);
  p->dilation_x = static_cast<int>(attributes.dilation[1]);
  p->pad_top = static_cast<int>(attributes.pads[0]);
  p->pad_left = static_cast<int>(attributes.pads[1]);
}

template <typename Arguments>
void set_strides(const TensorView& in, const TensorView& out, const TensorView* residual,
                 Arguments* p) {
  p->in_image = in.strides[0];
  p->in_line = in.strides[2];
  p->in_pixel = in.strides[3];
  p->in_channel = in.strides[1];
  p->out_image = out.strides[0];
  p->out_line = out.strides[2];
  p->out_pixel = out.strides[3];
  p->out_channel = out.strides[1];
  if (residual) {
    p->residual_image = residual->strides[0];
    p->residual_line = residual->strides[2];
    p->residual_pixel = residual->strides[3];
    p->residual_channel = residual->strides[1];
  }
}

bool channels_contiguous(const TensorView& view, size_t axis) {
  return view.dims[axis] == 1 || view.strides[axis] == 1;
}

Dims begin_of(const Region& box) {
  Dims begin;
  for (const Range& range : box) begin.push_back(range.begin);
  return begin;
}

// Residual of conv and linear, null if there is none: the input behind weights and bias.
const TensorView* residual_of(const PlanContext& context, bool has_bias, bool has_residual) {
  return has_residual ? &context.input(has_bias ? 3 : 2) : nullptr;
}

// Pixels in lines, of input and output, up to which each pixel of a depthwise convolution has code
// of its own.
constexpr int kNarrowLine = 28;

StatusOr<SlicePlan> plan_depthwise(const PlanContext& context, const ConvAttributes& conv) {
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const TensorView* residual = residual_of(context, conv.has_bias, conv.has_residual);
  const bool contiguous = channels_contiguous(x, 1) && channels_contiguous(y, 1) &&
                          (!residual || channels_contiguous(*residual, 1));
  const Dims begin = begin_of(context.box);
  WindowArguments p{};
  set_window(conv, context.box, x, &p);
  set_strides(x, y, residual, &p);
  set_activation(conv.activation, &p);
  p.has_bias = conv.has_bias;
  p.has_residual = conv.has_residual;
  p.images = static_cast<int>(context.box[0].size());
  p.weight_stride = static_cast<int>(round_up(x.dims[1], kLineFloats));
  // On CPUs, sums of eight pixels hide the latency of multiply-adds.
  const int pixels = context.device.single_item_groups ? 8 : 1;
  const LoopWidth width = loop_width(context.device, contiguous);
  const std::array<size_t, 3> groups = set_image_cut(conv.kernel[0], x, width, context.device, &p);
  const bool narrow =
      context.device.single_item_groups && std::max(p.box_width, p.in_width) <= kNarrowLine;
  KernelPlan kernel = start_kernel(
      "window.cl", "depthwise", width,
      fmt::format(" -DDEPTHWISE=1 -DMAXIMUM=0 -DAVERAGE=0 -DWINDOW_PIXELS={} -DKERNEL_WIDTH={} "
                  "-DSTRIDE_X={} -DDILATION_X={} -DLINE_WIDTH={} -DIN_WIDTH={} -DLINE_LEFT={}",
                  pixels, conv.kernel[1], conv.stride[1], conv.dilation[1],
                  narrow ? p.box_width : 0, narrow ? p.in_width : 0,
                  narrow ? p.pad_left - p.first_x * p.stride_x : 0));
  kernel.groups = groups;
  kernel.arguments = {at(x, {begin[0], begin[1], 0, 0}),
                      PackedArgument{PackedKind::kWeights, begin[1]},
                      PackedArgument{PackedKind::kBias, begin[1]},
                      residual ? at(*residual, begin) : SharedArgument{},
                      at(y, begin),
                      value_argument(p)};
  SlicePlan plan;
  plan.name = "cl_depthwise";
  plan.computed_flops = 2.0 * static_cast<double>(conv.kernel[0] * conv.kernel[1]) *
                        static_cast<double>(context.box[0].size() * context.box[2].size() *
                                            context.box[3].size() * context.box[1].size());
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

// Conv and transposed conv.
template <typename Attributes>
StatusOr<SlicePlan> plan_image(const PlanContext& context, const Attributes& attributes,
                               const TensorView* residual, TileProblem problem) {
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const Dims begin = begin_of(context.box);
  problem.contiguous = channels_contiguous(x, 1) && channels_contiguous(y, 1) &&
                       (!residual || channels_contiguous(*residual, 1));
  TileArguments& p = problem.arguments;
  set_window(attributes, context.box, x, &p);
  set_strides(x, y, residual, &p);
  set_activation(attributes.activation, &p);
  p.rows = static_cast<int>(context.box[0].size() * context.box[2].size() * context.box[3].size());
  p.first_panel = static_cast<int>(begin[1] / kPanel);
  p.has_bias = attributes.has_bias;
  p.has_residual = residual != nullptr;
  problem.layout = panel_layout(context.graph, context.op);
  problem.input = at(x, {begin[0], 0, 0, 0});
  problem.output = at(y, begin);
  if (residual) problem.residual = at(*residual, begin);
  return plan_tiles(std::move(problem), x.dims[1], context.device);
}

StatusOr<SlicePlan> plan_linear(const PlanContext& context, const LinearAttributes& linear) {
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const TensorView* residual = residual_of(context, linear.has_bias, linear.has_residual);
  const size_t last = y.dims.size() - 1;
  if (!channels_contiguous(x, last) || !channels_contiguous(y, last) ||
      (residual && !channels_contiguous(*residual, last))) {
    return context.unsupported_layout("row-major tensors");
  }
  const TensorView& res = residual ? *residual : y;
  std::vector<BoxAxis> axes;
  for (size_t d = 0; d < last; ++d) {
    axes.push_back({context.box[d].size(), {y.strides[d], x.strides[d], res.strides[d]}});
  }
  axes = merge_axes(std::move(axes));
  if (axes.size() > 3) return context.unsupported_layout("at most three strides between rows");
  axes.insert(axes.begin(), 3 - axes.size(), BoxAxis{1, {0, 0, 0}});

  Dims begin = begin_of(context.box);
  TileProblem problem{.name = "linear", .pointwise = true};
  problem.output = at(y, begin);
  if (residual) problem.residual = at(*residual, begin);
  problem.layout = panel_layout(context.graph, context.op);
  TileArguments& p = problem.arguments;
  p.first_panel = static_cast<int>(begin[last] / kPanel);
  p.channels = static_cast<int>(context.box[last].size());
  begin[last] = 0;
  problem.input = at(x, begin);
  p.out_image = axes[0].strides[0];
  p.out_line = axes[1].strides[0];
  p.out_pixel = axes[2].strides[0];
  p.in_image = axes[0].strides[1];
  p.in_line = axes[1].strides[1];
  p.in_pixel = axes[2].strides[1];
  p.residual_image = axes[0].strides[2];
  p.residual_line = axes[1].strides[2];
  p.residual_pixel = axes[2].strides[2];
  p.rows = static_cast<int>(axes[0].extent * axes[1].extent * axes[2].extent);
  p.box_height = p.in_height = static_cast<int>(axes[1].extent);
  p.box_width = p.in_width = static_cast<int>(axes[2].extent);
  p.in_channel = p.out_channel = p.residual_channel = 1;
  p.kernel_height = p.kernel_width = 1;
  p.stride_y = p.stride_x = 1;
  p.dilation_y = p.dilation_x = 1;
  p.has_bias = linear.has_bias;
  p.has_residual = linear.has_residual;
  set_activation(linear.activation, &p);
  // A single row has no stride of its own to go by: it ends where the tensor's rows do.
  if (axes[2].extent == 1) p.in_pixel = last > 0 ? x.strides[last - 1] : 0;
  return plan_tiles(std::move(problem), x.dims[last], context.device);
}

}  // namespace

bool vectors_stay_inside(const TileProblem& problem, int64_t channels) {
  const TileArguments& p = problem.arguments;
  const bool lines = reinterpret_cast<uintptr_t>(problem.input.data) % 64 == 0 &&
                     p.in_image % kLineFloats == 0 && p.in_line % kLineFloats == 0 &&
                     p.in_pixel % kLineFloats == 0;
  const bool groups =
      problem.layout.groups == 1 || problem.layout.group_channels % kLineFloats == 0;
  return lines && groups && round_up(channels, kLineFloats) <= p.in_pixel;
}

StatusOr<SlicePlan> plan_conv(const PlanContext& context) {
  if (context.op.kind() == OperatorKind::kLinear) {
    return plan_linear(context, context.op.as<LinearAttributes>());
  }
  if (context.op.kind() == OperatorKind::kConvTranspose) {
    TileProblem problem{.name = "conv_transpose", .transposed = true};
    return plan_image(context, context.op.as<ConvTransposeAttributes>(), nullptr,
                      std::move(problem));
  }
  const auto& conv = context.op.as<ConvAttributes>();
  const TensorView* residual = residual_of(context, conv.has_bias, conv.has_residual);
  if (is_depthwise(context.graph, context.op)) return plan_depthwise(context, conv);
  const bool pointwise =
      conv.kernel[0] == 1 && conv.kernel[1] == 1 && conv.pads == Pads{0, 0, 0, 0};
  TileProblem problem{.name = pointwise ? "conv1x1" : "conv", .pointwise = pointwise};
  return plan_image(context, conv, residual, std::move(problem));
}

StatusOr<SlicePlan> plan_pool(const PlanContext& context) {
  const auto& pool = context.op.as<PoolAttributes>();
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const bool contiguous = channels_contiguous(x, 1) && channels_contiguous(y, 1);
  const Dims begin = begin_of(context.box);
  WindowArguments p{};
  set_window(pool, context.box, x, &p);
  set_strides(x, y, nullptr, &p);
  p.pad_bottom = static_cast<int>(pool.pads[2]);
  p.pad_right = static_cast<int>(pool.pads[3]);
  p.images = static_cast<int>(context.box[0].size());
  p.count_pads = pool.count_include_pad;
  const bool maximum = pool.kind == PoolAttributes::Kind::kMax;
  const LoopWidth width = loop_width(context.device, contiguous);
  const std::array<size_t, 3> groups = set_image_cut(pool.kernel[0], x, width, context.device, &p);
  const bool shared = width.work_items > 1 && pool.kernel[0] * pool.kernel[1] >= kSharedTerms;
  KernelPlan kernel =
      start_kernel("window.cl", "pool", width,
                   fmt::format(" -DDEPTHWISE=0 -DMAXIMUM={} -DAVERAGE={} -DSHARED={}", int{maximum},
                               int{!maximum}, int{shared}));
  kernel.arguments = {at(x, {begin[0], begin[1], 0, 0}), at(y, begin), value_argument(p)};
  kernel.groups = groups;
  if (shared) {
    kernel.groups = {static_cast<size_t>(int64_t{p.images} * p.box_height * p.box_width *
                                         divide_up(p.channels, width.lanes)),
                     1, 1};
  }
  SlicePlan plan;
  plan.name = maximum ? "cl_pool_max" : "cl_pool_average";
  plan.computed_flops = static_cast<double>(pool.kernel[0] * pool.kernel[1]) *
                        static_cast<double>(context.box[0].size() * context.box[1].size() *
                                            context.box[2].size() * context.box[3].size());
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

StatusOr<SlicePlan> plan_resize(const PlanContext& context) {
  const TensorView& x = context.input(0);
  const TensorView& y = context.output();
  const Dims begin = begin_of(context.box);
  const bool contiguous = channels_contiguous(x, 1) && channels_contiguous(y, 1);
  ResizeArguments p{};
  p.in_image = x.strides[0];
  p.in_line = x.strides[2];
  p.in_pixel = x.strides[3];
  p.in_channel = contiguous ? 1 : x.strides[1];
  p.out_image = y.strides[0];
  p.out_line = y.strides[2];
  p.out_pixel = y.strides[3];
  p.out_channel = contiguous ? 1 : y.strides[1];
  p.images = static_cast<int>(context.box[0].size());
  p.box_height = static_cast<int>(context.box[2].size());
  p.box_width = static_cast<int>(context.box[3].size());
  p.first_y = static_cast<int>(begin[2]);
  p.first_x = static_cast<int>(begin[3]);
  p.channels = static_cast<int>(context.box[1].size());
  p.taps = resize_taps(context.op.as<ResizeAttributes>(), 0, x.dims[2], y.dims[2], 0).count;
  const LoopWidth width = loop_width(context.device, contiguous);
  KernelPlan kernel = start_kernel("resize.cl", "resize", width, "");
  kernel.groups = set_image_cut(p.taps, x, width, context.device, &p);
  kernel.arguments = {at(x, {begin[0], begin[1], 0, 0}),
                      PackedArgument{PackedKind::kResizeLines},
                      PackedArgument{PackedKind::kResizeLineWeights},
                      PackedArgument{PackedKind::kResizeColumns},
                      PackedArgument{PackedKind::kResizeColumnWeights},
                      at(y, begin),
                      value_argument(p)};
  SlicePlan plan;
  plan.name = "cl_resize";
  plan.computed_flops = 2.0 * p.taps * p.taps *
                        static_cast<double>(context.box[0].size() * context.box[1].size() *
                                            context.box[2].size() * context.box[3].size());
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace tandem::opencl
