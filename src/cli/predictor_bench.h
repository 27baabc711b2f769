// `tandem train --bench-table`: how long predictors take to fill cost tables.
#pragma once

#include "cli/train_lanes.h"

namespace tandem::cli {

// Of every network, all lanes, whole operators and parts in steps of 1/16 along the best two axes,
// on one core, with this platform's saved predictors.
Status bench_cost_table(const TrainLanesFlags& flags);

}  // namespace tandem::cli
