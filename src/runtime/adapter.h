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
  using Now = std::function<Clock::time_point()>;

  // For a session with options.adapt that has a plan: sees to it that costs are known, and that
  // `plan` has a prediction. `now`: the clock that runs of the session pass on; planning may take a
  // share of that time. kInvalidArgument for plans that are not to be changed.
  static StatusOr<std::unique_ptr<Adapter>> create(Planner& planner, const SessionOptions& options,
                                                   Plan* plan, Now now = &Clock::now);

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
  // `other`: who wants to be told of runs, too; may be null.
  Adapter(size_t lanes, std::shared_ptr<Tracer> other, Now now);
  Status try_to_adapt(Planner& planner, Plan* plan, const std::function<Status(Plan)>& take);

  const Now now_;
  std::shared_ptr<SpeedTracer> tracer_;
  Adaptation adaptation_;
  Clock::time_point not_before_;  // again
};

}  // namespace tandem
