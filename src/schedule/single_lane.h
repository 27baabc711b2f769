// Schedules that use one lane.
#pragma once

#include "schedule/scheduler.h"

namespace tandem {

// Every operator that is launched, whole, on that lane. Times are predicted if problem.cost is set.
Schedule single_lane_schedule(const Problem& problem, int lane);

// Sum of predicted times; problem.cost must be set.
double single_lane_us(const Problem& problem, int lane);

// On the first synchronous or the first asynchronous lane.
class SingleLaneScheduler : public Scheduler {
 public:
  explicit SingleLaneScheduler(bool asynchronous) : asynchronous_(asynchronous) {}
  StatusOr<Schedule> schedule(const Problem& problem) const override;

 private:
  bool asynchronous_;
};

}  // namespace tandem
