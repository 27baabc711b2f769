// Decides when a session changes its schedule because of its lanes' speeds, and to what.
#pragma once

#include <functional>
#include <memory>

#include "runtime/planner.h"
#include "runtime/speed_tracer.h"
#include "support/clock.h"
#include "tandem/session.h"

namespace tandem {

class Adapter {
 public:
  // `other`: who wants to be told of runs, too; may be null.
  Adapter(size_t lanes, std::shared_ptr<Tracer> other);

  // For executors of the session's schedule.
  const std::shared_ptr<SpeedTracer>& tracer() const { return tracer_; }
  const Adaptation& adaptation() const { return adaptation_; }

  // Whether to call adapt() before the next run: lanes have not been as fast as predicted, and not
  // too much time has gone into planning yet.
  bool is_due();
  // Plans again with the lanes' speeds as they are now. If that promises to be worth it, `take`
  // makes the new plan the session's; else the plan's prediction is corrected. If anything fails,
  // the plan stays as it is, and a warning says why. The planner knows costs, and the caller has
  // the lease on the lanes.
  void adapt(Planner& planner, Plan* plan, const std::function<Status(Plan)>& take);

 private:
  Status try_to_adapt(Planner& planner, Plan* plan, const std::function<Status(Plan)>& take);

  std::shared_ptr<SpeedTracer> tracer_;
  Adaptation adaptation_;
  Clock::time_point not_before_;  // again
};

}  // namespace tandem
