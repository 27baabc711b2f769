// GraphBuilder's operators that move elements.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "zoo/graph_builder.h"
#include "zoo/node_attributes.h"
#include "zoo/shapes.h"

namespace tandem::zoo {

using onnx::NodeProto;
using onnx::TensorProto;

Value GraphBuilder::concat(std::span<const Value> parts, int64_t axis) {
  if (!expect(!parts.empty(), "concat", "nothing to join")) return {};
  const int64_t at = normalized_axis(axis, parts[0].rank());
  if (!expect(at >= 0, "concat", "no such axis")) return {};
  Shape shape = parts[0].shape;
  int64_t total = 0;
  float power = 0, rectified = 0;
  for (const Value& part : parts) {
    total += part.dim(at);
    power = std::fma(part.power, static_cast<float>(part.dim(at)), power);
    rectified = std::fma(part.rectified, static_cast<float>(part.dim(at)), rectified);
    shape[static_cast<size_t>(at)] = part.dim(at);
    if (!expect(part.shape == shape, "concat",
                to_string(part.shape) + " does not join " + to_string(parts[0].shape))) {
      return {};
    }
  }
  shape[static_cast<size_t>(at)] = total;
  NodeProto* node = add_node("Concat", "concat", parts);
  set_int(node, "axis", axis);
  Value y = result(node, std::move(shape), power / static_cast<float>(total));
  y.rectified = rectified / static_cast<float>(total);
  return y;
}

Value GraphBuilder::concat(std::initializer_list<Value> parts, int64_t axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

std::vector<Value> GraphBuilder::split(const Value& x, const Shape& sizes, int64_t axis) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (!expect(x.dim(axis) == total && total > 0, "split", "the parts are not the whole")) {
    return std::vector<Value>(sizes.size());
  }
  const Value size_constant = integers(sizes);
  NodeProto* node = add_node("Split", "split", {x, size_constant});
  set_int(node, "axis", axis);
  std::vector<Value> parts;
  for (const int64_t size : sizes) {
    Shape shape = x.shape;
    shape[static_cast<size_t>(normalized_axis(axis, x.rank()))] = size;
    parts.push_back(result(node, std::move(shape), x.power));
  }
  return parts;
}

Value GraphBuilder::gather(const Value& table, const Value& indices, int64_t axis) {
  const int64_t at = normalized_axis(axis, table.rank());
  if (!expect(at >= 0 && indices.type == TensorProto::INT64, "gather", "bad axis or indices")) {
    return {};
  }
  Shape shape(table.shape.begin(), table.shape.begin() + at);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), table.shape.begin() + at + 1, table.shape.end());
  NodeProto* node = add_node("Gather", "gather", {table, indices});
  set_int(node, "axis", axis);
  return result(node, std::move(shape), table.power, table.type);
}

Value GraphBuilder::flatten(const Value& x) {
  if (!expect(x.rank() >= 2, "flatten", "needs two axes")) return {};
  NodeProto* node = add_node("Flatten", "flatten", {x});
  set_int(node, "axis", 1);
  Value y = result(node, {x.dim(0), element_count(x.shape) / x.dim(0)}, x.power);
  y.rectified = x.rectified;
  return y;
}

Value GraphBuilder::reshape(const Value& x, const Shape& shape) {
  Shape resolved = shape;
  const auto open = std::find(resolved.begin(), resolved.end(), -1);
  if (open != resolved.end()) {
    const int64_t rest = -element_count(resolved);
    if (!expect(rest > 0, "reshape", to_string(shape) + " is ambiguous")) return {};
    *open = element_count(x.shape) / rest;
  }
  if (!expect(element_count(resolved) == element_count(x.shape), "reshape",
              to_string(x.shape) + " does not fit " + to_string(shape))) {
    return {};
  }
  const Value shape_constant = integers(shape);
  NodeProto* node = add_node("Reshape", "reshape", {x, shape_constant});
  return result(node, std::move(resolved), x.power, x.type);
}

Value GraphBuilder::transpose(const Value& x, const Shape& permutation) {
  Shape identity(x.shape.size());
  std::iota(identity.begin(), identity.end(), 0);
  if (!expect(std::is_permutation(permutation.begin(), permutation.end(), identity.begin(),
                                  identity.end()),
              "transpose", to_string(permutation) + " does not permute " + to_string(x.shape))) {
    return {};
  }
  Shape shape;
  for (const int64_t axis : permutation) shape.push_back(x.dim(axis));
  NodeProto* node = add_node("Transpose", "transpose", {x});
  set_ints(node, "perm", permutation);
  return result(node, std::move(shape), x.power, x.type);
}

Value GraphBuilder::unsqueeze(const Value& x, int64_t axis) {
  const int64_t at = normalized_axis(axis, x.rank() + 1);
  if (!expect(at >= 0, "unsqueeze", "no such axis")) return {};
  Shape shape = x.shape;
  shape.insert(shape.begin() + at, 1);
  const Value axes = integers({axis});
  return result(add_node("Unsqueeze", "unsqueeze", {x, axes}), std::move(shape), x.power, x.type);
}

Value GraphBuilder::squeeze(const Value& x, int64_t axis) {
  if (!expect(x.dim(axis) == 1, "squeeze", "the axis is not of size 1")) return {};
  Shape shape = x.shape;
  shape.erase(shape.begin() + normalized_axis(axis, x.rank()));
  const Value axes = integers({axis});
  return result(add_node("Squeeze", "squeeze", {x, axes}), std::move(shape), x.power, x.type);
}

Value GraphBuilder::expand(const Value& x, const Shape& shape) {
  const Value shape_constant = integers(shape);
  return result(add_node("Expand", "expand", {x, shape_constant}), shape, x.power, x.type);
}

Value GraphBuilder::upsample_nearest(const Value& x, int64_t factor) {
  if (!expect(x.rank() == 4, "upsample", "the input is not NCHW")) return {};
  const auto scale = static_cast<float>(factor);
  const Value scales = floats(std::vector{1.0f, 1.0f, scale, scale}, {4});
  // The empty name stands for the region of interest, which nearest resizing does not have.
  NodeProto* node = add_node("Resize", "upsample", {x, Value{}, scales});
  set_string(node, "coordinate_transformation_mode", "asymmetric");
  set_float(node, "cubic_coeff_a", -0.75f);
  set_string(node, "mode", "nearest");
  set_string(node, "nearest_mode", "floor");
  return result(node, {x.dim(0), x.dim(1), x.dim(2) * factor, x.dim(3) * factor}, x.power);
}

}  // namespace tandem::zoo
