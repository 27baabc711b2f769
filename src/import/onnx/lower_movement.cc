// Operators that move elements without computing anything.
#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/passes/copies.h"
#include "import/onnx/integer_arithmetic.h"
#include "import/onnx/lowerings.h"
#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

Status lower_identity(Node& node) {
  node.set_output(0, node.value(0));
  return {};
}

Status lower_dropout(Node& node) {
  if (node.wants(1)) return unsupported("the mask of dropped elements");
  if (node.has(2)) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t training, node.integer_of(2));
    if (training != 0) return unsupported("dropout in training mode");
  }
  return lower_identity(node);
}

Status lower_concat(Node& node) {
  if (!node.has_attribute("axis")) return invalid_argument("it has no axis");
  std::vector<Value> parts;
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has(i)) return invalid_argument("an operand is missing");
    const Value& part = node.value(i);
    // Exporters concatenate shapes with lists that turn out empty.
    if (!part.constant || element_count(part.dims) > 0) parts.push_back(part);
  }
  if (parts.empty()) {
    node.set_output(0, node.value(0));
    return {};
  }
  ConcatAttributes concat;
  TANDEM_ASSIGN_OR_RETURN(concat.axis, node.axis(node.integer("axis", 0), parts[0].rank()));
  Value y = parts[0];
  if (parts.size() > 1) {
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(concat, parts));
  }
  node.set_output(0, std::move(y));
  return {};
}

// Extents of the pieces along the axis.
StatusOr<std::vector<int64_t>> split_sizes(Node& node, int64_t extent) {
  TANDEM_ASSIGN_OR_RETURN(const auto stated, node.integers_from("split", 1));
  std::vector<int64_t> sizes;
  if (stated) {
    sizes = *stated;
  } else {
    const int64_t pieces = node.outputs();
    if (node.integer("num_outputs", pieces) != pieces) {
      return invalid_argument("num_outputs is not the number of its outputs");
    }
    // Equal pieces; the last may be smaller since opset 18.
    const int64_t size = (extent + pieces - 1) / std::max<int64_t>(pieces, 1);
    if (node.opset() < 18 && extent % std::max<int64_t>(pieces, 1) != 0) {
      return invalid_argument(std::to_string(extent) + " elements in " + std::to_string(pieces) +
                              " equal pieces");
    }
    for (int64_t i = 0; i < pieces; ++i) {
      sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
    }
  }
  if (sizes.size() != static_cast<size_t>(node.outputs())) {
    return invalid_argument("it has " + std::to_string(node.outputs()) + " outputs for " +
                            std::to_string(sizes.size()) + " pieces");
  }
  int64_t left = extent;
  for (int64_t size : sizes) {
    if (size < 0 || size > left) return invalid_argument("its pieces do not fit the axis");
    left -= size;
  }
  if (left != 0) return invalid_argument("its pieces do not cover the axis");
  return sizes;
}

Status lower_split(Node& node) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const int axis, node.axis(node.integer("axis", 0), x.rank()));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, split_sizes(node, x.dims[axis]));
  int64_t begin = 0;
  for (int i = 0; i < node.outputs(); ++i) {
    if (node.wants(i)) {
      CopyAttributes copy = plain_copy(x.dims.size());
      copy.start[axis] = begin;
      Dims dims = x.dims;
      dims[axis] = sizes[i];
      TANDEM_ASSIGN_OR_RETURN(Value piece, node.emit(copy, {x}, dims, std::to_string(i)));
      node.set_output(i, std::move(piece));
    }
    begin += sizes[i];
  }
  return {};
}

// One axis of a Slice: where it starts and how many elements it takes, by numpy's rules.
struct Cut {
  int64_t start = 0;
  int64_t count = 0;
};

Cut cut(int64_t extent, int64_t start, int64_t end, int64_t step) {
  // Ends of INT64_MIN and INT64_MAX are common: clamp before anything is added.
  const auto absolute = [extent](int64_t position, int64_t least, int64_t most) {
    if (position < 0) position = position < -extent ? least : position + extent;
    return std::clamp(position, least, most);
  };
  const int64_t last = extent - 1;
  start = step > 0 ? absolute(start, 0, extent) : absolute(start, -1, last);
  end = step > 0 ? absolute(end, 0, extent) : absolute(end, -1, last);
  const int64_t distance = step > 0 ? end - start : start - end;
  if (distance <= 0) return {};
  // Without negating step, which may be INT64_MIN.
  const auto pace = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return {start, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / pace + 1)};
}

