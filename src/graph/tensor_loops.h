// Loops over dense tensors, as the reference needs them: simple rather than fast.
#pragma once

#include <cstdint>
#include <numeric>

#include "graph/reference.h"

namespace tandem {

inline Dims dense_strides(const Dims& dims) { return strides_of(dims, {Order::kRowMajor, false}); }

// Calls f(index) for every element in row-major order.
template <typename F>
void for_each_index(const Dims& dims, const F& f) {
  Dims index(dims.size(), 0);
  for (int64_t left = element_count(dims); left > 0; --left) {
    f(index);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

inline int64_t offset_of(const Dims& index, const Dims& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

// Fills y element by element from f(index).
template <typename F>
void generate(ReferenceTensor& y, const F& f) {
  size_t next = 0;
  for_each_index(y.dims, [&](const Dims& index) { y.values[next++] = f(index); });
}

// Strides of an operand that broadcasts to `dims`: 0 where it has extent 1 or no such dimension.
inline Dims broadcast_strides(const Dims& operand, const Dims& dims) {
  const Dims own = dense_strides(operand);
  Dims strides(dims.size(), 0);
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] > 1) strides[dims.size() - operand.size() + i] = own[i];
  }
  return strides;
}

}  // namespace tandem
