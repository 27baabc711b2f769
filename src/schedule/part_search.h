// Improving a solution of a mode problem part by part: orders of lanes that no order of whole
// operators has, and modes along with them.
#pragma once

#include "schedule/local_search.h"

namespace tandem {

// Random changes to what is on the critical path: other modes, and other places for single parts;
// worse ones kept now and then, less and less so. The schedule becomes the best that it came by,
// and never a worse one. An evaluation is of the whole schedule: where there are many operators it
// counts as several of the budget's. Returns how many there were.
int64_t anneal_parts(const ModeTables& tables, int64_t evaluations, uint64_t seed,
                     SearchBudget* budget, ModeSchedule* schedule);

}  // namespace tandem
