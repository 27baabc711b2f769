// GraphBuilder's operators without weights that compute: elementwise, over windows, and products.
#include <algorithm>
#include <cmath>

#include "zoo/graph_builder.h"
#include "zoo/node_attributes.h"
#include "zoo/shapes.h"

namespace tandem::zoo {
namespace {

using onnx::NodeProto;

// Products and sums of powers are written as fma throughout: whether a compiler contracts them by
// itself depends on the machine, and the last bit of a power is visible in all weights behind it.

// The power of max(x, 0): half of what is symmetric, and more where something positive lies below.
float rectified_power(const Value& x) {
  const float rest = x.power - x.rectified;
  return std::fma(x.rectified > 0.0f ? 0.75f : 0.5f, rest, x.rectified);
}

}  // namespace

Value GraphBuilder::unary(std::string_view op, std::string_view name, const Value& x, float power) {
  if (!status_.ok()) return {};
  return result(add_node(op, name, {x}), x.shape, power);
}

// The powers below are for normally distributed inputs.

Value GraphBuilder::relu(const Value& x) {
  Value y = unary("Relu", "relu", x, rectified_power(x));
  y.rectified = y.power;
  return y;
}

Value GraphBuilder::clip(const Value& x, float low, float high) {
  const Value bounds[] = {scalar(low), scalar(high)};
  NodeProto* node = add_node("Clip", "clip", {x, bounds[0], bounds[1]});
  if (low != 0.0f) return result(node, x.shape, x.power);
  Value y = result(node, x.shape, rectified_power(x));
  y.rectified = y.power;
  return y;
}

Value GraphBuilder::sigmoid(const Value& x) { return unary("Sigmoid", "sigmoid", x, 0.3f); }

Value GraphBuilder::tanh(const Value& x) {
  return unary("Tanh", "tanh", x, std::min(x.power, 0.4f));
}

Value GraphBuilder::erf(const Value& x) { return unary("Erf", "erf", x, std::min(x.power, 0.3f)); }

Value GraphBuilder::binary(std::string_view op, std::string_view name, const Value& a,
                           const Value& b, float power) {
  Shape shape(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (int64_t axis = -1; axis >= -static_cast<int64_t>(shape.size()); --axis) {
    const int64_t da = -axis <= a.rank() ? a.dim(axis) : 1;
    const int64_t db = -axis <= b.rank() ? b.dim(axis) : 1;
    if (!expect(da == db || da == 1 || db == 1, name,
                to_string(a.shape) + " and " + to_string(b.shape) + " do not broadcast")) {
      return {};
    }
    shape[shape.size() - static_cast<size_t>(-axis)] = std::max(da, db);
  }
  return result(add_node(op, name, {a, b}), std::move(shape), power);
}

Value GraphBuilder::add(const Value& a, const Value& b) {
  Value sum = binary("Add", "add", a, b, a.power + b.power);
  sum.rectified = a.rectified + b.rectified;
  return sum;
}

Value GraphBuilder::mul(const Value& a, const Value& b) {
  return binary("Mul", "mul", a, b, a.power * b.power);
}

Value GraphBuilder::div(const Value& a, const Value& b) {
  return binary("Div", "div", a, b, a.power / b.power);
}

Value GraphBuilder::pow(const Value& base, const Value& exponent) {
  return binary("Pow", "pow", base, exponent, base.power);
}

Value GraphBuilder::pool(std::string_view op, std::string_view name, const Value& x,
                         const PoolOptions& o, float power) {
  if (!expect(x.rank() == 4, name, "input " + to_string(x.shape) + " is not NCHW")) return {};
  const Shape shape = {x.dim(0), x.dim(1),
                       window_count(x.dim(2), o.kernel.h, o.stride.h, o.pad.h, o.ceil),
                       window_count(x.dim(3), o.kernel.w, o.stride.w, o.pad.w, o.ceil)};
  if (!expect(element_count(shape) > 0, name, "window exceeds " + to_string(x.shape))) return {};
  NodeProto* node = add_node(op, name, {x});
  set_int(node, "ceil_mode", o.ceil ? 1 : 0);
  if (op == "AveragePool") set_int(node, "count_include_pad", o.count_pad ? 1 : 0);
  set_hw(node, "kernel_shape", o.kernel);
  set_pads(node, o.pad);
  set_hw(node, "strides", o.stride);
  Value y = result(node, shape, power);
  y.rectified = x.rectified * power / x.power;
  return y;
}

Value GraphBuilder::max_pool(const Value& x, const PoolOptions& options) {
  // The maximum of rectified normal variables has a larger mean but about the same variance, and
  // the variance is what centered filters see.
  return pool("MaxPool", "max_pool", x, options, 1.2f * x.power);
}

Value GraphBuilder::average_pool(const Value& x, const PoolOptions& options) {
  const bool identity = options.kernel.h * options.kernel.w == 1;
  return pool("AveragePool", "average_pool", x, options, identity ? x.power : 0.6f * x.power);
}

Value GraphBuilder::global_average_pool(const Value& x) {
  if (!expect(x.rank() == 4, "global_average_pool", "the input is not NCHW")) return {};
  NodeProto* node = add_node("GlobalAveragePool", "global_average_pool", {x});
  Value y = result(node, {x.dim(0), x.dim(1), 1, 1}, 0.5f * x.power);
  y.rectified = 0.5f * x.rectified;
  return y;
}

Value GraphBuilder::reduce_mean(const Value& x, const Shape& axes, bool keep_dims) {
  Shape shape;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const bool reduced = std::any_of(
        axes.begin(), axes.end(), [&](int64_t a) { return normalized_axis(a, x.rank()) == axis; });
    if (!reduced) {
      shape.push_back(x.dim(axis));
    } else if (keep_dims) {
      shape.push_back(1);
    }
  }
  NodeProto* node = add_node("ReduceMean", "mean", {x});
  set_ints(node, "axes", axes);
  set_int(node, "keepdims", keep_dims ? 1 : 0);
  return result(node, std::move(shape), 0.5f * x.power);
}

Value GraphBuilder::matmul(const Value& a, const Value& b) {
  const bool same_batch = a.rank() == b.rank() && a.rank() >= 2 &&
                          std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin());
  if (!expect(same_batch && a.dim(-1) == b.dim(-2), "matmul",
              to_string(a.shape) + " and " + to_string(b.shape) + " do not multiply")) {
    return {};
  }
  Shape shape = a.shape;
  shape.back() = b.dim(-1);
  multiply_accumulates_ += element_count(shape) * a.dim(-1);
  return result(add_node("MatMul", "matmul", {a, b}), std::move(shape),
                static_cast<float>(a.dim(-1)) * a.power * b.power);
}

Value GraphBuilder::softmax(const Value& x, int64_t axis) {
  if (!expect(x.dim(axis) > 0, "softmax", "no such axis")) return {};
  NodeProto* node = add_node("Softmax", "softmax", {x});
  set_int(node, "axis", axis);
  // Such that a product with values of power p has power p / 4: it would be p if all values were
  // alike, and p / n if they were independent.
  return result(node, x.shape, 0.25f / static_cast<float>(x.dim(axis)));
}

}  // namespace tandem::zoo
