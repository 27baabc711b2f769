#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

using Kind = BinaryAttributes::Kind;

// ---- Operators with weights -----------------------------------------------------------------

// What kConv, kConvTranspose, kLinear and kLayerNorm have in common.
struct Weighted {
  int axis = 0;         // the channels of x and y
  int64_t inputs = 0;   // channels of x
  int64_t outputs = 0;  // channels of y
  bool has_bias = false;
  bool has_residual = false;
  Activation activation;
};

std::optional<Weighted> weighted(const GraphEditor& graph, const Operator& op) {
  const auto channels = [&](TensorId id, int axis) { return graph.tensor(id).dims[axis]; };
  Weighted result;
  if (const auto* conv = std::get_if<ConvAttributes>(&op.attributes)) {
    result = {1, 0, 0, conv->has_bias, conv->has_residual, conv->activation};
  } else if (const auto* conv = std::get_if<ConvTransposeAttributes>(&op.attributes)) {
    result = {1, 0, 0, conv->has_bias, false, conv->activation};
  } else if (const auto* linear = std::get_if<LinearAttributes>(&op.attributes)) {
    const int last = static_cast<int>(graph.tensor(op.output).dims.size()) - 1;
    result = {last, 0, 0, linear->has_bias, linear->has_residual, linear->activation};
  } else if (std::holds_alternative<LayerNormAttributes>(op.attributes)) {
    const int last = static_cast<int>(graph.tensor(op.output).dims.size()) - 1;
    result = {last, 0, 0, true, false, {}};
  } else {
    return std::nullopt;
  }
  result.inputs = channels(op.inputs[0], result.axis);
  result.outputs = channels(op.output, result.axis);
  return result;
}

// Calls f(element, input channel, output channel) for every element of the weights.
template <typename F>
void for_each_weight(const GraphEditor& graph, const Operator& op, HostTensor& w, const F& f) {
  float* element = w.data<float>();
  if (const auto* conv = std::get_if<ConvAttributes>(&op.attributes)) {
    const int64_t window = w.dims[2] * w.dims[3];
    const int64_t per_group = w.dims[0] / conv->groups;
    for (int64_t m = 0; m < w.dims[0]; ++m) {
      const int64_t first = m / per_group * w.dims[1];
      for (int64_t c = 0; c < w.dims[1]; ++c) {
        for (int64_t i = 0; i < window; ++i) f(*element++, first + c, m);
      }
    }
  } else if (const auto* conv = std::get_if<ConvTransposeAttributes>(&op.attributes)) {
    const int64_t window = w.dims[2] * w.dims[3];
    const int64_t per_group = w.dims[0] / conv->groups;
    for (int64_t c = 0; c < w.dims[0]; ++c) {
      const int64_t first = c / per_group * w.dims[1];
      for (int64_t m = 0; m < w.dims[1]; ++m) {
        for (int64_t i = 0; i < window; ++i) f(*element++, c, first + m);
      }
    }
  } else if (op.kind() == OperatorKind::kLinear) {
    for (int64_t k = 0; k < w.dims[0]; ++k) {
      for (int64_t n = 0; n < w.dims[1]; ++n) f(*element++, k, n);
    }
  } else {  // the scale of a layer norm
    const int64_t width = graph.tensor(op.output).dims.back();
    for (int64_t i = 0; i < width; ++i) f(*element++, i, i);
  }
}

void set_bias(Attributes& attributes) {
  if (auto* conv = std::get_if<ConvAttributes>(&attributes)) conv->has_bias = true;
  if (auto* conv = std::get_if<ConvTransposeAttributes>(&attributes)) conv->has_bias = true;
  if (auto* linear = std::get_if<LinearAttributes>(&attributes)) linear->has_bias = true;
}

// The operator with other weights and another bias, as operator `id`, reading `x`.
void replace_weights(GraphEditor& graph, OperatorId id, const Operator& op, TensorId x,
                     std::optional<HostTensor> weights, std::optional<std::vector<float>> bias) {
  const std::string name = op.name;
  const bool had_bias = weighted(graph, op)->has_bias;
  Attributes attributes = op.attributes;
  std::vector<TensorId> inputs = op.inputs;
  inputs[0] = x;
  if (weights) inputs[1] = graph.add_constant(name + "/weights", std::move(*weights));
  if (bias) {
    const int64_t count = static_cast<int64_t>(bias->size());
    const TensorId constant =
        graph.add_constant(name + "/bias", HostTensor::floats({count}, std::move(*bias)));
    if (had_bias) {
      inputs[2] = constant;
    } else {
      inputs.insert(inputs.begin() + 2, constant);
      set_bias(attributes);
    }
  }
  graph.replace(id, name, std::move(attributes), std::move(inputs));
}

std::vector<float> bias_of(const GraphEditor& graph, const Operator& op, const Weighted& w) {
  if (!w.has_bias) return std::vector<float>(static_cast<size_t>(w.outputs), 0.0f);
  const float* values = graph.tensor(op.inputs[2]).value->data<float>();
  return std::vector<float>(values, values + w.outputs);
}

// ---- Into the operator before ---------------------------------------------------------------

