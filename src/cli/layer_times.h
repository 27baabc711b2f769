// What dividing layers brings, as numbers of a table.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::cli {

struct Choice {
  double us = 0;  // simulated, of what was chosen
  bool divided = false;
};

// Simulated microseconds of a layer with some number of threads.
struct LayerTimes {
  double cpu_us = 0;
  double gpu_us = 0;
  // By exchange and by who chose: "exhaustive", and "predicted", "predicted_without_kernels".
  std::map<std::string, std::map<std::string, Choice>> choices;

  double better_lane_us() const { return std::min(cpu_us, gpu_us); }
};

// Means and bests over layers: "count", "bound" (1 + faster / slower lane),
// "cpu_us_over_gpu_us_median", and "speed_up" by exchange and by who chose.
nlohmann::json summary_of(const std::vector<LayerTimes>& layers);

}  // namespace tandem::cli
