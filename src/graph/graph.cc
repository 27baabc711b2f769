#include "graph/graph.h"

#include <algorithm>
#include <set>

namespace tandem {
namespace {

std::string name_or(std::string name, const char* stem, size_t id) {
  return name.empty() ? stem + std::to_string(id) : std::move(name);
}

// The order that kernels of a kind need of the tensors that lie in memory; none: any.
std::optional<Order> required_order(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kLinear:
    case OperatorKind::kMatMul:
    case OperatorKind::kLayerNorm:
      return Order::kRowMajor;
    case OperatorKind::kConv:
    case OperatorKind::kConvTranspose:
    case OperatorKind::kPool:
    case OperatorKind::kResize:
      return Order::kChannelsLast;
    default:
      return std::nullopt;
  }
}

}  // namespace

TensorId Graph::add_input(std::string tensor_name, DataType type, Dims dims, Layout layout) {
  const TensorId id = static_cast<TensorId>(tensors_.size());
  Tensor tensor;
  tensor.name = name_or(std::move(tensor_name), "input", id);
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.kind = TensorKind::kInput;
  tensor.layout = layout;
  tensors_.push_back(std::move(tensor));
  inputs_.push_back(id);
  return id;
}

TensorId Graph::add_constant(std::string tensor_name, HostTensor value) {
  return add_constant(std::move(tensor_name), std::make_shared<const HostTensor>(std::move(value)));
}

TensorId Graph::add_constant(std::string tensor_name, std::shared_ptr<const HostTensor> value) {
  const TensorId id = static_cast<TensorId>(tensors_.size());
  Tensor tensor;
  tensor.name = name_or(std::move(tensor_name), "constant", id);
  tensor.type = value->type;
  tensor.dims = value->dims;
  tensor.kind = TensorKind::kConstant;
  tensor.value = std::move(value);
  tensors_.push_back(std::move(tensor));
  return id;
}

StatusOr<TensorId> Graph::add(std::string operator_name, Attributes attributes,
                              std::vector<TensorId> inputs, Dims dims, Layout layout) {
  const OperatorId id = static_cast<OperatorId>(operators_.size());
  Operator op;
  op.attributes = std::move(attributes);
  op.name = name_or(std::move(operator_name), to_string(op.kind()), id);
  op.inputs = std::move(inputs);

  std::vector<const Tensor*> tensors;
  for (TensorId input : op.inputs) {
    if (input < 0 || static_cast<size_t>(input) >= tensors_.size()) {
      return internal_error(op.name + ": there is no tensor " + std::to_string(input));
    }
    tensors.push_back(&tensors_[input]);
  }
  StatusOr<Shape> shape = output_shape(op.attributes, tensors, dims);
  if (!shape.ok()) {
    return shape.status().with_context(op.name + " (" + to_string(op.kind()) + ")");
  }

  Tensor output;
  output.name = op.name;
  output.type = shape->type;
  output.dims = std::move(shape->dims);
  output.layout = layout;
  output.producer = id;
  if (layout.order == Order::kChannelsLast && output.dims.size() != 4) {
    return internal_error(op.name + ": only tensors of rank 4 can be channels-last");
  }
  for (TensorId input : op.inputs) {
    std::vector<OperatorId>& consumers = tensors_[input].consumers;
    if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
  }
  op.output = static_cast<TensorId>(tensors_.size());
  tensors_.push_back(std::move(output));
  operators_.push_back(std::move(op));
  return operators_.back().output;
}

bool Graph::is_output(TensorId id) const {
  return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
}

