#include "graph/passes/match.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

std::optional<ScalarOperation> with_scalar(const GraphEditor& graph, TensorId id,
                                           BinaryAttributes::Kind kind) {
  const auto found = operands(graph, id, kind);
  if (!found || graph.tensor(found->first).dims != graph.tensor(id).dims) return std::nullopt;
  const auto c = scalar_of(graph, found->second);
  if (!c) return std::nullopt;
  return ScalarOperation{found->first, *c};
}

}  // namespace

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

bool is_constant(const GraphEditor& graph, TensorId id) {
  return graph.tensor(id).kind == TensorKind::kConstant;
}

std::optional<float> scalar_of(const GraphEditor& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  if (!tensor.value || tensor.type != DataType::kFloat32 || tensor.value->size() != 1) {
    return std::nullopt;
  }
  return tensor.value->data<float>()[0];
}

std::optional<std::vector<float>> channels_of(const GraphEditor& graph, TensorId id, int axis,
                                              int rank, int64_t count) {
  const Tensor& tensor = graph.tensor(id);
  const int own_rank = static_cast<int>(tensor.dims.size());
  if (!tensor.value || tensor.type != DataType::kFloat32 || own_rank > rank) return std::nullopt;
  for (int d = 0; d < own_rank; ++d) {
    const bool along = d + rank - own_rank == axis;
    if (tensor.dims[d] != 1 && !(along && tensor.dims[d] == count)) return std::nullopt;
  }
  const float* values = tensor.value->data<float>();
  if (tensor.value->size() == 1) {
    return std::vector<float>(static_cast<size_t>(count), values[0]);
  }
  return std::vector<float>(values, values + count);
}

std::optional<std::pair<TensorId, TensorId>> operands(const GraphEditor& graph, TensorId id,
                                                      BinaryAttributes::Kind kind) {
  const auto* binary = graph.made_by<BinaryAttributes>(id);
  if (!binary || binary->kind != kind || binary->activation != Activation{}) return std::nullopt;
  const Operator& op = graph.producer(id);
  return std::pair(op.inputs[0], op.inputs[1]);
}

std::optional<ScalarOperation> scaled(const GraphEditor& graph, TensorId id) {
  return with_scalar(graph, id, BinaryAttributes::Kind::kMul);
}

std::optional<ScalarOperation> shifted(const GraphEditor& graph, TensorId id) {
  return with_scalar(graph, id, BinaryAttributes::Kind::kAdd);
}

std::optional<Applied> applied(const GraphEditor& graph, TensorId id) {
  const auto* unary = graph.made_by<UnaryAttributes>(id);
  if (!unary) return std::nullopt;
  return Applied{unary->function, graph.producer(id).inputs[0]};
}

std::optional<TensorId> applied(const GraphEditor& graph, TensorId id, Function function) {
  const auto found = applied(graph, id);
  if (!found || found->function.function != function) return std::nullopt;
  return found->x;
}

}  // namespace tandem
