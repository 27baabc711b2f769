// Fits the simulator's coefficients to published measurements.
#pragma once

#include <functional>

#include "simulate/validation.h"

namespace tandem::simulate {

struct FitOptions {
  int rounds = 30;  // over all coefficients, at most
};

struct Fit {
  sim::Coefficients coefficients;
  double before = 0;  // objective
  double after = 0;
  int rounds = 0;
};

// Minimises, over the entries that are not held out, the mean size of log(simulated / published);
// entries of one kind, platform, lane and runtime together weigh as the square root of their
// number. Coefficients stay within physical bounds, and near where they start if no entry says
// otherwise. A pattern search, one coefficient after another; deterministic. `progress` is called
// after every round.
StatusOr<Fit> fit(const Published& published, const sim::Coefficients& start,
                  const FitOptions& options, const std::function<void(int, double)>& progress);

}  // namespace tandem::simulate
