// Published speed-ups of co-execution, simulated.
#pragma once

#include <optional>

#include "lane/sim/platform_model.h"
#include "simulate/published.h"

namespace tandem::simulate {

// What an entry of kind kSpeedUp comes to on the platform's model; nothing if the model alone does
// not tell (what predictors choose). Workloads:
// - "linear/best/exhaustive", "conv/best/exhaustive": the best of a list of layers, each cut by
//   output channels where the lanes end together, over the GPU alone; one crossing is paid for;
// - "OPERATOR/channels", "OPERATOR/rows": halves of the operator on CPU and GPU, over the CPU
//   alone; without synchronisation.
// kInvalidArgument for any other.
StatusOr<std::optional<double>> simulate_speed_up(const sim::PlatformModel& model,
                                                  const Entry& entry);

}  // namespace tandem::simulate
