// Small questions that patterns are made of. "Plain" binary operators have no activation.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/passes/editor.h"

namespace tandem {

// Equal up to the rounding of constants in model files.
bool nearly(double a, double b);

bool is_constant(const GraphEditor& graph, TensorId id);

// The value of a float constant with one element.
std::optional<float> scalar_of(const GraphEditor& graph, TensorId id);

// `count` numbers if the constant holds one per position of `axis` of a tensor of rank `rank`, or
// the same for all, and broadcasts to it without changing its rank.
std::optional<std::vector<float>> channels_of(const GraphEditor& graph, TensorId id, int axis,
                                              int rank, int64_t count);

// Operands of the plain binary operator of that kind that makes the tensor.
std::optional<std::pair<TensorId, TensorId>> operands(const GraphEditor& graph, TensorId id,
                                                      BinaryAttributes::Kind kind);

// t = x * c or t = x + c with a scalar c, where x has the extents of t.
struct ScalarOperation {
  TensorId x = kNone;
  float c = 0;
};
std::optional<ScalarOperation> scaled(const GraphEditor& graph, TensorId id);
std::optional<ScalarOperation> shifted(const GraphEditor& graph, TensorId id);

// The function that makes the tensor, and its argument.
struct Applied {
  Activation function;
  TensorId x = kNone;
};
std::optional<Applied> applied(const GraphEditor& graph, TensorId id);
// Its argument if it is this one.
std::optional<TensorId> applied(const GraphEditor& graph, TensorId id, Function function);

}  // namespace tandem
