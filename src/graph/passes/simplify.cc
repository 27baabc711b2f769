#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graph/passes/copies.h"
#include "graph/passes/evaluate.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

using Kind = BinaryAttributes::Kind;

bool fold_constant(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  std::vector<const Tensor*> inputs;
  for (TensorId input : op.inputs) {
    if (!is_constant(graph, input)) return false;
    inputs.push_back(&graph.tensor(input));
  }
  const Tensor& output = graph.tensor(op.output);
  if (graph.is_output(op.output)) return false;
  const TensorId constant =
      graph.add_constant(output.name, evaluate(op.attributes, inputs, {output.type, output.dims}));
  return graph.bypass(id, constant);
}

// ---- Arithmetic with constants --------------------------------------------------------------

bool commutes(Kind kind) {
  return kind == Kind::kAdd || kind == Kind::kMul || kind == Kind::kMax || kind == Kind::kMin;
}

// Replaces the constant second operand, and the kind with it.
template <typename F>
void replace_constant(GraphEditor& graph, OperatorId id, Kind kind, const F& f) {
  const Operator& op = graph.op(id);
  const Tensor& before = graph.tensor(op.inputs[1]);
  HostTensor value = *before.value;
  std::transform(value.data<float>(), value.data<float>() + value.size(), value.data<float>(), f);
  BinaryAttributes binary = op.as<BinaryAttributes>();
  binary.kind = kind;
  const TensorId constant = graph.add_constant(before.name, std::move(value));
  graph.replace(id, op.name, binary, {op.inputs[0], constant});
}

template <typename Predicate>
bool all_of(const HostTensor& tensor, const Predicate& predicate) {
  return std::all_of(tensor.data<float>(), tensor.data<float>() + tensor.size(), predicate);
}

// Whether the reciprocal loses no more than a rounding.
bool has_reciprocal(float value) { return std::isnormal(value) && std::isnormal(1.0f / value); }

bool simplify_power(GraphEditor& graph, OperatorId id, float exponent) {
  const Operator& op = graph.op(id);
  const TensorId x = op.inputs[0];
  const Activation activation = op.as<BinaryAttributes>().activation;
  if (graph.tensor(x).dims != graph.tensor(op.output).dims) return false;
  if (exponent == 2) {
    graph.replace(id, op.name, BinaryAttributes{Kind::kMul, activation}, {x, x});
    return true;
  }
  if (activation != Activation{}) return false;
  if (exponent == 1) return graph.bypass(id, x);
  if (exponent == 0.5f) {
    graph.replace(id, op.name, UnaryAttributes{{Function::kSqrt}}, {x});
    return true;
  }
  return false;
}

bool simplify_binary(GraphEditor& graph, OperatorId id, const BinaryAttributes& binary) {
  const Operator& op = graph.op(id);
  const TensorId a = op.inputs[0];
  const TensorId b = op.inputs[1];
  if (is_constant(graph, a) && !is_constant(graph, b) && commutes(binary.kind)) {
    graph.replace(id, op.name, binary, {b, a});
    return true;
  }
  if (!is_constant(graph, b)) return false;
  const HostTensor& constant = *graph.tensor(b).value;
  if (binary.kind == Kind::kSub) {
    replace_constant(graph, id, Kind::kAdd, [](float value) { return -value; });
    return true;
  }
  if (binary.kind == Kind::kDiv && all_of(constant, has_reciprocal)) {
    replace_constant(graph, id, Kind::kMul, [](float value) { return 1.0f / value; });
    return true;
  }
  if (binary.kind == Kind::kPow) {
    const auto exponent = scalar_of(graph, b);
    return exponent && simplify_power(graph, id, *exponent);
  }
  const bool neutral =
      (binary.kind == Kind::kMul && all_of(constant, [](float v) { return v == 1; })) ||
      (binary.kind == Kind::kAdd && all_of(constant, [](float v) { return v == 0; }));
  return neutral && binary.activation == Activation{} &&
         graph.tensor(a).dims == graph.tensor(op.output).dims && graph.bypass(id, a);
}

