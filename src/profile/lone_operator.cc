#include "profile/lone_operator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {

double uniform(ProfileRandom& random, double low, double high) {
  // std::uniform_real_distribution differs between libraries.
  constexpr double kScale = 1.0 / (uint64_t{1} << 53);
  return low + (high - low) * static_cast<double>(random() >> 11) * kScale;
}

LoneOperator lone_operator(const Graph& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  LoneOperator lone;
  lone.attributes = op.attributes;
  for (TensorId input : op.inputs) {
    const Tensor& tensor = graph.tensor(input);
    const bool constant = tensor.kind == TensorKind::kConstant;
    const bool integers = tensor.type == DataType::kInt64;
    lone.inputs.push_back({tensor.type, tensor.dims, tensor.layout, constant,
                           constant && integers ? tensor.value : nullptr});
  }
  lone.dims = graph.output_of(id).dims;
  lone.layout = graph.output_of(id).layout;
  return lone;
}

std::shared_ptr<const HostTensor> ConstantPool::get(const Dims& dims) {
  std::shared_ptr<const HostTensor>& value = values_[dims];
  if (value) return value;
  if (!filled_) {
    auto tensor = std::make_shared<HostTensor>();
    tensor->dims = dims;
    value = std::move(tensor);
    return value;
  }
  auto tensor = std::make_shared<HostTensor>(DataType::kFloat32, dims);
  // Times depend on values through denormals, infinities and NaN only: a short period will do.
  constexpr size_t kPeriod = 4099;
  std::vector<float> values(kPeriod);
  ProfileRandom random(1);
  for (float& v : values) v = static_cast<float>(uniform(random, 0.1, 1) * (random() % 2 ? 1 : -1));
  auto* data = tensor->data<float>();
  const auto size = static_cast<size_t>(tensor->size());
  for (size_t i = 0; i < size; i += kPeriod) {
    std::copy_n(values.data(), std::min(kPeriod, size - i), data + i);
  }
  value = std::move(tensor);
  return value;
}

StatusOr<AddedOperator> add_to(Graph& graph, const LoneOperator& op, const std::string& name,
                               ConstantPool& constants) {
  AddedOperator added;
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Operand& input = op.inputs[i];
    const std::string input_name = name + ".input" + std::to_string(i);
    if (input.constant) {
      inputs.push_back(
          graph.add_constant(input_name, input.value ? input.value : constants.get(input.dims)));
      graph.mutable_tensor(inputs.back()).layout = input.layout;
    } else if (input.type != DataType::kFloat32) {
      inputs.push_back(graph.add_input(input_name, input.type, input.dims, input.layout));
    } else {
      const TensorId source =
          graph.add_input(input_name + ".source", input.type, input.dims, input.layout);
      TANDEM_ASSIGN_OR_RETURN(
          const TensorId made,
          graph.add(input_name, UnaryAttributes{{Function::kRelu}}, {source}, {}, input.layout));
      added.writers.push_back(graph.tensor(made).producer);
      inputs.push_back(made);
    }
  }
  const bool sized = std::holds_alternative<CopyAttributes>(op.attributes) ||
                     std::holds_alternative<ReshapeAttributes>(op.attributes) ||
                     std::holds_alternative<ResizeAttributes>(op.attributes) ||
                     std::holds_alternative<PoolAttributes>(op.attributes);
  TANDEM_ASSIGN_OR_RETURN(const TensorId output, graph.add(name, op.attributes, inputs,
                                                           sized ? op.dims : Dims{}, op.layout));
  added.op = graph.tensor(output).producer;
  graph.mark_output(output);
  return added;
}

}  // namespace tandem
