// Tensors of rank 1.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/tensor.h"

namespace tandem::testing {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

inline HostTensor vector_of(Floats values) {
  const Dims dims = {static_cast<int64_t>(values.size())};
  return HostTensor::floats(dims, std::move(values));
}

inline HostTensor list_of(Ints values) {
  const Dims dims = {static_cast<int64_t>(values.size())};
  return HostTensor::ints(dims, std::move(values));
}

}  // namespace tandem::testing