bool simplify_unary(GraphEditor& graph, OperatorId id, const UnaryAttributes& unary) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const Operator& op = graph.op(id);
  Function function = unary.function.function;
  if (function == Function::kClip && unary.function.beta >= kMost) {
    if (unary.function.alpha <= -kMost) function = Function::kIdentity;
    if (unary.function.alpha == 0) function = Function::kRelu;
  }
  if (function == Function::kIdentity) return graph.bypass(id, op.inputs[0]);
  if (function == unary.function.function) return false;
  graph.replace(id, op.name, UnaryAttributes{{function}}, op.inputs);
  return true;
}

// ---- Reshapes and copies --------------------------------------------------------------------

bool simplify_reshape(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const TensorId x = op.inputs[0];
  const Dims& from = graph.tensor(x).dims;
  const Dims& to = graph.tensor(op.output).dims;
  if (from == to) return graph.bypass(id, x);
  if (graph.made_by<ReshapeAttributes>(x)) {
    graph.replace(id, op.name, ReshapeAttributes{}, graph.producer(x).inputs);
    return true;
  }
  // Extents of 1 that come or go do not need an operator of their own behind a copy.
  const auto* copy = graph.made_by<CopyAttributes>(x);
  const auto reshape = reshape_as_copy(from, to);
  if (!copy || !reshape || !graph.used_once(x)) return false;
  if (reshape->step != Dims(to.size(), 1)) return false;  // a split costs nothing as a reshape
  graph.replace(id, graph.producer(x).name, compose(*reshape, *copy), graph.producer(x).inputs);
  return true;
}

// The axes of a pure permutation of all elements.
std::optional<std::vector<int>> permutation_of(const CopyAttributes& copy, const Dims& from,
                                               const Dims& to) {
  if (from.size() != to.size() || copy.step != Dims(to.size(), 1) ||
      copy.start != Dims(from.size(), 0)) {
    return std::nullopt;
  }
  std::vector<bool> seen(from.size(), false);
  for (size_t d = 0; d < to.size(); ++d) {
    const int axis = copy.source_axis[d];
    if (axis == kNone || seen[axis] || from[axis] != to[d]) return std::nullopt;
    seen[axis] = true;
  }
  return copy.source_axis;
}

// [N, C, H, W] -> [N, C, H * W] -> [N, H * W, C] goes by way of [N, H, W, C] instead: of a
// channels-last tensor both steps are mere views then. The same backwards.
bool move_channels_first(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const TensorId x = op.inputs[0];
  if (!graph.made_by<ReshapeAttributes>(x)) return false;
  const TensorId image = graph.producer(x).inputs[0];
  const Dims& from = graph.tensor(image).dims;
  const Dims& merged = graph.tensor(x).dims;
  const Dims& to = graph.tensor(op.output).dims;
  const auto permutation = permutation_of(op.as<CopyAttributes>(), merged, to);
  if (permutation != std::vector<int>{0, 2, 1} || from.size() != 4) return false;
  if (merged != Dims{from[0], from[1], from[2] * from[3]}) return false;
  const auto rotated = graph.add(op.name + "/channels", permutation_copy({0, 2, 3, 1}), {image},
                                 {from[0], from[2], from[3], from[1]});
  if (!rotated.ok()) return false;
  graph.replace(id, op.name, ReshapeAttributes{}, {*rotated});
  return true;
}

