// Sessions on simulated platforms.
#pragma once

#include <memory>

#include "platform/simulated_platform.h"
#include "profile/lane_crew.h"
#include "tandem/session.h"

namespace tandem {

// Plans as every session does, and runs the plan on the simulated clock (simulate/simulated_run.h).
// Nothing computes values: outputs are zeros, unless options.keep_all or check_numerics asks for
// values: then the reference computes them, slowly.
StatusOr<std::unique_ptr<Session>> make_simulated_session(
    const Model& model, std::shared_ptr<SimulatedPlatform> platform, std::shared_ptr<LaneCrew> crew,
    const SessionOptions& options);

}  // namespace tandem
