// What operators read: of an operator's work, the part that depends on how it is cut.
#pragma once

#include "graph/partition.h"

namespace tandem {

// Bytes of the inputs that the output region needs.
double input_bytes(const Graph& graph, OperatorId op, const Region& output);

}  // namespace tandem
