// Sessions on a chip that gets too warm in mid-run, with and without adapting to it.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/learned_platform.h"
#include "tandem/model.h"

namespace tandem::cli {

// Two rows: the CPU falls to half of its clock, the GPU does. Each with milliseconds "before_ms"
// and "throttled_ms" (medians of a session's runs, without adapting), "adapted_ms" (of the last
// runs of one that adapts), and how often that one has planned again and changed its schedule.
StatusOr<nlohmann::json> study_throttling(const Model& model, const LearnedPlatform& platform);

}  // namespace tandem::cli
