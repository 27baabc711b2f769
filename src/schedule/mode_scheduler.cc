#include "schedule/mode_scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/exact.h"
#include "schedule/inter.h"
#include "schedule/intra_modes.h"
#include "schedule/joint.h"
#include "schedule/order_evaluator.h"

namespace tandem {

StatusOr<std::unique_ptr<ModeScheduler>> make_mode_scheduler(std::string_view strategy) {
  std::unique_ptr<ModeScheduler> result;
  if (strategy == "inter") {
    result = std::make_unique<InterScheduler>();
  } else if (strategy == "inter_heft") {
    result = std::make_unique<HeftScheduler>();
  } else if (strategy == "inter_lookahead") {
    result = std::make_unique<PeftScheduler>();
  } else if (strategy == "intra") {
    result = std::make_unique<IntraModeScheduler>();
  } else if (strategy == "chain") {
    result = std::make_unique<ChainModeScheduler>();
  } else if (strategy == "joint") {
    result = std::make_unique<JointScheduler>();
  } else if (strategy == "exact") {
    result = std::make_unique<ExactScheduler>();
  } else {
    return not_found(fmt::format("there is no scheduler '{}' of modes; there are: {}", strategy,
                                 fmt::join(mode_scheduler_names(), ", ")));
  }
  return result;
}

std::vector<std::string_view> mode_scheduler_names() {
  return {"inter", "inter_heft", "inter_lookahead", "intra", "chain", "joint", "exact"};
}

ModeSchedule single_lane_modes(const ModeTables& tables, int lane) {
  OrderedModes solution;
  for (int op = 0; op < tables.operators; ++op) {
    int best = kNone;
    for (int mode = 0; mode < tables.mode_count(op); ++mode) {
      if (tables.part_count(op, mode) != 1) continue;
      const size_t part = tables.part(op, mode, 0);
      if (tables.lane[part] != lane) continue;
      if (best == kNone || tables.us[part] < tables.us[tables.part(op, best, 0)]) best = mode;
    }
    solution.modes.push_back(best == kNone ? 0 : best);
    solution.order.push_back(op);
  }
  return schedule_of(tables, solution);
}

}  // namespace tandem
