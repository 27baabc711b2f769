// Where elements lie: the last pass.
#pragma once

#include "graph/graph.h"

namespace tandem {

// Gives every tensor its layout, and inserts conversions (kCopy) where the demands of operators
// differ:
// - inputs and outputs of the graph are row-major and dense;
// - x, residual and y of kConv, kConvTranspose, kPool and kResize are channels-last and padded. Of
//   up to four channels (pictures) that convolutions alone read, x is dense instead: padding would
//   be most of it, and there are faster kernels;
// - kLinear, kMatMul and kLayerNorm take and make row-major tensors;
// - operands of kUnary and kBinary that have the shape of y have its layout;
// - all others take and make any layout.
// A tensor of rank 4 that two demands leave open is channels-last if it comes from or leads to an
// operator on images; activations are padded unless they are outputs.
StatusOr<Graph> assign_layouts(const Graph& graph);

// Of an image of so many channels that no operator on images made and convolutions alone read.
Layout convolution_input_layout(int64_t channels);

// The first of the above that does not hold, named.
Status check_layouts(const Graph& graph);

}  // namespace tandem
