// Along which axes outputs may be cut. (Which part of its inputs a part of an output needs is in
// input_region.cc, what computing it takes in work.cc.)
#include "graph/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/reshape_groups.h"
#include "graph/work.h"

namespace tandem {
namespace {

// Columns of packed weights that stay together: panels are never cut.
constexpr int64_t kPanel = 16;

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

std::string to_string(const Graph& graph, const Slice& slice) {
  const std::string& name = graph.op(slice.op).name;
  if (slice.whole()) return name;
  const bool image = graph.output_of(slice.op).dims.size() == 4 && slice.axis < 4;
  const std::string axis =
      image ? std::string(1, "nchw"[slice.axis]) : "axis " + std::to_string(slice.axis);
  return name + "[" + axis + " " + std::to_string(slice.begin) + ":" + std::to_string(slice.end) +
         "]";
}

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

}  // namespace tandem
