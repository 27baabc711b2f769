// What CP-SAT makes of a whole network in some seconds, beside the joint search.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/referee.h"
#include "schedule/scheduler.h"

namespace tandem::cli {

struct OfflineResult {
  Schedule schedule;        // the best that was found
  bool is_optimal = false;  // proven, for the costs and modes that there are
  // By the evaluator, without contention, which CP-SAT cannot express.
  double joint_us = 0;
  double best_us = 0;   // of `schedule`
  double bound_us = 0;  // no schedule takes less: CP-SAT's, or the evaluator's if that is higher
  double seconds = 0;
};

// The problem that the joint search is given, without contention. CP-SAT starts from joint's own
// schedule, so that what it finds is no worse.
StatusOr<OfflineResult> solve_offline(const Problem& problem, const std::string& name,
                                      Referee& referee);

nlohmann::json to_json(const OfflineResult& result);

}  // namespace tandem::cli
