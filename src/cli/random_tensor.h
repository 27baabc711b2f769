// Random inputs that are the same on every machine.
#pragma once

#include <string_view>

#include "graph/tensor.h"

namespace tandem::cli {

// Floats uniform in [-limit, limit), or integers 0 and 1. `stream` tells tensors apart.
HostTensor random_tensor(DataType type, Dims dims, std::string_view stream, float limit = 1,
                         uint64_t seed = 1);
// Of a tensor of a graph, told apart by its name.
HostTensor random_value(const Tensor& tensor);

}  // namespace tandem::cli
