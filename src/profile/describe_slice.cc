#include "profile/describe_slice.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

using predict::CutAxis;
using predict::LaneFacts;
using predict::SliceCase;
using predict::SliceFamily;

// Floats in the widest vector register that kernels use.
int64_t simd_floats() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return 16;
  if (__builtin_cpu_supports("avx2") != 0) return 8;
#endif
  return 4;
}

// A tensor's extents seen as an image's: see predict/slice_case.h.
struct Image {
  int64_t batch = 1;
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
};

bool is_image(const Tensor& tensor) {
  return tensor.dims.size() == 4 && tensor.layout.order == Order::kChannelsLast;
}

CutAxis cut_axis(const Tensor& tensor, int axis) {
  static constexpr std::array<CutAxis, 4> kImageAxes = {CutAxis::kBatch, CutAxis::kChannels,
                                                        CutAxis::kHeight, CutAxis::kWidth};
  if (is_image(tensor)) return kImageAxes[static_cast<size_t>(axis)];
  const int from_end = static_cast<int>(tensor.dims.size()) - 1 - axis;
  return from_end == 0 ? CutAxis::kChannels : from_end == 1 ? CutAxis::kHeight : CutAxis::kBatch;
}

Image image_of(const Tensor& tensor) {
  Image image;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    switch (cut_axis(tensor, static_cast<int>(d))) {
      case CutAxis::kChannels:
        image.channels *= tensor.dims[d];
        break;
      case CutAxis::kHeight:
        image.height *= tensor.dims[d];
        break;
      case CutAxis::kWidth:
        image.width *= tensor.dims[d];
        break;
      default:
        image.batch *= tensor.dims[d];
    }
  }
  return image;
}

// Elements from one pixel or row to the next; the innermost extent where there is only one.
int64_t pitch_of(const Tensor& tensor, const Dims& strides) {
  const size_t rank = strides.size();
  if (rank < 2) return rank == 0 ? 1 : tensor.dims[0];
  return is_image(tensor) ? strides[3] : strides[rank - 2];
}

int64_t channel_dimension(const Tensor& tensor) {
  return is_image(tensor) ? 1 : static_cast<int64_t>(tensor.dims.size()) - 1;
}

// Elements of the region that lie in one piece.
int64_t run_of(const Region& region, const Dims& strides) {
  std::vector<std::pair<int64_t, int64_t>> by_stride;
  for (size_t d = 0; d < region.size(); ++d) {
    if (region[d].size() > 1) by_stride.emplace_back(strides[d], region[d].size());
  }
  std::sort(by_stride.begin(), by_stride.end());
  int64_t run = 1;
  for (const auto& [stride, extent] : by_stride) {
    if (stride != run) break;
    run *= extent;
  }
  return run;
}

double bytes_of(const Tensor& tensor, const Region& region) {
  auto bytes = static_cast<double>(element_size(tensor.type));
  for (const Range& range : region)
    bytes *= static_cast<double>(std::max<int64_t>(range.size(), 0));
  return bytes;
}

void set_window(const Size2& kernel, const Size2& stride, const Size2& dilation, const Pads& pads,
                SliceCase* c) {
  c->kernel_height = kernel[0];
  c->kernel_width = kernel[1];
  c->stride_height = stride[0];
  c->stride_width = stride[1];
  c->dilation_height = dilation[0];
  c->dilation_width = dilation[1];
  c->pad_top = pads[0];
  c->pad_left = pads[1];
}

// What attributes add to the description, `input` being the first input.
struct Describer {
  const Tensor& input;
  SliceCase* c;

