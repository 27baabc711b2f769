#include <algorithm>
#include <utility>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

// The operator's final function, where it has one.
Activation* activation_of(Attributes& attributes) {
  if (auto* conv = std::get_if<ConvAttributes>(&attributes)) return &conv->activation;
  if (auto* conv = std::get_if<ConvTransposeAttributes>(&attributes)) return &conv->activation;
  if (auto* linear = std::get_if<LinearAttributes>(&attributes)) return &linear->activation;
  if (auto* binary = std::get_if<BinaryAttributes>(&attributes)) return &binary->activation;
  return nullptr;
}

bool fuse_activation(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto* unary = std::get_if<UnaryAttributes>(&op.attributes);
  if (!unary) return false;
  const TensorId x = op.inputs[0];
  if (graph.tensor(x).producer == kNone || !graph.used_once(x)) return false;
  const Operator& producer = graph.producer(x);
  Attributes attributes = producer.attributes;
  Activation* activation = activation_of(attributes);
  if (!activation || *activation != Activation{}) return false;
  *activation = unary->function;
  graph.replace(id, producer.name, std::move(attributes), producer.inputs);
  return true;
}

bool is_never_negative(const GraphEditor& graph, TensorId x) {
  const auto* unary = graph.made_by<UnaryAttributes>(x);
  if (!unary) return false;
  const Function function = unary->function.function;
  return function == Function::kRelu || function == Function::kSigmoid ||
         (function == Function::kClip && unary->function.alpha >= 0);
}

// Whether each window of the pooling has an element that is no padding.
bool windows_reach_image(const PoolAttributes& pool) {
  for (int i = 0; i < 2; ++i) {
    const int64_t extent = pool.dilation[i] * (pool.kernel[i] - 1) + 1;
    if (std::max(pool.pads[i], pool.pads[2 + i]) >= extent || pool.dilation[i] != 1) return false;
  }
  return true;
}

// Zeros around an image that a convolution alone reads are pads of the convolution; the same goes
// for the maximum of what is never negative.
bool fuse_pad(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  Attributes attributes = op.attributes;
  auto* conv = std::get_if<ConvAttributes>(&attributes);
  auto* pool = std::get_if<PoolAttributes>(&attributes);
  if (!(conv || pool) || !graph.used_once(op.inputs[0])) return false;
  const auto* pad = graph.made_by<PadAttributes>(op.inputs[0]);
  if (!pad || pad->mode != PadAttributes::Mode::kConstant || pad->value != 0) return false;
  if (pad->before[0] + pad->after[0] + pad->before[1] + pad->after[1] != 0) return false;
  Pads& pads = conv ? conv->pads : pool->pads;
  for (int i = 0; i < 2; ++i) {
    pads[i] += pad->before[2 + i];
    pads[2 + i] += pad->after[2 + i];
  }
  std::vector<TensorId> inputs = op.inputs;
  inputs[0] = graph.producer(op.inputs[0]).inputs[0];
  if (pool && (pool->kind != PoolAttributes::Kind::kMax || !windows_reach_image(*pool) ||
               !is_never_negative(graph, inputs[0]))) {
    return false;
  }
  graph.replace(id, op.name, std::move(attributes), inputs);
  return true;
}

// The operator with a residual, if it can take one and no other tensor depends on its output.
std::optional<Attributes> with_residual(const GraphEditor& graph, TensorId y) {
  if (graph.tensor(y).producer == kNone || !graph.used_once(y)) return std::nullopt;
  Attributes attributes = graph.producer(y).attributes;
  const Activation* activation = activation_of(attributes);
  if (!activation || *activation != Activation{}) return std::nullopt;
  if (auto* conv = std::get_if<ConvAttributes>(&attributes)) {
    if (std::exchange(conv->has_residual, true)) return std::nullopt;
    return attributes;
  }
  if (auto* linear = std::get_if<LinearAttributes>(&attributes)) {
    if (std::exchange(linear->has_residual, true)) return std::nullopt;
    return attributes;
  }
  return std::nullopt;
}

bool fuse_residual(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto* binary = std::get_if<BinaryAttributes>(&op.attributes);
  if (!binary || binary->kind != BinaryAttributes::Kind::kAdd) return false;
  const Dims& dims = graph.tensor(op.output).dims;
  for (TensorId input : op.inputs) {
    if (graph.tensor(input).dims != dims || is_constant(graph, input)) return false;
  }
  // The later of the two operands: the other is there by then.
  std::pair<TensorId, TensorId> pair = {op.inputs[0], op.inputs[1]};
  if (graph.tensor(pair.first).producer < graph.tensor(pair.second).producer) {
    std::swap(pair.first, pair.second);
  }
  for (const auto& [y, residual] : {pair, std::pair(pair.second, pair.first)}) {
    std::optional<Attributes> attributes = with_residual(graph, y);
    if (!attributes) continue;
    *activation_of(*attributes) = binary->activation;
    const Operator& producer = graph.producer(y);
    std::vector<TensorId> inputs = producer.inputs;
    inputs.push_back(residual);
    graph.replace(id, producer.name, std::move(*attributes), std::move(inputs));
    return true;
  }
  return false;
}

}  // namespace

StatusOr<Graph> fuse_pads(const Graph& graph) { return rewrite(graph, fuse_pad); }

StatusOr<Graph> fuse_residuals(const Graph& graph) { return rewrite(graph, fuse_residual); }

StatusOr<Graph> fuse_activations(const Graph& graph) { return rewrite(graph, fuse_activation); }

}  // namespace tandem
