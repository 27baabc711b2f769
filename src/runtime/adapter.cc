#include "runtime/adapter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "schedule/scheduler.h"
#include "support/guarded.h"
#include "support/log.h"
#include "support/stopwatch.h"

namespace tandem {
namespace {

// What another schedule has to gain, as a share of the makespan.
constexpr double kLeastGain = 0.03;
// Of all time, how much may go into planning.
constexpr double kPlanningShare = 0.1;

}  // namespace

StatusOr<std::unique_ptr<Adapter>> Adapter::create(Planner& planner, const SessionOptions& options,
                                                   Plan* plan, Now now) {
  const std::string& strategy = plan->schedule.strategy;
  if (options.schedule || strategy == "cpu" || strategy == "gpu") {
    return invalid_argument(
        fmt::format("to adapt, a session needs a strategy that divides work over lanes, and has {}",
                    options.schedule ? "a schedule that was given" : "'" + strategy + "'"));
  }
  TANDEM_RETURN_IF_ERROR(make_scheduler(strategy).status());
  if (!planner.has_costs()) {
    TANDEM_RETURN_IF_ERROR(planner.prepare_costs());
    TANDEM_ASSIGN_OR_RETURN(plan->prediction, planner.predict(plan->schedule));
  }
  const size_t lanes = plan->schedule.lanes.size();
  return std::unique_ptr<Adapter>(new Adapter(lanes, options.tracer, std::move(now)));
}

Adapter::Adapter(size_t lanes, std::shared_ptr<Tracer> other, Now now)
    : now_(std::move(now)), tracer_(std::make_shared<SpeedTracer>(lanes, std::move(other))) {
  adaptation_.slowdown.assign(lanes, 1);
}

bool Adapter::is_due() {
  adaptation_.recorded = tracer_->recorded_runs();
  return tracer_->watch().has_drifted() && now_() >= not_before_;
}

void Adapter::adapt(Planner& planner, Plan* plan, const std::function<Status(Plan)>& take) {
  const Stopwatch stopwatch;
  const Clock::time_point begin = now_();
  const Status adapted = guarded([&] { return try_to_adapt(planner, plan, take); });
  if (!adapted.ok()) {
    log().warn("the schedule stays as it is: {}", adapted.message());
    tracer_->watch().calm_down();
  }
  adaptation_.plan_ms += stopwatch.milliseconds();
  const Clock::time_point end = now_();
  const std::chrono::duration<double> rest = (end - begin) * (1 / kPlanningShare - 1);
  not_before_ = end + std::chrono::duration_cast<Clock::duration>(rest);
}

Status Adapter::try_to_adapt(Planner& planner, Plan* plan,
                             const std::function<Status(Plan)>& take) {
  const std::vector<double> factors = tracer_->watch().factors();
  planner.assume_slowdown(factors);
  TANDEM_ASSIGN_OR_RETURN(Timeline as_it_is, planner.predict(plan->schedule));
  TANDEM_ASSIGN_OR_RETURN(Plan other, planner.plan(plan->schedule.strategy));
  const double gain = 1 - other.prediction.makespan_us / as_it_is.makespan_us;
  const bool changes = gain > kLeastGain;
  if (changes) {
    TANDEM_RETURN_IF_ERROR(take(std::move(other)));
    ++adaptation_.changed;
  } else {
    plan->prediction = std::move(as_it_is);
  }
  ++adaptation_.planned;
  adaptation_.slowdown = factors;
  tracer_->watch().settle();
  log().info("planned again, as lanes take {:.2f} times as long as predicted: {}",
             fmt::join(factors, ", "),
             changes ? fmt::format("{:.0f}% less time is expected", 100 * gain)
                     : "no other schedule is better");
  return {};
}

}  // namespace tandem
