// Elementary functions without branches or calls, so that loops over them vectorise. Relative error
// below 1e-6 (gelu: relative to |x|); special values as std:: has them, unless stated.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "graph/operator.h"
#include "support/multiversion.h"

namespace tandem::cpu {

// x = n * ln(2) + r with |r| <= ln(2) / 2, and e^r - 1.
struct Reduced {
  float expm1_r;
  float scale_low, scale_high;  // their product is 2^n; either is a normal number
};

TANDEM_INLINE Reduced reduce_exponent(float x) {
  // Beyond these bounds the result is zero or infinite anyway; NaN passes both comparisons.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  constexpr float kRound = 12582912.0f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  // (e^r - 1) / r, fitted at Chebyshev nodes.
  float p = 0.00139411213f;
  p = p * r + 0.00836915802f;
  p = p * r + 0.0416663513f;
  p = p * r + 0.166665047f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  const int32_t low = exponent >> 1;
  const int32_t high = exponent - low;
  return {p * r, std::bit_cast<float>((low + 127) << 23), std::bit_cast<float>((high + 127) << 23)};
}

TANDEM_INLINE float fast_exp(float x) {
  const Reduced e = reduce_exponent(x);
  return ((e.expm1_r + 1.0f) * e.scale_low) * e.scale_high;
}

TANDEM_INLINE float fast_expm1(float x) {
  const Reduced e = reduce_exponent(x);
  const float scale = e.scale_low * e.scale_high;
  // An infinite scale would make inf - inf of the two terms below.
  const float finite = scale * e.expm1_r + (scale - 1.0f);
  return x > 88.7f ? fast_exp(x) : finite;
}

TANDEM_INLINE float fast_tanh(float x) {
  // |tanh| rounds to one from here on.
  float bounded = x < -9.1f ? -9.1f : x;
  bounded = bounded > 9.1f ? 9.1f : bounded;
  const float e = fast_expm1(2.0f * bounded);
  return e / (e + 2.0f);
}

TANDEM_INLINE float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

TANDEM_INLINE float fast_erf(float x) {
  const float a = x < 0.0f ? -x : x;
  const float square = x * x;
  // erf(x) / x as a polynomial of x^2 for |x| < 1.
  float p = 7.88249745e-05f;
  p = p * square - 0.0008018855f;
  p = p * square + 0.00518931216f;
  p = p * square - 0.0268543288f;
  p = p * square + 0.112835974f;
  p = p * square - 0.37612626f;
  p = p * square + 1.12837911f;
  // log(1 - erf(a)) as a polynomial of a for 1 <= a <= 4; at 4, erf rounds to one.
  const float b = a > 4.0f ? 4.0f : a;
  float q = -2.17892013e-05f;
  q = q * b + 0.000442594785f;
  q = q * b - 0.00421105186f;
  q = q * b + 0.0252264645f;
  q = q * b - 0.108448595f;
  q = q * b - 0.63319081f;
  q = q * b - 1.12959385f;
  q = q * b + 0.000191454106f;
  const float far = 1.0f - fast_exp(q);
  return a < 1.0f ? x * p : (x < 0.0f ? -far : far);
}

TANDEM_INLINE float clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// The value of function F at x. A template, so that the choice is made outside of loops.
template <Function F>
TANDEM_INLINE float evaluate(float x, float alpha, float beta) {
  if constexpr (F == Function::kIdentity) return x;
  if constexpr (F == Function::kRelu) return x < 0.0f ? 0.0f : x;
  if constexpr (F == Function::kClip) return clamp(x, alpha, beta);
  if constexpr (F == Function::kLeakyRelu) return x < 0.0f ? alpha * x : x;
  if constexpr (F == Function::kElu) return x < 0.0f ? alpha * fast_expm1(x) : x;
  if constexpr (F == Function::kSigmoid) return fast_sigmoid(x);
  if constexpr (F == Function::kHardSigmoid) return clamp(alpha * x + beta, 0.0f, 1.0f);
  if constexpr (F == Function::kTanh) return fast_tanh(x);
  if constexpr (F == Function::kSilu) return x * fast_sigmoid(x);
  if constexpr (F == Function::kHardSwish) {
    return x * clamp(x * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f);
  }
  if constexpr (F == Function::kGelu) return 0.5f * x * (1.0f + fast_erf(x * 0.707106781f));
  if constexpr (F == Function::kGeluTanh) {
    return 0.5f * x * (1.0f + fast_tanh(0.797884561f * (x + 0.044715f * x * x * x)));
  }
  if constexpr (F == Function::kSoftplus) {
    return (x > 0.0f ? x : 0.0f) + std::log1p(std::exp(-std::fabs(x)));
  }
  if constexpr (F == Function::kErf) return fast_erf(x);
  if constexpr (F == Function::kExp) return fast_exp(x);
  if constexpr (F == Function::kLog) return std::log(x);
  if constexpr (F == Function::kSqrt) return std::sqrt(x);
  if constexpr (F == Function::kReciprocal) return 1.0f / x;
  if constexpr (F == Function::kAbs) return std::fabs(x);
  if constexpr (F == Function::kNeg) return -x;
  if constexpr (F == Function::kFloor) return std::floor(x);
  if constexpr (F == Function::kCeil) return std::ceil(x);
  if constexpr (F == Function::kSin) return std::sin(x);
  if constexpr (F == Function::kCos) return std::cos(x);
}

}  // namespace tandem::cpu
