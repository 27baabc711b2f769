// What crossings between lanes cost, as JSON and for people.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/sync_bench.h"

namespace tandem::cli {

// {"svm": {"available": true, "cpu_to_gpu_us": 1.2, "cpu_to_gpu_p90_us": ..., ...}, "event": ...}
nlohmann::json mechanisms_json(const LanePairTimes& pair);

void print_mechanisms(const std::vector<LanePairTimes>& pairs);

}  // namespace tandem::cli
