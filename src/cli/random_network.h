// Random networks of real operators, for benchmarks of schedulers.
#pragma once

#include <cstdint>

#include "schedule/random_problem.h"
#include "tandem/model.h"

namespace tandem::cli {

// A topology of random_topology() as convolutions (1x1, 3x3, depthwise), poolings and sums at one
// resolution and with one number of channels in most places, as within a stage of a network: what
// several operators make is added up or concatenated. Its name says what was asked for.
StatusOr<Model> random_network(GraphFamily family, int operators, uint64_t seed);

}  // namespace tandem::cli
