// GraphBuilder's layers with weights.
#include <cmath>

#include "zoo/graph_builder.h"
#include "zoo/node_attributes.h"
#include "zoo/shapes.h"

namespace tandem::zoo {
namespace {

using onnx::NodeProto;

constexpr float kBiasStddev = 0.05f;

}  // namespace

Value GraphBuilder::conv(const Value& x, std::string_view name, const ConvOptions& o) {
  if (!expect(x.rank() == 4, name, "input " + to_string(x.shape) + " is not NCHW")) return {};
  const int64_t in = x.dim(1);
  if (!expect(o.out > 0 && in % o.groups == 0 && o.out % o.groups == 0, name,
              "channels do not divide into groups")) {
    return {};
  }
  const Shape shape = {x.dim(0), o.out, window_count(x.dim(2), o.kernel.h, o.stride.h, o.pad.h),
                       window_count(x.dim(3), o.kernel.w, o.stride.w, o.pad.w)};
  if (!expect(element_count(shape) > 0, name, "window exceeds " + to_string(x.shape))) return {};

  NodeProto* node = add_node("Conv", name, {x});
  const int64_t fan_in = in / o.groups * o.kernel.h * o.kernel.w;
  const Shape weight_shape = {o.out, in / o.groups, o.kernel.h, o.kernel.w};
  node->add_input(filters(node->name() + ".weight", weight_shape, x, o.out, fan_in).name);
  if (o.bias) node->add_input(normal(node->name() + ".bias", {o.out}, kBiasStddev).name);
  set_ints(node, "dilations", std::vector<int64_t>{1, 1});
  set_int(node, "group", o.groups);
  set_hw(node, "kernel_shape", o.kernel);
  set_pads(node, o.pad);
  set_hw(node, "strides", o.stride);
  multiply_accumulates_ += element_count(shape) * fan_in;
  return result(node, shape, 1.0f);
}

Value GraphBuilder::conv_transpose(const Value& x, std::string_view name, const ConvOptions& o) {
  if (!expect(x.rank() == 4, name, "input " + to_string(x.shape) + " is not NCHW")) return {};
  if (!expect(o.groups == 1, name, "grouped transposed convolutions are not needed")) return {};
  const auto size = [](int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
    return (in - 1) * stride + kernel - 2 * pad;
  };
  const Shape shape = {x.dim(0), o.out, size(x.dim(2), o.kernel.h, o.stride.h, o.pad.h),
                       size(x.dim(3), o.kernel.w, o.stride.w, o.pad.w)};
  if (!expect(element_count(shape) > 0, name, "no output for " + to_string(x.shape))) return {};

  NodeProto* node = add_node("ConvTranspose", name, {x});
  // Strides thin out the taps that meet in one output element.
  const float taps = static_cast<float>(x.dim(1) * o.kernel.h * o.kernel.w) /
                     static_cast<float>(o.stride.h * o.stride.w);
  const float stddev = std::sqrt(1.0f / (taps * x.power));
  const Shape weight_shape = {x.dim(1), o.out, o.kernel.h, o.kernel.w};
  node->add_input(normal(node->name() + ".weight", weight_shape, stddev).name);
  if (o.bias) node->add_input(normal(node->name() + ".bias", {o.out}, kBiasStddev).name);
  set_ints(node, "dilations", std::vector<int64_t>{1, 1});
  set_int(node, "group", 1);
  set_hw(node, "kernel_shape", o.kernel);
  set_pads(node, o.pad);
  set_hw(node, "strides", o.stride);
  multiply_accumulates_ += element_count(x.shape) * o.out * o.kernel.h * o.kernel.w;
  return result(node, shape, 1.0f);
}

Value GraphBuilder::linear(const Value& x, std::string_view name, int64_t out) {
  if (!expect(x.rank() >= 2, name, "input " + to_string(x.shape) + " is no matrix")) return {};
  const int64_t in = x.dim(-1);
  Shape shape = x.shape;
  shape.back() = out;
  multiply_accumulates_ += element_count(x.shape) * out;

  if (x.rank() == 2) {
    NodeProto* node = add_node("Gemm", name, {x});
    node->add_input(filters(node->name() + ".weight", {out, in}, x, out, in).name);
    node->add_input(normal(node->name() + ".bias", {out}, kBiasStddev).name);
    set_float(node, "alpha", 1.0f);
    set_float(node, "beta", 1.0f);
    set_int(node, "transB", 1);
    return result(node, std::move(shape), 1.0f);
  }
  // The exporter folds the transposition of the weights, and puts the bias first.
  const Scope layer = scope(name);
  NodeProto* node = add_node("MatMul", "MatMul", {x});
  const float stddev = std::sqrt(1.0f / (static_cast<float>(in) * x.power));
  node->add_input(normal(unique_name("weight"), {in, out}, stddev).name);
  const Value product = result(node, std::move(shape), 1.0f);
  return binary("Add", "Add", normal(unique_name("bias"), {out}, kBiasStddev), product, 1.0f);
}

Value GraphBuilder::batch_norm(const Value& x, std::string_view name, float epsilon) {
  if (!expect(x.rank() == 4, name, "input " + to_string(x.shape) + " is not NCHW")) return {};
  NodeProto* node = add_node("BatchNormalization", name, {x});
  const std::string& prefix = node->name();
  const Shape channels = {x.dim(1)};
  const Value parameters[] = {
      uniform(prefix + ".weight", channels, 0.8f, 1.2f, Learnable::kYes),
      normal(prefix + ".bias", channels, kBiasStddev),
      // Stddev 0.1, as sqrt(12) * 0.1 wide. Not `normal`: statistics are not learnable.
      uniform(prefix + ".running_mean", channels, -0.173f, 0.173f, Learnable::kNo),
      uniform(prefix + ".running_var", channels, 0.5f, 1.5f, Learnable::kNo),
  };
  for (const Value& parameter : parameters) node->add_input(parameter.name);
  set_float(node, "epsilon", epsilon);
  set_float(node, "momentum", 0.9f);
  // The mean of 1 / running_var is 1.1.
  return result(node, x.shape, 1.1f * x.power);
}

Value GraphBuilder::layer_norm(const Value& x, std::string_view name, float epsilon) {
  NodeProto* node = add_node("LayerNormalization", name, {x});
  const Shape features = {x.dim(-1)};
  node->add_input(uniform(node->name() + ".weight", features, 0.8f, 1.2f, Learnable::kYes).name);
  node->add_input(normal(node->name() + ".bias", features, kBiasStddev).name);
  set_int(node, "axis", -1);
  set_float(node, "epsilon", epsilon);
  return result(node, x.shape, 1.0f);
}

}  // namespace tandem::zoo
