// Where the NaNs and infinities of a run come from.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "lane/lane.h"
#include "schedule/schedule.h"

namespace tandem {

// Looks through what a run left in memory, in which nothing may have been reused. kInvalidArgument
// names, in this order,
// - inputs and weights that hold a NaN, and inputs that hold an infinity;
// - the first operator whose output holds a NaN although none of its inputs does, or an infinity
//   although none of its inputs holds anything that is not finite: with the element, its value, and
//   the slice and the lane that made it.
// Infinities in weights are how masks are written; they are named only where they reach an output.
Status check_numerics(const Graph& graph, const Schedule& schedule, const TensorBindings& bindings,
                      const std::vector<std::string>& lane_names);

}  // namespace tandem