bool fold_into_producer(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto* binary = std::get_if<BinaryAttributes>(&op.attributes);
  if (!binary || binary->activation != Activation{} ||
      (binary->kind != Kind::kMul && binary->kind != Kind::kAdd)) {
    return false;
  }
  const TensorId y = op.inputs[0];
  if (graph.tensor(y).producer == kNone || !graph.used_once(y)) return false;
  const Operator& producer = graph.producer(y);
  const auto w = weighted(graph, producer);
  // A factor would have to reach the residual, too.
  if (!w || w->activation != Activation{} || (w->has_residual && binary->kind == Kind::kMul)) {
    return false;
  }
  const int rank = static_cast<int>(graph.tensor(y).dims.size());
  const auto constant = channels_of(graph, op.inputs[1], w->axis, rank, w->outputs);
  if (!constant) return false;
  std::vector<float> bias = bias_of(graph, producer, *w);
  std::optional<HostTensor> weights;
  if (binary->kind == Kind::kMul) {
    weights = *graph.tensor(producer.inputs[1]).value;
    for_each_weight(graph, producer, *weights,
                    [&](float& element, int64_t, int64_t m) { element *= (*constant)[m]; });
    for (size_t m = 0; m < bias.size(); ++m) bias[m] *= (*constant)[m];
  } else {
    for (size_t m = 0; m < bias.size(); ++m) bias[m] += (*constant)[m];
  }
  const bool keep_bias = w->has_bias || binary->kind == Kind::kAdd;
  replace_weights(graph, id, producer, producer.inputs[0], std::move(weights),
                  keep_bias ? std::optional(std::move(bias)) : std::nullopt);
  return true;
}

// ---- Into the operator behind ---------------------------------------------------------------

// t = x op constant with a number per channel of t, where nothing else reads t.
struct PerChannel {
  TensorId x = kNone;
  std::vector<float> constant;
};

std::optional<PerChannel> per_channel(const GraphEditor& graph, TensorId t, Kind kind,
                                      const Weighted& w) {
  const auto pair = operands(graph, t, kind);
  if (!pair || !graph.used_once(t) || graph.tensor(pair->first).dims != graph.tensor(t).dims) {
    return std::nullopt;
  }
  const int rank = static_cast<int>(graph.tensor(t).dims.size());
  auto constant = channels_of(graph, pair->second, w.axis, rank, w.inputs);
  if (!constant) return std::nullopt;
  return PerChannel{pair->first, std::move(*constant)};
}

HostTensor scaled_inputs(const GraphEditor& graph, const Operator& op,
                         const std::vector<float>& factors) {
  HostTensor weights = *graph.tensor(op.inputs[1]).value;
  for_each_weight(graph, op, weights,
                  [&](float& element, int64_t c, int64_t) { element *= factors[c]; });
  return weights;
}

bool fold_factor(GraphEditor& graph, OperatorId id, const Weighted& w) {
  const Operator& op = graph.op(id);
  const auto factor = per_channel(graph, op.inputs[0], Kind::kMul, w);
  if (!factor) return false;
  replace_weights(graph, id, op, factor->x, scaled_inputs(graph, op, factor->constant),
                  std::nullopt);
  return true;
}

// Pads are zeros behind the addition: where there are any, it cannot go into the bias.
bool has_pads(const Operator& op) {
  const auto* conv = std::get_if<ConvAttributes>(&op.attributes);
  return conv && conv->pads != Pads{0, 0, 0, 0};
}

bool fold_summand(GraphEditor& graph, OperatorId id, const Weighted& w) {
  const Operator& op = graph.op(id);
  if (has_pads(op)) return false;
  const auto summand = per_channel(graph, op.inputs[0], Kind::kAdd, w);
  if (!summand) return false;
  const std::vector<float> before = bias_of(graph, op, w);
  std::vector<double> bias(before.begin(), before.end());
  HostTensor weights = *graph.tensor(op.inputs[1]).value;
  for_each_weight(graph, op, weights, [&](float& element, int64_t c, int64_t m) {
    bias[m] += static_cast<double>(element) * summand->constant[c];
  });
  replace_weights(graph, id, op, summand->x, std::nullopt,
                  std::vector<float>(bias.begin(), bias.end()));
  return true;
}

// x * a + b in front of pads is (x + b / a) * a: the factor can go into the weights all the same.
bool fold_factor_below_summand(GraphEditor& graph, OperatorId id, const Weighted& w) {
  const Operator& op = graph.op(id);
  if (!has_pads(op)) return false;
  const auto summand = per_channel(graph, op.inputs[0], Kind::kAdd, w);
  if (!summand) return false;
  const auto factor = per_channel(graph, summand->x, Kind::kMul, w);
  if (!factor) return false;
  const int64_t count = w.inputs;
  HostTensor shift(DataType::kFloat32, {count, 1, 1});
  for (int64_t c = 0; c < count; ++c) {
    const float quotient = summand->constant[c] / factor->constant[c];
    if (!std::isnormal(factor->constant[c]) || !std::isfinite(quotient)) return false;
    shift.data<float>()[c] = quotient;
  }
  const std::string name = graph.producer(op.inputs[0]).name;
  const TensorId constant = graph.add_constant(name + "/shift", std::move(shift));
  const auto shifted = graph.add(name, BinaryAttributes{Kind::kAdd, {}}, {factor->x, constant});
  if (!shifted.ok()) return false;
  replace_weights(graph, id, op, *shifted, scaled_inputs(graph, op, factor->constant),
                  std::nullopt);
  return true;
}

bool fold_into_consumer(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (op.kind() != OperatorKind::kConv && op.kind() != OperatorKind::kLinear) return false;
  const Weighted w = *weighted(graph, op);
  return fold_factor(graph, id, w) || fold_summand(graph, id, w) ||
         fold_factor_below_summand(graph, id, w);
}

}  // namespace

StatusOr<Graph> fold_affine(const Graph& graph) {
  TANDEM_ASSIGN_OR_RETURN(const Graph folded, rewrite(graph, fold_into_producer));
  return rewrite(folded, fold_into_consumer);
}

}  // namespace tandem
