// What a session is given for a run.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tandem {

// kInvalidArgument unless there is one for each input of the graph, of its type and extents; names
// the first that is not.
Status check_inputs(const Graph& graph, const std::vector<HostTensor>& inputs);

}  // namespace tandem
