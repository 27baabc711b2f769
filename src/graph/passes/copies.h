// CopyAttributes of the usual kinds, and what can be told from them.
#pragma once

#include <optional>
#include <vector>

#include "graph/operator.h"

namespace tandem {

// y = x.
CopyAttributes plain_copy(size_t rank);
// y[i0, i1, ...] walks axis permutation[0], permutation[1], ... of x.
CopyAttributes permutation_copy(const std::vector<int>& permutation);

// `outer` reading the output of `inner`, as one copy from the input of `inner`.
CopyAttributes compose(const CopyAttributes& outer, const CopyAttributes& inner);

// A reshape that splits dimensions, and adds and drops extents of 1, as a copy whose output walks a
// split axis by several dimensions. nullopt if it merges dimensions.
std::optional<CopyAttributes> reshape_as_copy(const Dims& from, const Dims& to);

// True if the copy keeps the row-major order of all elements: then it is a reshape.
bool keeps_order(const CopyAttributes& copy, const Dims& from, const Dims& to);

}  // namespace tandem