// Attributes up to opset 9, inputs since.
Status lower_slice(Node& node) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const auto starts, node.integers_from("starts", 1));
  TANDEM_ASSIGN_OR_RETURN(const auto ends, node.integers_from("ends", 2));
  if (!starts || !ends || starts->size() != ends->size()) {
    return invalid_argument("it needs as many starts as ends");
  }
  const size_t count = starts->size();
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), 0);
  TANDEM_ASSIGN_OR_RETURN(const auto listed_axes, node.integers_from("axes", 3));
  if (listed_axes) axes = *listed_axes;
  std::vector<int64_t> steps(count, 1);
  if (node.has(4)) {
    TANDEM_ASSIGN_OR_RETURN(steps, node.integers_of(4));
  }
  if (axes.size() != count || steps.size() != count) {
    return invalid_argument("it needs an axis and a step for each start");
  }
  TANDEM_RETURN_IF_ERROR(node.axes(axes, x.rank()).status());  // none may be named twice
  CopyAttributes copy = plain_copy(x.dims.size());
  Dims dims = x.dims;
  for (size_t i = 0; i < count; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const int axis, node.axis(axes[i], x.rank()));
    if (steps[i] == 0) return invalid_argument("a step is 0");
    const Cut taken = cut(x.dims[axis], (*starts)[i], (*ends)[i], steps[i]);
    copy.start[axis] = taken.start;
    // The step across a single element says nothing, and may be huge.
    copy.step[axis] = taken.count > 1 ? steps[i] : 1;
    dims[axis] = taken.count;
  }
  if (dims == x.dims && copy.step == Dims(dims.size(), 1)) return lower_identity(node);
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(copy, {x}, dims));
  node.set_output(0, std::move(y));
  return {};
}

// ---- Repetition and selection ---------------------------------------------------------------

Status lower_expand(Node& node) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, node.integers_of(1));
  TANDEM_RETURN_IF_ERROR(check_dims(shape));
  TANDEM_ASSIGN_OR_RETURN(const Dims dims, broadcast_dims(x.dims, shape));
  if (dims == x.dims) return lower_identity(node);
  CopyAttributes copy;
  copy.start.assign(x.dims.size(), 0);
  copy.step.assign(dims.size(), 1);
  const size_t added = dims.size() - x.dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool walks = d >= added && x.dims[d - added] == dims[d];
    copy.source_axis.push_back(walks ? static_cast<int>(d - added) : kNone);
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(copy, {x}, dims));
  node.set_output(0, std::move(y));
  return {};
}

// [a, b] tiled by s along its last axis is [a, b] spread over [a, s, b], read as [a, s * b]. One
// axis after the other: with all at once the rank would double.
StatusOr<Value> tile_axis(Node& node, const Value& x, size_t axis, int64_t repeats) {
  TANDEM_RETURN_IF_ERROR(check_dims({repeats, x.dims[axis]}));  // their product, too
  CopyAttributes spread = plain_copy(x.dims.size());
  spread.source_axis.insert(spread.source_axis.begin() + static_cast<int>(axis), kNone);
  spread.step.push_back(1);
  Dims spread_dims = x.dims;
  spread_dims.insert(spread_dims.begin() + static_cast<int>(axis), repeats);
  Dims dims = x.dims;
  dims[axis] *= repeats;
  TANDEM_ASSIGN_OR_RETURN(const Value y, node.emit(spread, {x}, spread_dims, std::to_string(axis)));
  return node.reshape(y, dims, "output" + std::to_string(axis));
}

Status lower_tile(Node& node) {
  Value y = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.integers_of(1));
  if (repeats.size() != y.dims.size()) return invalid_argument("it needs a repeat per dimension");
  for (size_t axis = 0; axis < repeats.size(); ++axis) {
    if (repeats[axis] == 1) continue;
    TANDEM_ASSIGN_OR_RETURN(y, tile_axis(node, y, axis, repeats[axis]));
  }
  node.set_output(0, std::move(y));
  return {};
}

// x[..., index, ...] with an index that is known: a slice that drops the dimension.
StatusOr<Value> select(Node& node, int axis, int64_t index) {
  const Value& x = node.value(0);
  CopyAttributes copy;
  copy.start.assign(x.dims.size(), 0);
  copy.start[axis] = index;
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (d == axis) continue;
    copy.source_axis.push_back(d);
    copy.step.push_back(1);
    dims.push_back(x.dims[d]);
  }
  return node.emit(copy, {x}, dims);
}

