#include <utility>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

using Kind = BinaryAttributes::Kind;

// x of t = mean(x) over the last dimension, which stays as 1.
std::optional<TensorId> mean_of(const GraphEditor& graph, TensorId t) {
  const auto* reduce = graph.made_by<ReduceAttributes>(t);
  if (!reduce || reduce->kind != ReduceAttributes::Kind::kMean || !reduce->keep_dims) {
    return std::nullopt;
  }
  const TensorId x = graph.producer(t).inputs[0];
  const std::vector<int> last = {static_cast<int>(graph.tensor(x).dims.size()) - 1};
  if (reduce->axes != last) return std::nullopt;
  return x;
}

// x of t = x - mean(x).
std::optional<TensorId> deviation_of(const GraphEditor& graph, TensorId t) {
  const auto difference = operands(graph, t, Kind::kSub);
  if (!difference || mean_of(graph, difference->second) != difference->first) return std::nullopt;
  return difference->first;
}

struct Deviation {
  TensorId x = kNone;
  float epsilon = 0;
};

// t = sqrt(mean((x - mean(x))^2) + epsilon).
std::optional<Deviation> standard_deviation(const GraphEditor& graph, TensorId t) {
  const auto sum = applied(graph, t, Function::kSqrt);
  if (!sum) return std::nullopt;
  const auto variance = shifted(graph, *sum);
  if (!variance) return std::nullopt;
  const auto square = mean_of(graph, variance->x);
  if (!square) return std::nullopt;
  const auto factors = operands(graph, *square, Kind::kMul);
  if (!factors || factors->first != factors->second) return std::nullopt;
  const auto x = deviation_of(graph, factors->first);
  if (!x) return std::nullopt;
  return Deviation{*x, variance->c};
}

// y = (x - mean(x)) / deviation, or times its reciprocal.
std::optional<Deviation> normalization(const GraphEditor& graph, TensorId y) {
  std::optional<std::pair<TensorId, TensorId>> pair = operands(graph, y, Kind::kDiv);
  if (!pair) {
    pair = operands(graph, y, Kind::kMul);
    if (!pair) return std::nullopt;
    auto root = applied(graph, pair->second, Function::kReciprocal);
    if (!root) {
      std::swap(pair->first, pair->second);
      root = applied(graph, pair->second, Function::kReciprocal);
    }
    if (!root) return std::nullopt;
    pair->second = *root;
  }
  const auto x = deviation_of(graph, pair->first);
  const auto deviation = standard_deviation(graph, pair->second);
  if (!x || !deviation || deviation->x != *x) return std::nullopt;
  return deviation;
}

// Scale and shift, if there are any, follow as operators of their own: fold_affine() sees to them.
bool recognize_layer_norm(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto found = normalization(graph, op.output);
  if (!found) return false;
  const int64_t width = graph.tensor(op.output).dims.back();
  const std::string name = op.name;
  const TensorId ones = graph.add_constant(
      name + "/scale",
      HostTensor::floats({width}, std::vector<float>(static_cast<size_t>(width), 1)));
  const TensorId zeros =
      graph.add_constant(name + "/bias", HostTensor(DataType::kFloat32, {width}));
  graph.replace(id, name, LayerNormAttributes{found->epsilon}, {found->x, ones, zeros});
  return true;
}

}  // namespace

StatusOr<Graph> recognize_layer_norms(const Graph& graph) {
  return rewrite(graph, recognize_layer_norm);
}

}  // namespace tandem
