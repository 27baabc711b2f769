#include <cmath>
#include <numbers>
#include <utility>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

using Kind = BinaryAttributes::Kind;

// A reading of a product as x * gate * factor.
struct Product {
  TensorId x = kNone;
  TensorId gate = kNone;
  double factor = 1;
};

// Every reading: models put the scalar factor behind the product, or on either operand.
std::vector<Product> readings(const GraphEditor& graph, TensorId y) {
  const auto scale = scaled(graph, y);
  const auto pair = operands(graph, scale ? scale->x : y, Kind::kMul);
  if (!pair) return {};
  const double factor = scale ? scale->c : 1;
  std::vector<Product> result;
  for (const auto& [a, b] : {*pair, std::pair(pair->second, pair->first)}) {
    result.push_back({a, b, factor});
    if (const auto inner = scaled(graph, a)) result.push_back({inner->x, b, factor * inner->c});
    if (const auto inner = scaled(graph, b)) result.push_back({a, inner->x, factor * inner->c});
  }
  return result;
}

bool is_clip(const std::optional<Applied>& function, double low, double high) {
  return function && function->function.function == Function::kClip &&
         function->function.alpha == low && nearly(function->function.beta, high);
}

bool is_sigmoid(const GraphEditor& graph, const Product& p) {
  return nearly(p.factor, 1) && applied(graph, p.gate, Function::kSigmoid) == p.x;
}

// clip(x + 3, 0, 6) / 6, also as clip((x + 3) / 6, 0, 1) and clip(x / 6 + 0.5, 0, 1).
bool is_hard_sigmoid(const GraphEditor& graph, const Product& p) {
  const auto function = applied(graph, p.gate);
  if (!function) return false;
  const Activation& f = function->function;
  if (f.function == Function::kHardSigmoid) {
    return function->x == p.x && nearly(p.factor, 1) && nearly(f.alpha, 1.0 / 6) &&
           nearly(f.beta, 0.5);
  }
  if (is_clip(function, 0, 6) && nearly(p.factor, 1.0 / 6)) {
    const auto shift = shifted(graph, function->x);
    return shift && shift->x == p.x && nearly(shift->c, 3);
  }
  if (!is_clip(function, 0, 1) || !nearly(p.factor, 1)) return false;
  if (const auto outer = scaled(graph, function->x)) {
    const auto inner = shifted(graph, outer->x);
    return inner && inner->x == p.x && nearly(outer->c, 1.0 / 6) && nearly(inner->c, 3);
  }
  if (const auto outer = shifted(graph, function->x)) {
    const auto inner = scaled(graph, outer->x);
    return inner && inner->x == p.x && nearly(outer->c, 0.5) && nearly(inner->c, 1.0 / 6);
  }
  return false;
}

// The argument of f in (1 + f(...)) / 2.
std::optional<TensorId> half_of_one_plus(const GraphEditor& graph, const Product& p,
                                         Function function) {
  const auto sum = shifted(graph, p.gate);
  if (!nearly(p.factor, 0.5) || !sum || !nearly(sum->c, 1)) return std::nullopt;
  return applied(graph, sum->x, function);
}

bool is_erf_gate(const GraphEditor& graph, const Product& p) {
  const auto argument = half_of_one_plus(graph, p, Function::kErf);
  if (!argument) return false;
  const auto scale = scaled(graph, *argument);
  return scale && scale->x == p.x && nearly(scale->c, 1 / std::numbers::sqrt2);
}

bool is_square(const GraphEditor& graph, TensorId t, TensorId x) {
  return operands(graph, t, Kind::kMul) == std::pair(x, x);
}

bool is_cube(const GraphEditor& graph, TensorId t, TensorId x) {
  if (const auto power = operands(graph, t, Kind::kPow)) {
    return power->first == x && scalar_of(graph, power->second) == 3.0f;
  }
  const auto product = operands(graph, t, Kind::kMul);
  return product && ((product->first == x && is_square(graph, product->second, x)) ||
                     (product->second == x && is_square(graph, product->first, x)));
}

// sqrt(2 / pi) * (x + 0.044715 x^3), also as sqrt(2 / pi) * x * (1 + 0.044715 x^2).
bool is_tanh_gate(const GraphEditor& graph, const Product& p) {
  constexpr double kCubic = 0.044715;
  const double outer_factor = std::sqrt(2 / std::numbers::pi);
  const auto argument = half_of_one_plus(graph, p, Function::kTanh);
  if (!argument) return false;
  if (const auto outer = scaled(graph, *argument); outer && nearly(outer->c, outer_factor)) {
    if (const auto sum = operands(graph, outer->x, Kind::kAdd)) {
      for (const auto& [linear, cubic] : {*sum, std::pair(sum->second, sum->first)}) {
        const auto term = scaled(graph, cubic);
        if (linear == p.x && term && nearly(term->c, kCubic) && is_cube(graph, term->x, p.x)) {
          return true;
        }
      }
    }
  }
  for (const Product& product : readings(graph, *argument)) {
    const auto sum = shifted(graph, product.gate);
    if (product.x != p.x || !nearly(product.factor, outer_factor) || !sum || !nearly(sum->c, 1)) {
      continue;
    }
    const auto term = scaled(graph, sum->x);
    if (term && nearly(term->c, kCubic) && is_square(graph, term->x, p.x)) return true;
  }
  return false;
}

struct Gate {
  bool (*matches)(const GraphEditor&, const Product&);
  Function function;
};

constexpr Gate kGates[] = {
    {is_sigmoid, Function::kSilu},
    {is_hard_sigmoid, Function::kHardSwish},
    {is_erf_gate, Function::kGelu},
    {is_tanh_gate, Function::kGeluTanh},
};

// factor * clip(x + shift, 0, 1 / factor), where a model has it by itself.
bool recognize_hard_sigmoid(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto scale = scaled(graph, op.output);
  if (!scale || !(scale->c > 0)) return false;
  const auto clip = applied(graph, scale->x);
  if (!is_clip(clip, 0, 1.0 / scale->c)) return false;
  const auto shift = shifted(graph, clip->x);
  if (!shift) return false;
  const Activation function = {Function::kHardSigmoid, scale->c, scale->c * shift->c};
  graph.replace(id, op.name, UnaryAttributes{function}, {shift->x});
  return true;
}

bool recognize_gate(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (recognize_hard_sigmoid(graph, id)) return true;
  for (const Product& product : readings(graph, op.output)) {
    for (const Gate& gate : kGates) {
      if (!gate.matches(graph, product)) continue;
      graph.replace(id, op.name, UnaryAttributes{{gate.function}}, {product.x});
      return true;
    }
  }
  return false;
}

}  // namespace

StatusOr<Graph> recognize_gates(const Graph& graph) { return rewrite(graph, recognize_gate); }

}  // namespace tandem
