// Mode problems of real operators: random networks, and the stages of the zoo's.
#pragma once

#include "cli/bench_problems.h"

namespace tandem::cli {

// Problems of random_network(), in turn on platforms of 2 to 4 lanes; costs are those of the
// platform files' simulated lanes, so that they are the same everywhere.
StatusOr<std::vector<BenchProblem>> random_network_problems(int count, uint64_t seed);

// The stages (local_search.h) of every network of the zoo but the tiny ones, on simulated platforms
// in turn. Stages that are the same but for names (a network's repeated blocks) are left out.
StatusOr<std::vector<BenchProblem>> zoo_stage_problems();

}  // namespace tandem::cli
