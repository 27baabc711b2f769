// What lanes reach on parts of an operator without synchronising: each runs its part over and over.
#pragma once

#include <vector>

#include "cli/operator_trials.h"
#include "cli/probe.h"

namespace tandem::cli {

// The speed-up over the better lane that the parts would reach if they lost nothing but what lanes
// take from each other while both run:
//   (sum over the parts of share_l / t_l) * min over lanes of T_l
// where share_l is the part's share of the operator's FLOPs, t_l what it takes lane l each time
// while all parts run beside each other, again and again, and T_l the same for the whole operator
// alone on lane l. Each is the median of several measurements, which take turns; those on a machine
// that `watch` finds disturbed are made again. At most one part may be on a CPU lane and one on a
// queue: kUnsupported otherwise.
StatusOr<double> corun_limit(const OperatorTrials& trials, const std::vector<SplitPart>& parts,
                             SpeedWatch& watch);

}  // namespace tandem::cli
