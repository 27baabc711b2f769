// Vectors of floats for loops that are written once and compiled per instruction set.
#pragma once

#include "support/multiversion.h"

namespace tandem::cpu {

// kWidth floats in one register. May lie at any address of a float.
template <int kWidth>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));
};
template <>
struct VectorOf<1> {
  using Type = float;
};

// By reference, here and below: passing vectors by value would depend on the instruction set.
template <int kWidth>
TANDEM_INLINE const typename VectorOf<kWidth>::Type& load(const float* p) {
  return *reinterpret_cast<const typename VectorOf<kWidth>::Type*>(p);
}
template <int kWidth>
TANDEM_INLINE typename VectorOf<kWidth>::Type& at_vector(float* p) {
  return *reinterpret_cast<typename VectorOf<kWidth>::Type*>(p);
}

// v limited from below and above; NaN stays. The compiler would make a comparison and a blend of
// either, twice the instructions. kWidth of 8 and 16: in functions for AVX2 and AVX-512.
template <int kWidth>
TANDEM_INLINE void limit(typename VectorOf<kWidth>::Type& v, float low, float high) {
  using Vector = typename VectorOf<kWidth>::Type;
  const Vector lows = Vector{} + low, highs = Vector{} + high;
#if defined(__x86_64__)
  if constexpr (kWidth > 4) {
    asm("vmaxps %0, %1, %0" : "+v"(v) : "v"(lows));
    asm("vminps %0, %1, %0" : "+v"(v) : "v"(highs));
    return;
  }
#endif
  v = v < lows ? lows : v;
  v = v > highs ? highs : v;
}

}  // namespace tandem::cpu
