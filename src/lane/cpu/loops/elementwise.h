// Vectorised loops over contiguous values: functions of one value and of two.
#pragma once

#include <cstdint>

#include "graph/operator.h"

namespace tandem::cpu {

// y[i] = f(x[i]); x may be y.
void apply(const Activation& f, const float* x, float* y, int64_t count);

// Rows of `columns` contiguous values at data + row_offsets[i].
void apply_rows(const Activation& f, float* data, const int64_t* row_offsets, int rows,
                int64_t columns);

// y[i] = a[i * a_stride] op b[i * b_stride], strides 0 or 1.
void combine(BinaryAttributes::Kind kind, const float* a, int64_t a_stride, const float* b,
             int64_t b_stride, float* y, int64_t count);

// Rows of contiguous values at one distance from each other.
template <typename T>
struct StridedRows {
  T* data = nullptr;
  int64_t stride = 0;
};
// y = f(x + residual) over rows of `columns` values; residual may be null.
void finish_rows(const Activation& f, const StridedRows<const float>& x,
                 const StridedRows<const float>& residual, const StridedRows<float>& y,
                 int64_t rows, int64_t columns);

// True where the function is min(max(x, low), high), as tiles and libraries can do in registers
// (kIdentity has infinite bounds).
struct Clamp {
  bool exact = false;
  float low = 0, high = 0;
};
Clamp as_clamp(const Activation& f);

}  // namespace tandem::cpu
