#include "graph/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/reshape_groups.h"
#include "graph/resize.h"

namespace tandem {
namespace {

// Columns of packed weights that stay together: panels are never cut.
constexpr int64_t kPanel = 16;

// ---- Regions --------------------------------------------------------------------------------

Range clip(Range range, int64_t extent) {
  return {std::max<int64_t>(range.begin, 0), std::min(range.end, extent)};
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// What a window that slides over `extent` elements sees from the output positions `out`.
Range window_range(Range out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_before,
                   int64_t extent) {
  if (out.empty()) return {};
  return clip({out.begin * stride - pad_before,
               (out.end - 1) * stride - pad_before + dilation * (kernel - 1) + 1},
              extent);
}

// The range of whole groups that the channels `out` belong to, in channels of `per_group`.
Range group_range(Range out, int64_t out_per_group, int64_t in_per_group) {
  if (out.empty()) return {};
  return {out.begin / out_per_group * in_per_group,
          ceil_div(out.end, out_per_group) * in_per_group};
}

Region region_of(const ConvAttributes& conv, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  const Dims& x = graph.input_of(op, 0).dims;
  const Dims& w = graph.input_of(op, 1).dims;
  const int64_t per_group = w[0] / conv.groups;
  if (index == 0) {
    const auto window = [&](int i) {
      return window_range(out[2 + i], conv.kernel[i], conv.stride[i], conv.dilation[i],
                          conv.pads[i], x[2 + i]);
    };
    return {out[0], group_range(out[1], per_group, w[1]), window(0), window(1)};
  }
  if (index == 1) return {out[1], {0, w[1]}, {0, w[2]}, {0, w[3]}};
  if (index == 2 && conv.has_bias) return {out[1]};
  return out;
}

Region region_of(const ConvTransposeAttributes& conv, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  const Dims& x = graph.input_of(op, 0).dims;
  const Dims& w = graph.input_of(op, 1).dims;
  const Range channels = group_range(out[1], w[1], x[1] / conv.groups);
  if (index == 0) {
    Region region = {out[0], channels};
    for (int i = 0; i < 2; ++i) {
      // Input i scatters to outputs i * stride - pad + k * dilation, 0 <= k < kernel.
      const int64_t reach = conv.dilation[i] * (conv.kernel[i] - 1);
      region.push_back(clip({ceil_div(out[2 + i].begin + conv.pads[i] - reach, conv.stride[i]),
                             floor_div(out[2 + i].end - 1 + conv.pads[i], conv.stride[i]) + 1},
                            x[2 + i]));
    }
    return region;
  }
  if (index == 2) return {out[1]};
  // Several groups need all of their columns.
  const Range first = {out[1].begin % w[1], (out[1].end - 1) % w[1] + 1};
  const bool one_group = out[1].begin / w[1] == (out[1].end - 1) / w[1];
  return {channels, one_group ? first : Range{0, w[1]}, {0, w[2]}, {0, w[3]}};
}

Region region_of(const LinearAttributes& linear, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  const int64_t k = graph.input_of(op, 1).dims[0];
  if (index == 0) {
    Region region = out;
    region.back() = {0, k};
    return region;
  }
  if (index == 1) return {{0, k}, out.back()};
  if (index == 2 && linear.has_bias) return {out.back()};
  return out;
}

Region region_of(const MatMulAttributes& matmul, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  const Dims& dims = graph.input_of(op, index).dims;
  const size_t rank = dims.size();
  Region region(rank);
  for (size_t d = 0; d + 2 < rank; ++d) region[d] = dims[d] == 1 ? Range{0, 1} : out[d];
  const bool transpose = index == 0 ? matmul.transpose_a : matmul.transpose_b;
  // Where the operand keeps its own dimension of the result: rows for a, columns for b.
  const size_t kept = (index == 0) != transpose ? rank - 2 : rank - 1;
  const size_t inner = kept == rank - 1 ? rank - 2 : rank - 1;
  region[kept] = index == 0 ? out[rank - 2] : out[rank - 1];
  region[inner] = {0, dims[inner]};
  return region;
}

Region region_of(const PoolAttributes& pool, const Graph& graph, OperatorId op, int,
                 const Region& out) {
  const Dims& x = graph.input_of(op, 0).dims;
  const auto window = [&](int i) {
    return window_range(out[2 + i], pool.kernel[i], pool.stride[i], pool.dilation[i], pool.pads[i],
                        x[2 + i]);
  };
  return {out[0], out[1], window(0), window(1)};
}

Region region_of(const ReduceAttributes& reduce, const Graph& graph, OperatorId op, int,
                 const Region& out) {
  const Dims& x = graph.input_of(op, 0).dims;
  Region region;
  size_t next_axis = 0;
  size_t next_out = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    if (next_axis < reduce.axes.size() && reduce.axes[next_axis] == static_cast<int>(d)) {
      region.push_back({0, x[d]});
      ++next_axis;
      if (reduce.keep_dims) ++next_out;
    } else {
      region.push_back(out[next_out++]);
    }
  }
  return region;
}

Region region_of(const SoftmaxAttributes& softmax, const Graph& graph, OperatorId op, int,
                 const Region& out) {
  Region region = out;
  region[softmax.axis] = {0, graph.input_of(op, 0).dims[softmax.axis]};
  return region;
}

Region region_of(const LayerNormAttributes&, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  if (index > 0) return {out.back()};
  Region region = out;
  region.back() = {0, graph.input_of(op, 0).dims.back()};
  return region;
}

Region region_of(const UnaryAttributes&, const Graph&, OperatorId, int, const Region& out) {
  return out;
}

Region region_of(const BinaryAttributes&, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  const Dims& dims = graph.input_of(op, index).dims;
  Region region(out.end() - static_cast<std::ptrdiff_t>(dims.size()), out.end());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) region[d] = {0, 1};
  }
  return region;
}