namespace {

Status check_tensor(const Tensor& tensor) {
  const std::string who = "tensor " + tensor.name;
  for (int64_t extent : tensor.dims) {
    if (extent < 1) return unsupported(who + ": has no elements: " + to_string(tensor.dims));
  }
  if (tensor.layout.order == Order::kChannelsLast && tensor.dims.size() != 4) {
    return internal_error(who + ": only tensors of rank 4 can be channels-last");
  }
  if ((tensor.kind == TensorKind::kConstant) != (tensor.value != nullptr)) {
    return internal_error(who + ": constants and only they have a value");
  }
  if (tensor.value && (tensor.value->type != tensor.type || tensor.value->dims != tensor.dims ||
                       tensor.value->bytes.size() !=
                           static_cast<size_t>(tensor.value->size()) * element_size(tensor.type))) {
    return internal_error(who + ": the value does not have the tensor's type and extents");
  }
  if ((tensor.kind == TensorKind::kActivation) != (tensor.producer != kNone)) {
    return internal_error(who + ": activations and only they have a producer");
  }
  return {};
}

bool is_tensor(const Graph& graph, TensorId id) {
  return id >= 0 && static_cast<size_t>(id) < graph.tensors().size();
}

// Where it stands, and what it reads.
Status check_place(const Graph& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (!is_tensor(graph, op.output) || graph.tensor(op.output).producer != id) {
    return internal_error("is not the producer of its output");
  }
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    if (!is_tensor(graph, op.inputs[k])) return internal_error("an input does not exist");
    const Tensor& input = graph.tensor(op.inputs[k]);
    if (input.producer >= id) return internal_error("comes before its input's producer");
    if (is_packed_input(op, static_cast<int>(k)) && input.kind != TensorKind::kConstant) {
      return unsupported(input.name + " must be a constant");
    }
  }
  return {};
}

// What it makes, and of what layouts. It has its place.
Status check_output(const Graph& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const Tensor& output = graph.tensor(op.output);
  std::vector<const Tensor*> inputs;
  for (TensorId input : op.inputs) inputs.push_back(&graph.tensor(input));
  TANDEM_ASSIGN_OR_RETURN(const Shape shape, output_shape(op.attributes, inputs, output.dims));
  if (shape.type != output.type || shape.dims != output.dims) {
    return internal_error(std::string("the output should be ") + to_string(shape.type) +
                          to_string(shape.dims));
  }
  const std::optional<Order> order = required_order(op.kind());
  if (!order) return {};
  bool right = output.layout.order == *order;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (is_packed_input(op, static_cast<int>(k))) continue;
    right = right && inputs[k]->layout.order == *order;
  }
  if (right) return {};
  return internal_error(std::string("works on ") +
                        (*order == Order::kRowMajor ? "row-major" : "channels-last") +
                        " tensors only");
}

// Producers and consumers say the same as operators' outputs and inputs.
Status check_links(const Graph& graph) {
  std::vector<std::vector<OperatorId>> consumers(graph.tensors().size());
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    const auto id = static_cast<OperatorId>(i);
    for (TensorId input : graph.op(id).inputs) {
      std::vector<OperatorId>& seen = consumers[input];
      if (seen.empty() || seen.back() != id) seen.push_back(id);
    }
  }
  for (size_t t = 0; t < consumers.size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.consumers != consumers[t]) {
      return internal_error("tensor " + tensor.name + ": the list of consumers is wrong");
    }
    if (tensor.producer == kNone) continue;
    if (static_cast<size_t>(tensor.producer) >= graph.operators().size() ||
        graph.op(tensor.producer).output != static_cast<TensorId>(t)) {
      return internal_error("tensor " + tensor.name + ": the producer makes another tensor");
    }
  }
  return {};
}

}  // namespace

Status Graph::validate() const {
  std::set<std::string> names;
  for (const Tensor& tensor : tensors_) {
    if (!names.insert(tensor.name).second) {
      return internal_error("tensor " + tensor.name + ": the name is not unique");
    }
    TANDEM_RETURN_IF_ERROR(check_tensor(tensor));
  }
  names.clear();
  for (size_t i = 0; i < operators_.size(); ++i) {
    const auto id = static_cast<OperatorId>(i);
    const std::string who =
        "operator " + operators_[i].name + " (" + to_string(operators_[i].kind()) + ")";
    if (!names.insert(operators_[i].name).second) {
      return internal_error(who + ": the name is not unique");
    }
    TANDEM_RETURN_IF_ERROR(check_place(*this, id).with_context(who));
    TANDEM_RETURN_IF_ERROR(check_output(*this, id).with_context(who));
  }
  TANDEM_RETURN_IF_ERROR(check_links(*this));
  for (TensorId output : outputs_) {
    if (!is_tensor(*this, output)) return internal_error("an output of the graph does not exist");
  }
  return {};
}

}  // namespace tandem
