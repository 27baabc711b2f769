// Which part of its inputs an operator's output needs: a rule per kind.
#include <algorithm>

#include "graph/partition.h"
#include "graph/reshape_groups.h"
#include "graph/resize.h"

namespace tandem {
namespace {

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

}  // namespace

Region input_region(const Graph& graph, OperatorId op, int index, const Region& output) {
  Region region;
  if (!is_empty(output)) {
    region = std::visit([&](const auto& a) { return region_of(a, graph, op, index, output); },
                        graph.op(op).attributes);
    if (!is_empty(region)) return region;
  }
  return Region(graph.input_of(op, index).dims.size(), Range{0, 0});
}

}  // namespace tandem
