// Rewriting of graphs between import and scheduling. Every pass computes the same outputs from the
// same inputs, up to rounding, and keeps the names of the graph's inputs and outputs. An operator
// that others were fused into keeps its name.
#pragma once

#include "graph/graph.h"

namespace tandem {

// The passes, in the order in which optimize() runs them: each relies on those before it.

// Operators whose inputs are all constants are computed.
StatusOr<Graph> fold_constants(const Graph& graph);
// Operators that change nothing go away; chains of reshapes and copies become one; arithmetic with
// constants gets one form (constants second, no subtraction or division of them), so that the
// patterns below need to know one form only.
StatusOr<Graph> simplify(const Graph& graph);
// Permutations of images between channels first and last, as channels-last frameworks write them
// around every operator on images, move together until they cancel out. Means over an image become
// global poolings. Chains of copies may be left: simplify() follows again.
StatusOr<Graph> move_permutations(const Graph& graph);
// x * sigmoid(x), clip(x + 3, 0, 6) / 6, x * clip(x + 3, 0, 6) / 6, x / 2 * (1 + erf(x / sqrt(2))) and their variants
// become functions of one value.
StatusOr<Graph> recognize_gates(const Graph& graph);
// (x - mean) / sqrt(variance + epsilon) becomes kLayerNorm.
StatusOr<Graph> recognize_layer_norms(const Graph& graph);
// Scales and transpositions go into kMatMul; one with constant weights becomes kLinear. Reshapes
// around these move, so that simplify() follows again.
StatusOr<Graph> fuse_matmuls(const Graph& graph);
// Padding by zeros goes into the convolution behind it.
StatusOr<Graph> fuse_pads(const Graph& graph);
// A multiplication by, or addition of, a constant per channel goes into the weights of the
// convolution, linear layer or layer norm before it, else of the one behind it.
StatusOr<Graph> fold_affine(const Graph& graph);
// The addition of another tensor goes into the convolution or linear layer that makes the last
// operand.
StatusOr<Graph> fuse_residuals(const Graph& graph);
// A function of one value goes into the operator that makes the value.
StatusOr<Graph> fuse_activations(const Graph& graph);

// All of these.
StatusOr<Graph> optimize(const Graph& graph);

}  // namespace tandem
