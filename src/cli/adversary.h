// Looks for problems on which the joint search does badly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/mode_problem.h"

namespace tandem::cli {

struct AdversaryOptions {
  double seconds = 60;
  uint64_t seed = 1;
  int keep = 10;             // the worst ones, each from another start
  int fewest_operators = 6;  // small enough for branch and bound to prove optima
  int most_operators = 18;
  int steps = 120;        // from each start
  double exact_ms = 400;  // what takes longer to prove is given up
};

struct Adversary {
  ModeProblem problem;
  double joint_us = 0;
  double optimum_us = 0;  // proven by branch and bound
  double ratio() const { return joint_us / optimum_us; }
};

// Simulated annealing from random problems on, as PISA does for list schedulers (arXiv 2403.07120):
// a time of a part or of a crossing becomes another, an edge or a mode comes or goes; what makes
// joint / optimum greater is kept, and now and then what makes it a little less. The worst first.
// `progress` is called with the share of the time that is used.
StatusOr<std::vector<Adversary>> find_adversaries(const AdversaryOptions& options,
                                                  const std::function<void(double)>& progress);

}  // namespace tandem::cli
