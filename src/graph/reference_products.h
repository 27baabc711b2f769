// The reference's convolutions and products of matrices.
#pragma once

#include <vector>

#include "graph/reference.h"

namespace tandem {

// What operators read, in their order.
using ReferenceInputs = std::vector<const ReferenceTensor*>;

// Fill y, whose extents are set.
void evaluate(const ConvAttributes& conv, const ReferenceInputs& in, ReferenceTensor& y);
void evaluate(const ConvTransposeAttributes& conv, const ReferenceInputs& in, ReferenceTensor& y);
void evaluate(const LinearAttributes& linear, const ReferenceInputs& in, ReferenceTensor& y);
void evaluate(const MatMulAttributes& matmul, const ReferenceInputs& in, ReferenceTensor& y);

}  // namespace tandem