bool move_channels_last(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const TensorId x = op.inputs[0];
  const auto* copy = graph.made_by<CopyAttributes>(x);
  const Dims to = graph.tensor(op.output).dims;
  if (!copy || to.size() != 4 || !graph.used_once(x)) return false;
  const TensorId tokens = graph.producer(x).inputs[0];
  const auto permutation = permutation_of(*copy, graph.tensor(tokens).dims, graph.tensor(x).dims);
  if (permutation != std::vector<int>{0, 2, 1}) return false;
  if (graph.tensor(x).dims != Dims{to[0], to[1], to[2] * to[3]}) return false;
  const auto split =
      graph.add(op.name + "/tokens", ReshapeAttributes{}, {tokens}, {to[0], to[2], to[3], to[1]});
  if (!split.ok()) return false;
  graph.replace(id, op.name, permutation_copy({0, 3, 1, 2}), {*split});
  return true;
}

bool simplify_copy(GraphEditor& graph, OperatorId id, const CopyAttributes& copy) {
  const Operator& op = graph.op(id);
  const TensorId x = op.inputs[0];
  const Dims& from = graph.tensor(x).dims;
  const Dims& to = graph.tensor(op.output).dims;
  if (keeps_order(copy, from, to)) {
    if (from == to) return graph.bypass(id, x);
    graph.replace(id, op.name, ReshapeAttributes{}, {x});
    return true;
  }
  if (const auto* inner = graph.made_by<CopyAttributes>(x)) {
    graph.replace(id, op.name, compose(copy, *inner), graph.producer(x).inputs);
    return true;
  }
  if (graph.made_by<ReshapeAttributes>(x)) {
    const TensorId source = graph.producer(x).inputs[0];
    if (const auto inner = reshape_as_copy(graph.tensor(source).dims, from)) {
      graph.replace(id, op.name, compose(copy, *inner), {source});
      return true;
    }
  }
  return false;
}

// ---- The rest -------------------------------------------------------------------------------

bool flatten_concat(GraphEditor& graph, OperatorId id, const ConcatAttributes& concat) {
  const Operator& op = graph.op(id);
  if (op.inputs.size() == 1) return graph.bypass(id, op.inputs[0]);
  std::vector<TensorId> parts;
  for (TensorId input : op.inputs) {
    const auto* inner = graph.made_by<ConcatAttributes>(input);
    if (inner && inner->axis == concat.axis && graph.used_once(input)) {
      const std::vector<TensorId>& inputs = graph.producer(input).inputs;
      parts.insert(parts.end(), inputs.begin(), inputs.end());
    } else {
      parts.push_back(input);
    }
  }
  if (parts.size() == op.inputs.size()) return false;
  graph.replace(id, op.name, concat, parts);
  return true;
}

bool pads_nothing(const PadAttributes& pad) {
  return pad.before == Dims(pad.before.size(), 0) && pad.after == Dims(pad.after.size(), 0);
}

bool simplify_operator(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  switch (op.kind()) {
    case OperatorKind::kBinary:
      return simplify_binary(graph, id, op.as<BinaryAttributes>());
    case OperatorKind::kUnary:
      return simplify_unary(graph, id, op.as<UnaryAttributes>());
    case OperatorKind::kReshape:
      return simplify_reshape(graph, id);
    case OperatorKind::kCopy:
      return simplify_copy(graph, id, op.as<CopyAttributes>());
    case OperatorKind::kConcat:
      return flatten_concat(graph, id, op.as<ConcatAttributes>());
    case OperatorKind::kPad:
      return pads_nothing(op.as<PadAttributes>()) && graph.bypass(id, op.inputs[0]);
    default:
      return false;
  }
}

// After everything is in its simplest form: these add operators.
bool move_channels(GraphEditor& graph, OperatorId id) {
  if (graph.op(id).kind() == OperatorKind::kCopy) return move_channels_first(graph, id);
  if (graph.op(id).kind() == OperatorKind::kReshape) return move_channels_last(graph, id);
  return false;
}

}  // namespace

StatusOr<Graph> fold_constants(const Graph& graph) { return rewrite(graph, fold_constant); }

StatusOr<Graph> simplify(const Graph& graph) {
  TANDEM_ASSIGN_OR_RETURN(const Graph simple, rewrite(graph, simplify_operator));
  return rewrite(simple, move_channels);
}

}  // namespace tandem
