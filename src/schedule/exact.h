// `exact`: branch and bound for small problems, without contention.
#pragma once

#include "schedule/mode_scheduler.h"

namespace tandem {

// Chooses modes one operator after another, and for every choice of all modes the orders of lanes
// (by Giffler and Thompson's active schedules, which hold an optimal one). Cut off where the
// longest way through the graph, or the work left for lanes, says that nothing better than the best
// so far can come: which `joint` finds first. kResourceExhausted above kMostOperators, and after
// options.evaluations nodes or options.budget_ms without a proof: tools/offline.py goes further.
class ExactScheduler : public ModeScheduler {
 public:
  static constexpr int kMostOperators = 20;
  static constexpr int64_t kMostNodes = 20'000'000;

  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
};

// The same search from `schedule` on, with so many nodes at most: it becomes the best that was
// found, an optimum if nodes are left. Returns how many were looked at.
int64_t branch_and_bound(const ModeTables& tables, int64_t nodes, double budget_ms,
                         ModeSchedule* schedule);

}  // namespace tandem