Region region_of(const ConcatAttributes& concat, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  int64_t offset = 0;
  for (int i = 0; i < index; ++i) offset += graph.input_of(op, i).dims[concat.axis];
  Region region = out;
  Range& range = region[concat.axis];
  range =
      clip({range.begin - offset, range.end - offset}, graph.input_of(op, index).dims[concat.axis]);
  return region;
}

Region region_of(const CopyAttributes& copy, const Graph&, OperatorId, int, const Region& out) {
  Region region;
  for (int64_t start : copy.start) region.push_back({start, start + 1});
  for (size_t d = 0; d < out.size(); ++d) {
    if (copy.source_axis[d] == kNone) continue;
    Range& range = region[copy.source_axis[d]];
    const int64_t first = copy.step[d] * out[d].begin;
    const int64_t last = copy.step[d] * (out[d].end - 1);
    range.begin += std::min(first, last);
    range.end += std::max(first, last);
  }
  return region;
}

Region region_of(const ReshapeAttributes&, const Graph& graph, OperatorId op, int,
                 const Region& out) {
  const Dims& source = graph.input_of(op, 0).dims;
  const Dims& output = graph.output_of(op).dims;
  Region region(source.size(), Range{0, 1});
  for (const ReshapeGroup& group : reshape_groups(source, output)) {
    // First and last element of the box, counted within the group.
    int64_t first = 0;
    int64_t last = 0;
    for (size_t o = group.output_begin; o < group.output_end; ++o) {
      first = first * output[o] + out[o].begin;
      last = last * output[o] + out[o].end - 1;
    }
    int64_t stride = 1;
    for (size_t s = group.source_begin; s < group.source_end; ++s) stride *= source[s];
    // From the outermost dimension inwards, until first and last part ways; what lies further in is
    // needed whole.
    bool together = true;
    for (size_t s = group.source_begin; s < group.source_end; ++s) {
      if (!together) {
        region[s] = {0, source[s]};
        continue;
      }
      stride /= source[s];
      region[s] = {first / stride, last / stride + 1};
      together = first / stride == last / stride;
      first %= stride;
      last %= stride;
    }
  }
  return region;
}

