// Whole networks on the models of phones: every strategy, with two lanes and with a lane for each
// cluster of cores; energy; other hardware.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/status.h"

namespace tandem::cli {

struct NetworkStudyOptions {
  std::vector<std::string> networks;  // of the zoo
  std::vector<std::string> platforms;
};

// Results as JSON: "networks" (all strategies; speed-ups over the better lane alone, milliseconds
// of search on this machine), "clusters" (a lane for each cluster and the GPU at once),
// "fronts" (schedules that no other beats in both latency and energy) and "what_if". Schedules are
// planned by the simulator's own times, without noise, and run on the simulated clock.
StatusOr<nlohmann::json> study_networks(const NetworkStudyOptions& options);

}  // namespace tandem::cli