Status lower_gather(Node& node) {
  const Value& x = node.value(0);
  const Value& indices = node.value(1);
  GatherAttributes gather;
  TANDEM_ASSIGN_OR_RETURN(gather.axis, node.axis(node.integer("axis", 0), x.rank()));
  const int64_t extent = x.dims[gather.axis];
  if (indices.constant) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> known, node.integers_of(1));
    for (int64_t index : known) {
      if (index < -extent || index >= extent) {
        return invalid_argument("index " + std::to_string(index) + " of axis " +
                                std::to_string(gather.axis) + " of " + to_string(x.dims));
      }
    }
  }
  Value y;
  if (indices.constant && indices.dims.empty()) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t index, node.integer_of(1));
    TANDEM_ASSIGN_OR_RETURN(y, select(node, gather.axis, index < 0 ? index + extent : index));
  } else {
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(gather, {x, indices}));
  }
  node.set_output(0, std::move(y));
  return {};
}

// Keeps sums of pads and extents far from overflow.
constexpr int64_t kMaxPad = int64_t{1} << 40;

StatusOr<PadAttributes::Mode> pad_mode(Node& node) {
  const std::string mode = node.text("mode", "constant");
  if (mode == "constant") return PadAttributes::Mode::kConstant;
  if (mode == "reflect") return PadAttributes::Mode::kReflect;
  if (mode == "edge") return PadAttributes::Mode::kEdge;
  return unsupported("padding mode '" + mode + "'");
}

// Removes what negative pads ask for, and sets these to 0.
StatusOr<Value> crop(Node& node, const Value& x, PadAttributes& pad) {
  CopyAttributes copy = plain_copy(x.dims.size());
  Dims dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    copy.start[d] = std::max<int64_t>(-pad.before[d], 0);
    dims[d] += std::min<int64_t>(pad.before[d], 0) + std::min<int64_t>(pad.after[d], 0);
    if (dims[d] < 1) return invalid_argument("pads leave nothing of " + to_string(x.dims));
    pad.before[d] = std::max<int64_t>(pad.before[d], 0);
    pad.after[d] = std::max<int64_t>(pad.after[d], 0);
  }
  if (dims == x.dims) return x;
  return node.emit(copy, {x}, dims, "crop");
}

// Attributes up to opset 10, inputs since; axes since opset 18.
Status lower_pad(Node& node) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const auto pads, node.integers_from("pads", 1));
  if (!pads) return invalid_argument("it has no pads");
  std::vector<int64_t> axes(x.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3)) {
    TANDEM_ASSIGN_OR_RETURN(axes, node.integers_of(3));
    TANDEM_RETURN_IF_ERROR(node.axes(axes, x.rank()).status());  // none may be named twice
  }
  if (pads->size() != 2 * axes.size()) return invalid_argument("it needs two pads per axis");
  PadAttributes pad;
  TANDEM_ASSIGN_OR_RETURN(pad.mode, pad_mode(node));
  pad.before.assign(x.dims.size(), 0);
  pad.after.assign(x.dims.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const int axis, node.axis(axes[i], x.rank()));
    pad.before[axis] = (*pads)[i];
    pad.after[axis] = (*pads)[axes.size() + i];
    for (int64_t amount : {pad.before[axis], pad.after[axis]}) {
      if (amount < -kMaxPad || amount > kMaxPad) {
        return invalid_argument("a pad is " + std::to_string(amount));
      }
    }
  }
  pad.value = node.number("value", 0);
  if (node.has(2)) {
    TANDEM_ASSIGN_OR_RETURN(pad.value, node.float_of(2));
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, crop(node, x, pad));
  TANDEM_ASSIGN_OR_RETURN(y, node.emit(pad, {y}));
  node.set_output(0, std::move(y));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"Concat", 13, lower_concat},     {"Dropout", 22, lower_dropout},
    {"Expand", 13, lower_expand, 2},  {"Gather", 13, lower_gather, 2},
    {"Identity", 25, lower_identity}, {"Pad", 25, lower_pad},
    {"Slice", 13, lower_slice},       {"Split", 18, lower_split},
    {"Tile", 13, lower_tile, 2},
};

}  // namespace

std::span<const Lowering> movement_lowerings() { return kLowerings; }

}  // namespace tandem
