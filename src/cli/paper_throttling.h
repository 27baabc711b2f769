// Sessions on a chip that gets too warm in mid-run, with and without adapting to it.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/learned_platform.h"
#include "tandem/model.h"

namespace tandem::cli {

// Two rows: the CPU falls to half of its clock, the GPU does. Each with milliseconds "before_ms"
// (median of a session's runs before that), "throttled_ms" and "adapted_ms" (of the last runs
// without and with adapting), and how often the latter has "planned" again and "changed" its
// schedule.
StatusOr<nlohmann::json> study_throttling(const Model& model, const LearnedPlatform& platform);

}  // namespace tandem::cli
