#include "schedule/scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/plan.h"

namespace tandem {
namespace {

class PlanningScheduler : public Scheduler {
 public:
  explicit PlanningScheduler(std::string_view strategy) { options_.strategy = strategy; }
  StatusOr<Schedule> schedule(const Problem& problem) const override {
    TANDEM_ASSIGN_OR_RETURN(PlannedSchedule planned, plan(problem, options_));
    return std::move(planned.schedule);
  }

 private:
  PlanOptions options_;
};

}  // namespace

StatusOr<std::unique_ptr<Scheduler>> make_scheduler(std::string_view strategy) {
  const std::vector<std::string_view> names = scheduler_names();
  if (std::find(names.begin(), names.end(), strategy) == names.end()) {
    return not_found(
        fmt::format("there is no strategy '{}'; there are: {}", strategy, fmt::join(names, ", ")));
  }
  std::unique_ptr<Scheduler> result = std::make_unique<PlanningScheduler>(strategy);
  return result;
}

std::vector<std::string_view> scheduler_names() {
  std::vector<std::string_view> names{"cpu", "gpu"};
  for (const std::string_view name : mode_scheduler_names()) names.push_back(name);
  return names;
}

}  // namespace tandem
