// Vectorised loops over one row of contiguous values, or over several at once.
#pragma once

#include <cstdint>

#include "graph/operator.h"

namespace tandem::cpu {

float reduce_row(ReduceAttributes::Kind kind, const float* x, int64_t stride, int64_t count);
// sum[i] = sum[i] op x[i], the step of a reduction (kL2 adds squares).
void accumulate(ReduceAttributes::Kind kind, const float* x, float* sum, int64_t count);
// What a reduction begins with.
float neutral(ReduceAttributes::Kind kind);
// What it ends with: a mean divides, kL2 takes the root.
float completed(ReduceAttributes::Kind kind, float sum, int64_t count);

// x may be y.
void softmax_row(bool log, const float* x, float* y, int64_t count);
void layer_norm_row(const float* x, const float* scale, const float* bias, float epsilon, float* y,
                    int64_t count);

// y[i] = the largest of rows[r][offset + i]; -infinity for no rows.
void max_of_rows(const float* const* rows, int64_t row_count, int64_t offset, float* y,
                 int64_t count);
// y[i] = factor * the sum of rows[r][offset + i].
void sum_of_rows(const float* const* rows, int64_t row_count, int64_t offset, float factor,
                 float* y, int64_t count);
// y[i] = the sum of weights[r] * rows[r][i]; row_count is 1, 2, 4, 8 or 16.
void weighted_sum_of_rows(const float* const* rows, const float* weights, int row_count, float* y,
                          int64_t count);

}  // namespace tandem::cpu
