#include "lane/cpu/loops/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lane/cpu/vector_math.h"
#include "support/multiversion.h"

namespace tandem::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Reduction = ReduceAttributes::Kind;

TANDEM_INLINE float max_of(float a, float b) { return a < b ? b : a; }
TANDEM_INLINE float min_of(float a, float b) { return b < a ? b : a; }

// Rows that are combined in registers before the result goes to memory once.
constexpr int kRowsAtOnce = 8;

// y[i] = op over the first kRows rows, and over y[i] as it was unless `first`.
template <int kRows, typename Op>
TANDEM_INLINE void fold_fixed(const float* const* rows, int64_t offset, bool first, float* y,
                              int64_t count, Op op) {
  const float* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = rows[r] + offset;
  const auto all = [&](int64_t i) TANDEM_LAMBDA_INLINE {
    float value = x[0][i];
#pragma GCC unroll 16
    for (int r = 1; r < kRows; ++r) value = op(value, x[r][i]);
    return value;
  };
  if (first) {
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = all(i);
  } else {
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = op(y[i], all(i));
  }
}

template <typename Op>
TANDEM_INLINE void fold(const float* const* rows, int64_t row_count, int64_t offset, float* y,
                        int64_t count, Op op) {
  // 3x3 windows are the most frequent.
  if (row_count == 9) return fold_fixed<9>(rows, offset, true, y, count, op);
  int64_t r = 0;
  for (; r + kRowsAtOnce <= row_count; r += kRowsAtOnce) {
    fold_fixed<kRowsAtOnce>(rows + r, offset, r == 0, y, count, op);
  }
  if (row_count - r >= 4) {
    fold_fixed<4>(rows + r, offset, r == 0, y, count, op);
    r += 4;
  }
  for (; r < row_count; ++r) fold_fixed<1>(rows + r, offset, r == 0, y, count, op);
}

template <int kRows>
TANDEM_INLINE void weighted(const float* const* rows, const float* weights, float* y,
                            int64_t count) {
  const float* x[kRows];
  float w[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = rows[r];
    w[r] = weights[r];
  }
  TANDEM_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    float sum = w[0] * x[0][i];
#pragma GCC unroll 16
    for (int r = 1; r < kRows; ++r) sum += w[r] * x[r][i];
    y[i] = sum;
  }
}

}  // namespace

TANDEM_MULTIVERSION float reduce_row(Reduction kind, const float* x, int64_t stride,
                                     int64_t count) {
  float value = neutral(kind);
  switch (kind) {
    case Reduction::kMean:
    case Reduction::kSum:
#pragma omp simd reduction(+ : value)
      for (int64_t i = 0; i < count; ++i) value += x[i * stride];
      break;
    case Reduction::kL2:
#pragma omp simd reduction(+ : value)
      for (int64_t i = 0; i < count; ++i) value += x[i * stride] * x[i * stride];
      break;
    case Reduction::kProd:
#pragma omp simd reduction(* : value)
      for (int64_t i = 0; i < count; ++i) value *= x[i * stride];
      break;
    case Reduction::kMax:
#pragma omp simd reduction(max : value)
      for (int64_t i = 0; i < count; ++i) value = max_of(value, x[i * stride]);
      break;
    case Reduction::kMin:
#pragma omp simd reduction(min : value)
      for (int64_t i = 0; i < count; ++i) value = min_of(value, x[i * stride]);
      break;
  }
  return value;
}

TANDEM_MULTIVERSION void accumulate(Reduction kind, const float* x, float* sum, int64_t count) {
  switch (kind) {
    case Reduction::kMean:
    case Reduction::kSum:
      for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
      break;
    case Reduction::kL2:
      for (int64_t i = 0; i < count; ++i) sum[i] += x[i] * x[i];
      break;
    case Reduction::kProd:
      for (int64_t i = 0; i < count; ++i) sum[i] *= x[i];
      break;
    case Reduction::kMax:
      for (int64_t i = 0; i < count; ++i) sum[i] = max_of(sum[i], x[i]);
      break;
    case Reduction::kMin:
      for (int64_t i = 0; i < count; ++i) sum[i] = min_of(sum[i], x[i]);
      break;
  }
}

float neutral(Reduction kind) {
  switch (kind) {
    case Reduction::kProd:
      return 1.0f;
    case Reduction::kMax:
      return -kInfinity;
    case Reduction::kMin:
      return kInfinity;
    default:
      return 0.0f;
  }
}

float completed(Reduction kind, float sum, int64_t count) {
  if (kind == Reduction::kMean) return sum / static_cast<float>(count);
  return kind == Reduction::kL2 ? std::sqrt(sum) : sum;
}

TANDEM_MULTIVERSION void softmax_row(bool log, const float* x, float* y, int64_t count) {
  float largest = -kInfinity;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) largest = max_of(largest, x[i]);
  float sum = 0.0f;
  if (log) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) sum += fast_exp(x[i] - largest);
    const float shift = largest + std::log(sum);
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] - shift;
    return;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float e = fast_exp(x[i] - largest);
    y[i] = e;
    sum += e;
  }
  const float factor = 1.0f / sum;
  for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

TANDEM_MULTIVERSION void layer_norm_row(const float* x, const float* scale, const float* bias,
                                        float epsilon, float* y, int64_t count) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(count);
  // In a second pass: squares minus the squared mean would cancel.
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float factor = 1.0f / std::sqrt(squares / static_cast<float>(count) + epsilon);
  TANDEM_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
}

TANDEM_MULTIVERSION void max_of_rows(const float* const* rows, int64_t row_count, int64_t offset,
                                     float* y, int64_t count) {
  if (row_count == 0) std::fill_n(y, count, -kInfinity);
  fold(rows, row_count, offset, y, count,
       [](float a, float b) TANDEM_LAMBDA_INLINE { return max_of(a, b); });
}

TANDEM_MULTIVERSION void sum_of_rows(const float* const* rows, int64_t row_count, int64_t offset,
                                     float factor, float* y, int64_t count) {
  if (row_count == 0) std::fill_n(y, count, 0.0f);
  fold(rows, row_count, offset, y, count,
       [](float a, float b) TANDEM_LAMBDA_INLINE { return a + b; });
  for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

TANDEM_MULTIVERSION void weighted_sum_of_rows(const float* const* rows, const float* weights,
                                              int row_count, float* y, int64_t count) {
  switch (row_count) {
    case 1:
      return weighted<1>(rows, weights, y, count);
    case 2:
      return weighted<2>(rows, weights, y, count);
    case 4:
      return weighted<4>(rows, weights, y, count);
    case 8:
      return weighted<8>(rows, weights, y, count);
    default:
      return weighted<16>(rows, weights, y, count);
  }
}

}  // namespace tandem::cpu
