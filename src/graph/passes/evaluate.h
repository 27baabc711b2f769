// The value of an operator whose inputs are all known.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tandem {

// `inputs` are constants that satisfy the shape rule, `output` is what it says. Operators that only
// move elements are exact for every type; the others are float32, computed in double precision.
HostTensor evaluate(const Attributes& attributes, const std::vector<const Tensor*>& inputs,
                    const Shape& output);

}  // namespace tandem