  void operator()(const ConvAttributes& a) const {
    set_window(a.kernel, a.stride, a.dilation, a.pads, c);
    c->groups = a.groups;
    c->has_bias = a.has_bias;
    c->has_residual = a.has_residual;
    c->activation = to_string(a.activation.function);
  }
  void operator()(const ConvTransposeAttributes& a) const {
    set_window(a.kernel, a.stride, a.dilation, a.pads, c);
    c->groups = a.groups;
    c->has_bias = a.has_bias;
    c->activation = to_string(a.activation.function);
  }
  void operator()(const LinearAttributes& a) const {
    c->has_bias = a.has_bias;
    c->has_residual = a.has_residual;
    c->activation = to_string(a.activation.function);
  }
  void operator()(const MatMulAttributes& a) const {
    c->variant = std::string(a.transpose_a ? "t" : "n") + (a.transpose_b ? "t" : "n");
    if (a.transpose_a) std::swap(c->in_height, c->in_channels);
  }
  void operator()(const PoolAttributes& a) const {
    set_window(a.kernel, a.stride, a.dilation, a.pads, c);
    c->variant = a.kind == PoolAttributes::Kind::kMax ? "max" : "average";
  }
  void operator()(const ReduceAttributes& a) const {
    static constexpr std::array kNames = {"mean", "sum", "max", "min", "prod", "l2"};
    c->variant = kNames[static_cast<size_t>(a.kind)];
    for (const int axis : a.axes) set_reduced(axis);
  }
  void operator()(const SoftmaxAttributes& a) const {
    c->variant = a.log ? "log" : "";
    set_reduced(a.axis);
  }
  void operator()(const LayerNormAttributes&) const { c->reduced = input.dims.back(); }
  void operator()(const UnaryAttributes& a) const { c->variant = to_string(a.function.function); }
  void operator()(const BinaryAttributes& a) const {
    static constexpr std::array kNames = {"add", "sub", "mul", "div", "pow", "max", "min"};
    c->variant = kNames[static_cast<size_t>(a.kind)];
    c->activation = to_string(a.activation.function);
  }
  void operator()(const ResizeAttributes& a) const {
    static constexpr std::array kNames = {"nearest", "linear", "cubic"};
    c->variant = kNames[static_cast<size_t>(a.mode)];
  }
  void operator()(const PadAttributes& a) const {
    static constexpr std::array kNames = {"constant", "reflect", "edge"};
    c->variant = kNames[static_cast<size_t>(a.mode)];
  }
  template <typename Other>
  void operator()(const Other&) const {}

 private:
  void set_reduced(int axis) const {
    c->reduced *= input.dims[static_cast<size_t>(axis)];
    c->reduced_step = strides_of(input.dims, input.layout)[static_cast<size_t>(axis)];
  }
};

void describe_operator(const Graph& graph, OperatorId id, SliceCase* c) {
  const Operator& op = graph.op(id);
  c->family = family_of(graph, id);
  c->kind = to_string(op.kind());
  c->activation = to_string(Function::kIdentity);
  const Image out = image_of(graph.output_of(id));
  c->batch = out.batch;
  c->height = out.height;
  c->width = out.width;
  c->channels = out.channels;
  const Tensor& input = graph.input_of(id, 0);
  const Image in = image_of(input);
  c->in_height = in.height;
  c->in_width = in.width;
  c->in_channels = in.channels;
  c->operands = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    c->operands += is_packed_input(op, static_cast<int>(i)) ? 0 : 1;
  }
  std::visit(Describer{input, c}, op.attributes);
}

void describe_part(const Graph& graph, const Slice& slice, SliceCase* c) {
  const Tensor& output = graph.output_of(slice.op);
  if (slice.whole()) return;
  c->axis = cut_axis(output, slice.axis);
  c->cut_begin = slice.begin;
  c->cut_end = slice.end;
  c->cut_extent = output.dims[static_cast<size_t>(slice.axis)];
}

void describe_memory(const Graph& graph, const Placement& placement, const Slice& slice,
                     SliceCase* c) {
  const Operator& op = graph.op(slice.op);
  const Region region = output_region(graph, slice);
  const Tensor& output = graph.tensor(op.output);
  const Work work = work_of(graph, slice);
  c->flops = work.flops;
  c->out_bytes = bytes_of(output, region);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const int index = static_cast<int>(i);
    if (!is_packed_input(op, index)) continue;
    c->weight_bytes +=
        bytes_of(graph.tensor(op.inputs[i]), input_region(graph, slice.op, index, region));
  }
  c->in_bytes = std::max(0.0, work.bytes - c->out_bytes - c->weight_bytes);

  const Dims& out_strides = placement.tensors[op.output].strides;
  const Tensor& input = graph.tensor(op.inputs[0]);
  const Dims& in_strides = placement.tensors[op.inputs[0]].strides;
  c->out_pitch = pitch_of(output, out_strides);
  c->out_run = run_of(region, out_strides);
  c->in_pitch = pitch_of(input, in_strides);
  c->in_run = run_of(input_region(graph, slice.op, 0, region), in_strides);
  if (op.kind() != OperatorKind::kCopy || output.dims.empty()) return;
  const auto& copy = op.as<CopyAttributes>();
  const auto inner = static_cast<size_t>(channel_dimension(output));
  const int source = copy.source_axis[inner];
  c->in_channel_step =
      source == kNone ? 0 : copy.step[inner] * in_strides[static_cast<size_t>(source)];
}

}  // namespace

