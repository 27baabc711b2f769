// How lanes compare with libraries called directly, as JSON and for people.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/lane_speeds.h"

namespace tandem::cli {

// {"shapes": [...], "summary": [...]}: every time; and by lane and class of shapes, the share of
// the yardstick's speed.
nlohmann::json speeds_json(const std::vector<SpeedRow>& rows, const std::vector<Site>& sites);
void print_speeds(const std::vector<SpeedRow>& rows, const std::vector<Site>& sites);

}  // namespace tandem::cli
