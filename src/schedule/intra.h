// `intra`: operators one after another, each over the lanes as suits it best.
#pragma once

#include "schedule/scheduler.h"

namespace tandem {

// Takes operators in their order and commits each to the cheapest of: whole on one lane, or cut
// along one of its axes with a share per lane. The cost of a choice is when its last slice ends,
// given when lanes are free, where its inputs were made and what a crossing costs; and for a cut,
// one crossing more, because whoever reads the output has to join it. A lane that feeds others
// starts later, by the time that it takes to enqueue what a first round of choices gives them. What
// is cheaper in the end on a single lane goes there altogether.
class IntraScheduler : public Scheduler {
 public:
  StatusOr<Schedule> schedule(const Problem& problem) const override;
  // The same without waits, for those who only want to know where operators are cut.
  StatusOr<Schedule> divide(const Problem& problem) const;
};

}  // namespace tandem
