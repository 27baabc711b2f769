// What crossings between lanes cost, as JSON and for people.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/sync_bench.h"
#include "runtime/sync_choice.h"

namespace tandem::cli {

// {"svm": {"available": true, "cpu_to_gpu_us": 1.2, "cpu_to_gpu_p90_us": ..., ...}, "event": ...}
nlohmann::json mechanisms_json(const LanePairTimes& pair);

// {"mechanism": "svm", "why": ..., "why_not": {"event": ..., ...}}
nlohmann::json choice_json(const MechanismChoice& choice);

void print_choice(const MechanismChoice& choice);
void print_mechanisms(const std::vector<LanePairTimes>& pairs);

}  // namespace tandem::cli
