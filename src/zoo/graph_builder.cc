#include "zoo/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "zoo/node_attributes.h"
#include "zoo/random.h"
#include "zoo/shapes.h"

namespace tandem::zoo {
namespace {

using onnx::NodeProto;
using onnx::TensorProto;

// Opset 17 is the first with LayerNormalization; IR version 8 is the one that came with it.
constexpr int kOpset = 17;
constexpr int kIrVersion = 8;

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
  set_tensor(node, "value", tensor);
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

StatusOr<onnx::ModelProto> GraphBuilder::finish() && {
  if (!expect(graph_->output_size() > 0, "finish", "the network has no output")) return status_;
  for (const Value& value : values_) set_value_info(graph_->add_value_info(), value);
  return std::move(model_);
}

}  // namespace tandem::zoo
