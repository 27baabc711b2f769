#include "import/onnx/assembler.h"

#include <algorithm>
#include <utility>

#include "graph/passes/copies.h"
#include "graph/passes/evaluate.h"
#include "import/onnx/integer_arithmetic.h"
#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

bool is_integer_arithmetic(const Attributes& attributes, const std::vector<Value>& inputs) {
  return inputs[0].type == DataType::kInt64 &&
         (std::holds_alternative<UnaryAttributes>(attributes) ||
          std::holds_alternative<BinaryAttributes>(attributes) ||
          std::holds_alternative<ReduceAttributes>(attributes));
}

Status expect_elements(const std::vector<Value>& inputs) {
  for (const Value& input : inputs) {
    if (element_count(input.dims) == 0) {
      return unsupported("'" + input.name + "' has no elements: " + to_string(input.dims));
    }
  }
  return {};
}

StatusOr<HostTensor> evaluate_constants(const Attributes& attributes,
                                        const std::vector<Value>& inputs, const Dims& dims) {
  if (is_integer_arithmetic(attributes, inputs)) {
    std::vector<const HostTensor*> tensors;
    tensors.reserve(inputs.size());
    for (const Value& input : inputs) tensors.push_back(input.constant.get());
    return integer_arithmetic(attributes, tensors);
  }
  // A list that a model cuts down to nothing. The graph itself has no such tensors.
  if (element_count(dims) == 0) return HostTensor(inputs[0].type, dims);
  TANDEM_RETURN_IF_ERROR(expect_elements(inputs));
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> pointers;
  tensors.reserve(inputs.size());
  pointers.reserve(inputs.size());
  for (const Value& input : inputs) {
    Tensor tensor;
    tensor.name = input.name;
    tensor.type = input.type;
    tensor.dims = input.dims;
    tensor.kind = TensorKind::kConstant;
    tensor.value = input.constant;
    tensors.push_back(std::move(tensor));
  }
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  TANDEM_ASSIGN_OR_RETURN(const Shape shape, output_shape(attributes, pointers, dims));
  TANDEM_RETURN_IF_ERROR(check_computed_dims(shape.dims));
  return evaluate(attributes, pointers, shape);
}

}  // namespace

Assembler::Assembler(std::string graph_name, std::unordered_set<std::string> reserved)
    : taken_tensor_names_(std::move(reserved)) {
  graph_.name = std::move(graph_name);
}

std::string Assembler::unique(const std::string& name, std::unordered_set<std::string>& taken) {
  std::string candidate = name;
  for (int i = 2; !taken.insert(candidate).second; ++i) candidate = name + "#" + std::to_string(i);
  return candidate;
}

TensorId Assembler::tensor_of(const Value& value) {
  if (!value.constant) return value.id;
  const auto [found, added] = constants_.try_emplace(value.constant.get(), kNone);
  if (added) found->second = graph_.add_constant(value.name, value.constant);
  return found->second;
}

Value Assembler::constant(const std::string& name, HostTensor tensor) {
  Value value;
  value.name = unique(name, taken_tensor_names_);
  value.type = tensor.type;
  value.dims = tensor.dims;
  value.constant = std::make_shared<const HostTensor>(std::move(tensor));
  return value;
}

Value Assembler::add_input(const std::string& name, DataType type, Dims dims) {
  Value value;
  value.name = name;
  value.type = type;
  value.dims = dims;
  value.id = graph_.add_input(name, type, std::move(dims), {Order::kRowMajor, false});
  named_.insert(value.id);
  return value;
}

StatusOr<Value> Assembler::add(const std::string& name, Attributes attributes,
                               const std::vector<Value>& inputs, const Dims& dims) {
  TANDEM_RETURN_IF_ERROR(check_dims(dims));
  if (std::all_of(inputs.begin(), inputs.end(), [](const Value& v) { return v.constant; })) {
    TANDEM_ASSIGN_OR_RETURN(HostTensor tensor, evaluate_constants(attributes, inputs, dims));
    return constant(name, std::move(tensor));
  }
  TANDEM_RETURN_IF_ERROR(expect_elements(inputs));
  if (element_count(dims) == 0) {
    return unsupported("its output has no elements: " + to_string(dims));
  }
  std::vector<const Tensor*> tensors;
  std::vector<TensorId> ids;
  tensors.reserve(inputs.size());
  ids.reserve(inputs.size());
  for (const Value& input : inputs) ids.push_back(tensor_of(input));
  for (TensorId id : ids) tensors.push_back(&graph_.tensor(id));
  // Ahead of Graph::add(), which would put its own words before the error.
  TANDEM_ASSIGN_OR_RETURN(const Shape shape, output_shape(attributes, tensors, dims));
  TANDEM_RETURN_IF_ERROR(check_dims(shape.dims));
  Value value;
  value.type = shape.type;
  value.dims = shape.dims;
  TANDEM_ASSIGN_OR_RETURN(value.id, graph_.add(unique(name, taken_operator_names_),
                                               std::move(attributes), std::move(ids), shape.dims));
  value.name = unique(name, taken_tensor_names_);
  graph_.mutable_tensor(value.id).name = value.name;
  return value;
}

Value Assembler::name_value(const std::string& name, Value value) {
  value.name = name;
  if (!value.constant && named_.insert(value.id).second) {
    graph_.mutable_tensor(value.id).name = name;
  }
  return value;
}

Status Assembler::mark_output(const std::string& name, const Value& value) {
  TensorId id = value.id;
  if (!value.constant && graph_.tensor(id).kind == TensorKind::kActivation &&
      !graph_.is_output(id)) {
    graph_.mutable_tensor(id).name = name;
    graph_.mark_output(id);
    return {};
  }
  // A constant, an input, or a tensor that is an output already under another name.
  if (!value.constant && graph_.tensor(id).name == name) {
    return unsupported("'" + name + "' is an output twice, or an input and an output");
  }
  if (value.constant) {
    TANDEM_RETURN_IF_ERROR(expect_elements({value}));
    id = tensor_of(value);
    Tensor& tensor = graph_.mutable_tensor(id);
    if (tensor.name == name) tensor.name = unique(name, taken_tensor_names_);
  }
  TANDEM_ASSIGN_OR_RETURN(id, graph_.add(unique(name, taken_operator_names_),
                                         plain_copy(value.dims.size()), {id}, value.dims));
  graph_.mutable_tensor(id).name = name;
  graph_.mark_output(id);
  return {};
}

}  // namespace tandem