Region region_of(const GatherAttributes& gather, const Graph& graph, OperatorId op, int index,
                 const Region& out) {
  const size_t axis = static_cast<size_t>(gather.axis);
  const size_t behind = axis + graph.input_of(op, 1).dims.size();
  const auto at = [&](size_t d) { return out.begin() + static_cast<std::ptrdiff_t>(d); };
  if (index == 1) return Region(at(axis), at(behind));
  Region region(out.begin(), at(axis));
  region.push_back({0, graph.input_of(op, 0).dims[axis]});
  region.insert(region.end(), at(behind), out.end());
  return region;
}

// Padding reads as elements of the image, except in constant mode, where it reads none.
Range padded_range(PadAttributes::Mode mode, Range out, int64_t before, int64_t extent) {
  const Range inside = {out.begin - before, out.end - before};
  const int64_t last = extent - 1;
  switch (mode) {
    case PadAttributes::Mode::kConstant:
      return clip(inside, extent);
    case PadAttributes::Mode::kEdge:
      return {std::clamp<int64_t>(inside.begin, 0, last),
              std::clamp<int64_t>(inside.end - 1, 0, last) + 1};
    case PadAttributes::Mode::kReflect:
      break;
  }
  const auto reflected = [last](int64_t i) { return i < 0 ? -i : i > last ? 2 * last - i : i; };
  Range range = {reflected(inside.begin), reflected(inside.begin) + 1};
  for (int64_t i = inside.begin; i < inside.end; ++i) {
    range.begin = std::min(range.begin, reflected(i));
    range.end = std::max(range.end, reflected(i) + 1);
  }
  return range;
}

Region region_of(const PadAttributes& pad, const Graph& graph, OperatorId op, int,
                 const Region& out) {
  const Dims& x = graph.input_of(op, 0).dims;
  Region region;
  for (size_t d = 0; d < x.size(); ++d) {
    region.push_back(padded_range(pad.mode, out[d], pad.before[d], x[d]));
  }
  return region;
}

Region region_of(const ResizeAttributes& resize, const Graph& graph, OperatorId op, int,
                 const Region& out) {
  const Dims& x = graph.input_of(op, 0).dims;
  const Dims& y = graph.output_of(op).dims;
  Region region = {out[0], out[1]};
  for (int i = 0; i < 2; ++i) {
    // Positions ascend with the output index, and taps with the position.
    const ResizeTaps first = resize_taps(resize, i, x[2 + i], y[2 + i], out[2 + i].begin);
    const ResizeTaps last = resize_taps(resize, i, x[2 + i], y[2 + i], out[2 + i].end - 1);
    region.push_back({first.index[0], last.index[last.count - 1] + 1});
  }
  return region;
}

// ---- Partition rules ------------------------------------------------------------------------

// Multiples at which a cut along `axis` of the tensor's own layout falls between cache lines; none
// if there are none. Tensors that lie inside others have strides that are multiples of
// kLineFloats, for which this holds too.
std::optional<int64_t> line_granularity(const Tensor& tensor, int axis) {
  const Dims strides = strides_of(tensor.dims, tensor.layout);
  for (size_t d = 0; d < strides.size(); ++d) {
    // Dense rows start anywhere in a line, and then so does a cut within them.
    const bool outer = tensor.dims[d] > 1 && strides[d] > strides[axis];
    if (outer && strides[d] % kLineFloats != 0) return std::nullopt;
  }
  return kLineFloats / std::gcd(kLineFloats, strides[axis]);
}

using Candidates = std::vector<PartitionAxis>;  // granularity: what the kind asks for

// N, C and H of images, with C in multiples of `channels`.
Candidates image_axes(int64_t channels) { return {{0, 1}, {1, channels}, {2, 1}}; }

// Every axis but `excluded` (kNone: every axis). Cutting the width of channels-last images would
// leave kernels with ragged rows.
Candidates all_axes(const Tensor& output, int excluded = kNone) {
  Candidates axes;
  const bool channels_last = output.layout.order == Order::kChannelsLast;
  for (int d = 0; d < static_cast<int>(output.dims.size()); ++d) {
    if (d != excluded && !(channels_last && d == 3)) axes.push_back({d, 1});
  }
  return axes;
}

