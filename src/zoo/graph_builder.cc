#include "zoo/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "zoo/random.h"

namespace tandem::zoo {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;
using onnx::TensorProto;

// Opset 17 is the first with LayerNormalization; IR version 8 is the one that came with it.
constexpr int kOpset = 17;
constexpr int kIrVersion = 8;

constexpr float kBiasStddev = 0.05f;

int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// The axis of `rank` axes that a possibly negative `axis` means, or -1.
int64_t normalized_axis(int64_t axis, int64_t rank) {
  if (axis < 0) axis += rank;
  return axis < rank ? axis : -1;
}

AttributeProto* add_attribute(NodeProto* node, const char* name,
                              AttributeProto::AttributeType type) {
  AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

void set_int(NodeProto* node, const char* name, int64_t value) {
  add_attribute(node, name, AttributeProto::INT)->set_i(value);
}

void set_float(NodeProto* node, const char* name, float value) {
  add_attribute(node, name, AttributeProto::FLOAT)->set_f(value);
}

void set_string(NodeProto* node, const char* name, const char* value) {
  add_attribute(node, name, AttributeProto::STRING)->set_s(value);
}

void set_ints(NodeProto* node, const char* name, std::span<const int64_t> values) {
  AttributeProto* attribute = add_attribute(node, name, AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

void set_hw(NodeProto* node, const char* name, Hw hw) {
  set_ints(node, name, std::vector{hw.h, hw.w});
}

void set_pads(NodeProto* node, Hw pad) {
  set_ints(node, "pads", std::vector{pad.h, pad.w, pad.h, pad.w});
}

void set_value_info(onnx::ValueInfoProto* info, const Value& value) {
  info->set_name(value.name);
  onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(value.type);
  onnx::TensorShapeProto* shape = type->mutable_shape();
  for (const int64_t dim : value.shape) shape->add_dim()->set_dim_value(dim);
}

template <typename T>
TensorProto make_tensor(TensorProto::DataType type, std::span<const T> values, const Shape& shape) {
  TensorProto tensor;
  tensor.set_data_type(type);
  for (const int64_t dim : shape) tensor.add_dims(dim);
  tensor.mutable_raw_data()->resize(values.size_bytes());
  std::memcpy(tensor.mutable_raw_data()->data(), values.data(), values.size_bytes());
  return tensor;
}

// Products and sums of powers are written as fma throughout: whether a compiler contracts them by
// itself depends on the machine, and the last bit of a power is visible in all weights behind it.

// The power of max(x, 0): half of what is symmetric, and more where something positive lies below.
float rectified_power(const Value& x) {
  const float rest = x.power - x.rectified;
  return std::fma(x.rectified > 0.0f ? 0.75f : 0.5f, rest, x.rectified);
}

// The output size of a window that moves over `in` elements.
int64_t window_count(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil = false) {
  const int64_t room = in + 2 * pad - kernel;
  if (room < 0) return 0;
  return (ceil ? (room + stride - 1) / stride : room / stride) + 1;
}

}  // namespace

int64_t Value::dim(int64_t axis) const {
  const int64_t i = normalized_axis(axis, rank());
  return i < 0 ? 0 : shape[static_cast<size_t>(i)];
}

GraphBuilder::Scope::Scope(GraphBuilder* builder, std::string_view name)
    : builder_(builder), outer_length_(builder->scope_.size()) {
  builder_->scope_.append(name).append(".");
}

GraphBuilder::Scope::~Scope() { builder_->scope_.resize(outer_length_); }

GraphBuilder::GraphBuilder(std::string_view model_name, uint64_t seed, Weights weights)
    : graph_(model_.mutable_graph()), seed_(seed), weights_(weights) {
  model_.set_ir_version(kIrVersion);
  model_.set_producer_name("tandem-zoo");
  onnx::OperatorSetIdProto* opset = model_.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  graph_->set_name(std::string(model_name));
}

bool GraphBuilder::expect(bool condition, std::string_view op, const std::string& what) {
  if (!condition && status_.ok()) {
    status_ = internal_error("zoo network " + graph_->name() + ": " + scope_ + std::string(op) +
                             ": " + what);
  }
  return status_.ok();
}

std::string GraphBuilder::unique_name(std::string_view name) {
  std::string full = scope_ + std::string(name);
  const int taken = names_[full]++;
  return taken == 0 ? full : full + "_" + std::to_string(taken);
}

NodeProto* GraphBuilder::add_node(std::string_view op, std::string_view name,
                                  std::span<const Value> inputs) {
  NodeProto* node = graph_->add_node();
  node->set_op_type(std::string(op));
  node->set_name(unique_name(name));
  for (const Value& input : inputs) node->add_input(input.name);
  return node;
}

NodeProto* GraphBuilder::add_node(std::string_view op, std::string_view name,
                                  std::initializer_list<Value> inputs) {
  return add_node(op, name, std::span(inputs.begin(), inputs.size()));
}

Value GraphBuilder::result(NodeProto* node, Shape shape, float power, TensorProto::DataType type) {
  const int index = node->output_size();
  // Names of nodes have no slash, hence this is unique.
  std::string name = node->name() + "/output" + (index == 0 ? "" : "_" + std::to_string(index));
  node->add_output(name);
  values_.push_back({std::move(name), std::move(shape), power, 0.0f, type});
  return values_.back();
}

TensorProto* GraphBuilder::add_initializer(const std::string& name, const Shape& shape,
                                           Learnable learnable) {
  TensorProto* tensor = graph_->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::FLOAT);
  for (const int64_t dim : shape) tensor->add_dims(dim);
  if (learnable == Learnable::kYes) parameters_ += element_count(shape);
  return tensor;
}

Value GraphBuilder::normal(const std::string& name, Shape shape, float stddev) {
  TensorProto* tensor = add_initializer(name, shape, Learnable::kYes);
  if (weights_ == Weights::kGenerate) {
    append_normal(tensor_seed(seed_, name), stddev, static_cast<size_t>(element_count(shape)),
                  tensor->mutable_raw_data());
  }
  return {name, std::move(shape), stddev * stddev};
}

Value GraphBuilder::filters(const std::string& name, Shape shape, const Value& x, int64_t rows,
                            int64_t columns) {
  // After a ReLU, most of what a random filter yields is its sum times the mean of its input: a
  // constant. It adds up over the layers until the network ignores its input. Training (and batch
  // normalization) would prevent that; here, filters that sum to zero do. Depthwise ones have so
  // few taps that they would only find edges then, and stay as they are.
  constexpr int64_t kFewestCentered = 32;
  if (x.rectified == 0.0f || columns < kFewestCentered) {
    return normal(name, std::move(shape),
                  std::sqrt(1.0f / (static_cast<float>(columns) * x.power)));
  }
  // 1 / pi is the mean's share in the power of a rectified normal variable.
  const float power = std::fma(-0.318f, x.rectified, x.power);
  const float stddev = std::sqrt(1.0f / (static_cast<float>(columns) * power));
  TensorProto* tensor = add_initializer(name, shape, Learnable::kYes);
  if (weights_ == Weights::kGenerate) {
    append_centered_normal(tensor_seed(seed_, name), stddev, static_cast<size_t>(rows),
                           static_cast<size_t>(columns), tensor->mutable_raw_data());
  }
  return {name, std::move(shape)};
}

Value GraphBuilder::uniform(const std::string& name, Shape shape, float low, float high,
                            Learnable learnable) {
  TensorProto* tensor = add_initializer(name, shape, learnable);
  if (weights_ == Weights::kGenerate) {
    append_uniform(tensor_seed(seed_, name), low, high, static_cast<size_t>(element_count(shape)),
                   tensor->mutable_raw_data());
  }
  return {name, std::move(shape)};
}

Value GraphBuilder::input(std::string_view name, Shape shape, TensorProto::DataType type) {
  Value value{unique_name(name), std::move(shape), 1.0f, 0.0f, type};
  set_value_info(graph_->add_input(), value);
  return value;
}

void GraphBuilder::output(const Value& x, std::string_view name) {
  const auto made = std::find_if(values_.begin(), values_.end(),
                                 [&](const Value& value) { return value.name == x.name; });
  if (!expect(made != values_.end(), name, "an output must be made by a node")) return;
  const std::string old_name = made->name;
  const std::string new_name = unique_name(name);
  for (NodeProto& node : *graph_->mutable_node()) {
    std::replace(node.mutable_input()->begin(), node.mutable_input()->end(), old_name, new_name);
    std::replace(node.mutable_output()->begin(), node.mutable_output()->end(), old_name, new_name);
  }
  made->name = new_name;
  set_value_info(graph_->add_output(), *made);
  values_.erase(made);
}

Value GraphBuilder::parameter(std::string_view name, Shape shape, float stddev) {
  return normal(unique_name(name), std::move(shape), stddev);
}

Value GraphBuilder::constant(const TensorProto& tensor) {
  NodeProto* node = add_node("Constant", "Constant", {});
  *add_attribute(node, "value", AttributeProto::TENSOR)->mutable_t() = tensor;
  return result(node, Shape(tensor.dims().begin(), tensor.dims().end()), 1.0f,
                static_cast<TensorProto::DataType>(tensor.data_type()));
}

Value GraphBuilder::scalar(float value) {
  Value made = constant(make_tensor<float>(TensorProto::FLOAT, std::span(&value, 1), {}));
  made.power = value * value;
  return made;
}

Value GraphBuilder::integers(std::span<const int64_t> values, Shape shape) {
  const auto size = static_cast<int64_t>(values.size());
  if (!expect(size == element_count(shape), "Constant", "values do not fill the shape")) return {};
  return constant(make_tensor(TensorProto::INT64, values, shape));
}

Value GraphBuilder::integers(const Shape& values) {
  return integers(values, {static_cast<int64_t>(values.size())});
}

Value GraphBuilder::integer(int64_t value) { return integers(std::span(&value, 1), {}); }

Value GraphBuilder::floats(std::span<const float> values, Shape shape) {
  const auto size = static_cast<int64_t>(values.size());
  if (!expect(size == element_count(shape), "Constant", "values do not fill the shape")) return {};
  return constant(make_tensor(TensorProto::FLOAT, values, shape));
}

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

StatusOr<onnx::ModelProto> GraphBuilder::finish() && {
  if (!expect(graph_->output_size() > 0, "finish", "the network has no output")) return status_;
  for (const Value& value : values_) set_value_info(graph_->add_value_info(), value);
  return std::move(model_);
}

}  // namespace tandem::zoo
