#include "schedule/scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/intra.h"
#include "schedule/single_lane.h"

namespace tandem {

StatusOr<std::unique_ptr<Scheduler>> make_scheduler(std::string_view strategy) {
  std::unique_ptr<Scheduler> result;
  if (strategy == "cpu") {
    result = std::make_unique<SingleLaneScheduler>(/*asynchronous=*/false);
  } else if (strategy == "gpu") {
    result = std::make_unique<SingleLaneScheduler>(/*asynchronous=*/true);
  } else if (strategy == "intra") {
    result = std::make_unique<IntraScheduler>();
  } else {
    return not_found(fmt::format("there is no strategy '{}'; there are: {}", strategy,
                                 fmt::join(scheduler_names(), ", ")));
  }
  return result;
}

std::vector<std::string_view> scheduler_names() { return {"cpu", "gpu", "intra"}; }

}  // namespace tandem
