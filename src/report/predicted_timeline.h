// When the slices of a schedule are expected to run.
#pragma once

#include "report/timeline.h"
#include "schedule/evaluator.h"
#include "schedule/scheduler.h"

namespace tandem {

// What the evaluator says of the schedule, with what its times consist of: waits (to when what is
// awaited can be seen), copies, and the slice itself, which takes longer than its predicted_us
// where other lanes slow it down. Copies of model inputs and outputs count as those of the slices
// around which the executor makes them. problem.cost must be set.
Timeline predicted_timeline(const Problem& problem, const Schedule& schedule,
                            const Evaluation& evaluation);

// By lane and slice, whether it is on a critical path: the last slice to end, and of every such
// slice the one that it started right after, on its lane or another.
std::vector<std::vector<bool>> critical_slices(const Schedule& schedule, const Timeline& timeline);

}  // namespace tandem
