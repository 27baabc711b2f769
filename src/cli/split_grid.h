// Exhaustive search for the best division of one operator over two lanes.
#pragma once

#include <vector>

#include "cli/operator_trials.h"

namespace tandem::cli {

// Every division of the operator (the graph's first) that the search looks at: whole on each lane,
// and for each two lanes and each axis that may be cut, every cut at a multiple of a step of at
// most 1/32 of the axis (every cut that there is, where there are fewer).
std::vector<std::vector<SplitPart>> split_grid(const Graph& graph, int lanes);

// Times all of the grid and `also`, each a few times; then the better ones again, more often the
// fewer are left. What is left last is the winner. Its time is to be measured afresh: the least of
// many noisy ones flatters itself.
StatusOr<std::vector<SplitPart>> best_of_grid(const OperatorTrials& trials, SyncMechanism mechanism,
                                              const std::vector<SplitPart>& also);

}  // namespace tandem::cli