LaneFacts lane_facts(const LaneInfo& lane, const Topology& topology) {
  LaneFacts facts;
  facts.name = lane.name;
  facts.kind = lane.kind == LaneKind::kCpu      ? "cpu"
               : lane.kind == LaneKind::kOpenCl ? "opencl"
                                                : "simulated";
  facts.vendor = lane.device.vendor.empty() ? topology.cpu_model : lane.device.vendor;
  facts.cores = static_cast<int64_t>(lane.cores.size());
  facts.max_threads = std::max(1, lane.max_threads);
  facts.compute_units =
      lane.device.compute_units > 0 ? lane.device.compute_units : facts.max_threads;
  facts.local_bytes = lane.device.local_bytes;
  facts.max_work_group = lane.device.max_work_group;
  if (lane.cores.empty()) {
    facts.l2_bytes = lane.device.cache_bytes;
    return facts;
  }
  facts.simd_floats = simd_floats();
  for (const Cache& cache : topology.caches) {
    if (cache.instructions || std::find(cache.processors.begin(), cache.processors.end(),
                                        lane.cores.front()) == cache.processors.end()) {
      continue;
    }
    const auto bytes = static_cast<int64_t>(cache.bytes);
    if (cache.level == 1) facts.l1_bytes = bytes;
    if (cache.level == 2) facts.l2_bytes = bytes;
    if (cache.level == 3) facts.l3_bytes = bytes;
  }
  return facts;
}

SliceFamily family_of(const Graph& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  switch (op.kind()) {
    case OperatorKind::kConv: {
      const auto& a = op.as<ConvAttributes>();
      const bool depthwise = a.groups > 1 && a.groups == graph.output_of(id).dims[1] &&
                             a.groups == graph.input_of(id, 0).dims[1];
      if (depthwise) return SliceFamily::kDepthwise;
      if (a.groups > 1) return SliceFamily::kConvGrouped;
      if (a.kernel == Size2{1, 1}) return SliceFamily::kConv1x1;
      return a.kernel == Size2{3, 3} ? SliceFamily::kConv3x3 : SliceFamily::kConvOther;
    }
    case OperatorKind::kConvTranspose:
      return SliceFamily::kConvTranspose;
    case OperatorKind::kLinear:
      return SliceFamily::kLinear;
    case OperatorKind::kMatMul:
      return SliceFamily::kMatMul;
    case OperatorKind::kPool:
      return SliceFamily::kPool;
    case OperatorKind::kReduce:
      return SliceFamily::kReduce;
    case OperatorKind::kSoftmax:
      return SliceFamily::kSoftmax;
    case OperatorKind::kLayerNorm:
      return SliceFamily::kLayerNorm;
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
      return SliceFamily::kElementwise;
    case OperatorKind::kConcat:
    case OperatorKind::kCopy:
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
    case OperatorKind::kPad:
    case OperatorKind::kResize:
      break;
  }
  return SliceFamily::kCopy;
}

SliceCase describe_slice(const Graph& graph, const Placement& placement, const Slice& slice) {
  SliceCase c;
  describe_operator(graph, slice.op, &c);
  describe_part(graph, slice, &c);
  describe_memory(graph, placement, slice, &c);
  return c;
}

SliceCase describe_slice(const Graph& graph, const Placement& placement, const Slice& slice,
                         const LaneFacts& lane, const ImplementationInfo& implementation) {
  SliceCase c = describe_slice(graph, placement, slice);
  set_implementation(lane, implementation, &c);
  return c;
}

void set_implementation(const LaneFacts& lane, const ImplementationInfo& implementation,
                        SliceCase* slice) {
  slice->lane = lane;
  slice->implementation = implementation.name;
  slice->library_variant = implementation.library_variant;
  std::copy_n(implementation.global_size, 3, slice->global_size);
  std::copy_n(implementation.local_size, 3, slice->local_size);
  slice->work_groups = implementation.work_groups;
  slice->threads = implementation.threads;
  slice->dispatches = implementation.dispatches;
  slice->computed_flops = implementation.computed_flops;
}

}  // namespace tandem