Candidates candidates(const ConvAttributes& conv, const Graph& graph, OperatorId op) {
  const int64_t m = graph.output_of(op).dims[1];
  const bool depthwise = conv.groups == m && conv.groups == graph.input_of(op, 0).dims[1];
  if (conv.groups == 1 || depthwise) return image_axes(kPanel);
  return image_axes(std::lcm(kPanel, m / conv.groups));
}

Candidates candidates(const ConvTransposeAttributes& conv, const Graph& graph, OperatorId op) {
  if (conv.groups == 1) return image_axes(kPanel);
  return image_axes(std::lcm(kPanel, graph.output_of(op).dims[1] / conv.groups));
}

Candidates candidates(const LinearAttributes&, const Graph& graph, OperatorId op) {
  Candidates axes = all_axes(graph.output_of(op));
  axes.back().granularity = kPanel;
  return axes;
}

Candidates candidates(const MatMulAttributes&, const Graph& graph, OperatorId op) {
  Candidates axes = all_axes(graph.output_of(op));
  axes.back().granularity = kPanel;
  return axes;
}

Candidates candidates(const PoolAttributes&, const Graph&, OperatorId) { return image_axes(1); }
Candidates candidates(const ResizeAttributes&, const Graph&, OperatorId) { return image_axes(1); }

Candidates candidates(const SoftmaxAttributes& softmax, const Graph& graph, OperatorId op) {
  return all_axes(graph.output_of(op), softmax.axis);
}

Candidates candidates(const LayerNormAttributes&, const Graph& graph, OperatorId op) {
  Candidates axes = all_axes(graph.output_of(op));
  axes.pop_back();
  return axes;
}

Candidates candidates(const ReshapeAttributes&, const Graph& graph, OperatorId op) {
  // Only a cut of a group's outermost dimension is a contiguous range of the source.
  const Dims& output = graph.output_of(op).dims;
  Candidates axes;
  for (const ReshapeGroup& group : reshape_groups(graph.input_of(op, 0).dims, output)) {
    size_t o = group.output_begin;
    while (o < group.output_end && output[o] == 1) ++o;
    if (o < group.output_end) axes.push_back({static_cast<int>(o), 1});
  }
  return axes;
}

// The reduced axes that are kept have extent 1.
template <typename AnyOther>
Candidates candidates(const AnyOther&, const Graph& graph, OperatorId op) {
  return all_axes(graph.output_of(op));
}

double region_bytes(const Graph& graph, TensorId tensor, const Region& region) {
  if (is_empty(region)) return 0;
  double elements = 1;
  for (const Range& range : region) elements *= static_cast<double>(range.size());
  return elements * static_cast<double>(element_size(graph.tensor(tensor).type));
}

// Bytes of the inputs that the output region needs.
double input_bytes(const Graph& graph, OperatorId id, const Region& output) {
  const Operator& op = graph.op(id);
  // A gather reads as much as it writes, whatever the size of its table.
  if (op.kind() == OperatorKind::kGather) {
    return region_bytes(graph, op.output, output) +
           region_bytes(graph, op.inputs[1], input_region(graph, id, 1, output));
  }
  double bytes = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const int index = static_cast<int>(i);
    bytes += region_bytes(graph, op.inputs[i], input_region(graph, id, index, output));
  }
  return bytes;
}

// What two halves read together.
double bytes_when_halved(const Graph& graph, OperatorId op, PartitionAxis axis) {
  const Dims& dims = graph.output_of(op).dims;
  const int64_t half =
      std::max(axis.granularity, dims[axis.axis] / 2 / axis.granularity * axis.granularity);
  Region low = whole_region(dims);
  Region high = low;
  low[axis.axis].end = half;
  high[axis.axis].begin = half;
  return input_bytes(graph, op, low) + input_bytes(graph, op, high);
}

// ---- Work -----------------------------------------------------------------------------------

double flops_per_element(const ConvAttributes& conv, const Graph& graph, OperatorId op) {
  const Dims& w = graph.input_of(op, 1).dims;
  return 2.0 * static_cast<double>(w[1] * conv.kernel[0] * conv.kernel[1]) + conv.has_bias +
         conv.has_residual;
}

