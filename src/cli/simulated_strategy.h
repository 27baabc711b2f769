// `tandem simulate --strategy`: a schedule for a platform's model, run on it.
#pragma once

#include <cstdint>
#include <string>

#include "lane/sim/platform_model.h"
#include "tandem/model.h"
#include "tandem/status.h"

namespace tandem::cli {

struct StrategyFlags {
  std::string strategy;
  std::string sync = "auto";
  uint64_t seed = 1;
  int runs = 25;
  double throttle_seconds = 0;  // 0: the chip stays cool
  bool json = false;
};

// Plans by the simulator's own costs, runs the plan on the simulated clock, and prints the outcome.
Status simulate_strategy(const Model& model, const sim::PlatformModel& platform,
                         const StrategyFlags& flags);

}  // namespace tandem::cli
