// Whole networks on the models of phones: every strategy, with two lanes and with a lane for each
// cluster of cores; energy; other hardware; chips that get too warm.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/status.h"

namespace tandem::cli {

struct NetworkStudyOptions {
  std::vector<std::string> networks;  // of the zoo
  std::vector<std::string> platforms;
  int samples = 0;  // that predictors learn from, around the networks' operators
  uint64_t seed = 1;
  double offline_seconds = 0;  // of CP-SAT for each network and platform; 0: none
  std::string python;          // with the package ortools; empty: the one of the source tree
};

// Results as JSON:
// - "networks": all strategies; speed-ups over the better lane alone, predicted and simulated
//   times, milliseconds of search on this machine, and the platform's modelled time to create a
//   session;
// - "clusters": a lane for each cluster and the GPU at once;
// - "fronts": schedules that no other beats in both latency and energy;
// - "what_if": other numbers of compute units;
// - "throttling": see paper_throttling.h.
// Schedules are planned by predictors and run on the simulated clock, without noise;
// "own_costs" in "networks" is the joint search by the simulator's own times instead, "offline"
// CP-SAT by the same (paper_offline.h), "unseen" the joint search by
// predictors that have learned from as many samples around the zoo's other networks.
StatusOr<nlohmann::json> study_networks(const NetworkStudyOptions& options);

}  // namespace tandem::cli
