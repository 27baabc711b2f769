// Packing of computed matrices for the tiled product, and transposition.
#pragma once

#include <cstdint>

namespace tandem::cpu {

// A matrix in memory: rows at `stride`, their elements contiguous.
struct MatrixSource {
  const float* data = nullptr;
  int64_t stride = 0;
  int64_t rows = 0, columns = 0;
  // False: rows are the depth, columns the columns of the product. True: the other way round.
  bool transposed = false;
  float factor = 1;  // of every element
};

// Into panels [panel][depth][kPanel]; columns of the product beyond the end are zero.
void pack_matrix(const MatrixSource& source, float* to);
// Into rows that are the source's columns, `to_stride` apart.
void transpose_matrix(const MatrixSource& source, float* to, int64_t to_stride);

}  // namespace tandem::cpu
