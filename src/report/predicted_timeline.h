// When the slices of a schedule are expected to run.
#pragma once

#include "report/timeline.h"
#include "schedule/scheduler.h"

namespace tandem {

// A simulation by the executor's rules: a slice starts when its lane is free, it has been enqueued
// (on lanes that have a feeder, which starts its own work after that), and what it waits for has
// ended; the crossings and copies that it needs are paid for before that, by its lane. Slices take
// their predicted_us. problem.cost must be set, and the schedule pass check_schedule().
Timeline predicted_timeline(const Problem& problem, const Schedule& schedule);

// By lane and slice, whether it is on a critical path: the last slice to end, and of every such
// slice the one that it started right after, on its lane or another.
std::vector<std::vector<bool>> critical_slices(const Schedule& schedule, const Timeline& timeline);

}  // namespace tandem
