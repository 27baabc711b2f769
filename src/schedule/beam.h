// Beam search over modes: operators in a given order, the best few partial schedules kept.
#pragma once

#include <vector>

#include "schedule/order_evaluator.h"

namespace tandem {

// `order`: a topological order. `width`: states kept after each operator. They differ in how far
// ahead lanes are and where results live, which decides what is best for what follows. Adds the
// number of partial schedules looked at to `tried`.
OrderedModes beam_search(const ModeTables& tables, const std::vector<int>& order, int width,
                         int64_t* tried);

}  // namespace tandem
