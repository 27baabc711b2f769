// Exact arithmetic on int64 constants: what models compute shapes and indices with.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/operator.h"
#include "tandem/status.h"
#include "tandem/tensor.h"

namespace tandem {

// Numpy's rule; kInvalidArgument if the two do not fit.
StatusOr<Dims> broadcast_dims(const Dims& a, const Dims& b);

// kUnary, kBinary and kReduce on int64. Overflow and division by zero are kInvalidArgument.
StatusOr<HostTensor> integer_arithmetic(const Attributes& attributes,
                                        const std::vector<const HostTensor*>& inputs);

// Calls f(output index, index into a, index into b) for every element of `dims`, which a and b
// broadcast to.
template <typename F>
void for_each_broadcast(const Dims& dims, const Dims& a, const Dims& b, const F& f) {
  const auto strides = [&dims](const Dims& operand) {
    Dims result(dims.size(), 0);
    int64_t stride = 1;
    for (size_t i = 0; i < operand.size(); ++i) {
      const int64_t extent = operand[operand.size() - 1 - i];
      if (extent != 1) result[dims.size() - 1 - i] = stride;
      stride *= extent;
    }
    return result;
  };
  const Dims stride_a = strides(a);
  const Dims stride_b = strides(b);
  Dims index(dims.size(), 0);
  int64_t at_a = 0;
  int64_t at_b = 0;
  for (int64_t i = 0; i < element_count(dims); ++i) {
    f(i, at_a, at_b);
    for (size_t d = dims.size(); d-- > 0;) {
      at_a += stride_a[d];
      at_b += stride_b[d];
      if (++index[d] < dims[d]) break;
      at_a -= stride_a[d] * dims[d];
      at_b -= stride_b[d] * dims[d];
      index[d] = 0;
    }
  }
}

}  // namespace tandem