double flops_per_element(const ConvTransposeAttributes& conv, const Graph& graph, OperatorId op) {
  const double inputs = static_cast<double>(element_count(graph.input_of(op, 0).dims));
  const Dims& w = graph.input_of(op, 1).dims;
  const double outputs = static_cast<double>(element_count(graph.output_of(op).dims));
  return 2.0 * inputs * static_cast<double>(w[1] * w[2] * w[3]) / outputs + conv.has_bias;
}

double flops_per_element(const LinearAttributes& linear, const Graph& graph, OperatorId op) {
  return 2.0 * static_cast<double>(graph.input_of(op, 1).dims[0]) + linear.has_bias +
         linear.has_residual;
}

double flops_per_element(const MatMulAttributes& matmul, const Graph& graph, OperatorId op) {
  const Dims& a = graph.input_of(op, 0).dims;
  return 2.0 * static_cast<double>(matmul.transpose_a ? a[a.size() - 2] : a.back());
}

double flops_per_element(const PoolAttributes& pool, const Graph&, OperatorId) {
  return static_cast<double>(pool.kernel[0] * pool.kernel[1]);
}

double flops_per_element(const ReduceAttributes&, const Graph& graph, OperatorId op) {
  return static_cast<double>(element_count(graph.input_of(op, 0).dims)) /
         static_cast<double>(element_count(graph.output_of(op).dims));
}

// Maximum, difference, exponential, sum, quotient.
double flops_per_element(const SoftmaxAttributes&, const Graph&, OperatorId) { return 5; }

// Mean 1, variance 3, normalisation 2, scale and bias 2.
double flops_per_element(const LayerNormAttributes&, const Graph&, OperatorId) { return 8; }

double flops_per_element(const UnaryAttributes&, const Graph&, OperatorId) { return 1; }
double flops_per_element(const BinaryAttributes&, const Graph&, OperatorId) { return 1; }

double flops_per_element(const ResizeAttributes& resize, const Graph&, OperatorId) {
  switch (resize.mode) {
    case ResizeAttributes::Mode::kNearest:
      return 0;
    case ResizeAttributes::Mode::kLinear:
      return 2 * 4;
    case ResizeAttributes::Mode::kCubic:
      return 2 * 16;
  }
  return 0;
}

// The rest moves elements.
template <typename AnyOther>
double flops_per_element(const AnyOther&, const Graph&, OperatorId) {
  return 0;
}

Work work_of_region(const Graph& graph, OperatorId id, const Region& output) {
  const Operator& op = graph.op(id);
  const double bytes = region_bytes(graph, op.output, output);
  const double elements = bytes / static_cast<double>(element_size(graph.output_of(id).type));
  Work work;
  work.flops = elements * std::visit([&](const auto& a) { return flops_per_element(a, graph, id); },
                                     op.attributes);
  work.bytes = bytes + input_bytes(graph, id, output);
  return work;
}

}  // namespace

Region whole_region(const Dims& dims) {
  Region region;
  region.reserve(dims.size());
  for (int64_t extent : dims) region.push_back({0, extent});
  return region;
}

bool is_empty(const Region& region) {
  return std::any_of(region.begin(), region.end(), [](const Range& r) { return r.empty(); });
}

bool intersects(const Region& a, const Region& b) {
  if (is_empty(a) || is_empty(b)) return false;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].begin >= b[d].end || b[d].begin >= a[d].end) return false;
  }
  return true;
}

bool contains(const Region& outer, const Region& inner) {
  if (is_empty(inner)) return true;
  for (size_t d = 0; d < outer.size(); ++d) {
    if (inner[d].begin < outer[d].begin || inner[d].end > outer[d].end) return false;
  }
  return true;
}

