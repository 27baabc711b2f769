// What an operator's time depends on, as text: operators with equal signatures are measured once.
#pragma once

#include <string>

#include "schedule/placement.h"

namespace tandem {

// Kind, attributes, and type, extents and strides of every operand. Readable, and the same in every
// build of one version.
std::string signature(const Graph& graph, const Placement& placement, OperatorId op);

}  // namespace tandem