std::string to_string(const Region& region) {
  std::string text = "[";
  for (size_t d = 0; d < region.size(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(region[d].begin) + ":" + std::to_string(region[d].end);
  }
  return text + "]";
}

std::string to_string(const Graph& graph, const Slice& slice) {
  const std::string& name = graph.op(slice.op).name;
  if (slice.whole()) return name;
  const bool image = graph.output_of(slice.op).dims.size() == 4 && slice.axis < 4;
  const std::string axis =
      image ? std::string(1, "nchw"[slice.axis]) : "axis " + std::to_string(slice.axis);
  return name + "[" + axis + " " + std::to_string(slice.begin) + ":" + std::to_string(slice.end) +
         "]";
}

namespace {

// In no particular order.
std::vector<PartitionAxis> allowed_axes(const Graph& graph, OperatorId op) {
  const Tensor& output = graph.output_of(op);
  std::vector<PartitionAxis> axes;
  const Candidates wanted =
      std::visit([&](const auto& a) { return candidates(a, graph, op); }, graph.op(op).attributes);
  for (const PartitionAxis& candidate : wanted) {
    const std::optional<int64_t> line = line_granularity(output, candidate.axis);
    if (!line) continue;
    const PartitionAxis axis = {candidate.axis, std::lcm(candidate.granularity, *line)};
    if (output.dims[axis.axis] > axis.granularity) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

std::vector<PartitionAxis> partition_axes(const Graph& graph, OperatorId op) {
  const Tensor& output = graph.output_of(op);
  struct Ranked {
    PartitionAxis axis;
    double bytes = 0;
    int64_t stride = 0;
  };
  std::vector<Ranked> ranked;
  const Dims strides = strides_of(output.dims, output.layout);
  for (const PartitionAxis& axis : allowed_axes(graph, op)) {
    ranked.push_back({axis, bytes_when_halved(graph, op, axis), strides[axis.axis]});
  }
  // Among equals the outermost in memory, whose slices are contiguous.
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.stride > b.stride;
  });
  std::vector<PartitionAxis> axes;
  for (const Ranked& r : ranked) axes.push_back(r.axis);
  return axes;
}

Status check_slice(const Graph& graph, const Slice& slice) {
  if (slice.op < 0 || static_cast<size_t>(slice.op) >= graph.operators().size()) {
    return invalid_argument("there is no operator " + std::to_string(slice.op));
  }
  if (slice.whole()) return {};
  const Dims& dims = graph.output_of(slice.op).dims;
  if (slice.axis < 0 || static_cast<size_t>(slice.axis) >= dims.size()) {
    return invalid_argument(graph.op(slice.op).name + ": the output has no axis " +
                            std::to_string(slice.axis));
  }
  const int64_t extent = dims[slice.axis];
  if (slice.begin < 0 || slice.begin >= slice.end || slice.end > extent) {
    return invalid_argument(to_string(graph, slice) + ": not a part of the " +
                            std::to_string(extent) + " elements of that axis");
  }
  for (const PartitionAxis& axis : allowed_axes(graph, slice.op)) {
    if (axis.axis != slice.axis) continue;
    if (slice.begin % axis.granularity == 0 &&
        (slice.end % axis.granularity == 0 || slice.end == extent)) {
      return {};
    }
    return invalid_argument(to_string(graph, slice) + ": must begin and end at multiples of " +
                            std::to_string(axis.granularity) + ", or end with the axis");
  }
  return invalid_argument(to_string(graph, slice) + ": the operator cannot be cut along this axis");
}

Region output_region(const Graph& graph, const Slice& slice) {
  Region region = whole_region(graph.output_of(slice.op).dims);
  if (!slice.whole()) region[slice.axis] = {slice.begin, slice.end};
  return region;
}

Region input_region(const Graph& graph, OperatorId op, int index, const Region& output) {
  Region region;
  if (!is_empty(output)) {
    region = std::visit([&](const auto& a) { return region_of(a, graph, op, index, output); },
                        graph.op(op).attributes);
    if (!is_empty(region)) return region;
  }
  return Region(graph.input_of(op, index).dims.size(), Range{0, 0});
}

Work work_of(const Graph& graph, const Slice& slice) {
  return work_of_region(graph, slice.op, output_region(graph, slice));
}

Work work_of(const Graph& graph, OperatorId op) {
  return work_of_region(graph, op, whole_region(graph.output_of(op).dims));
}

}  // namespace tandem
