// `tandem train` from this machine's own measurements.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "predict/boosting.h"
#include "tandem/status.h"

namespace tandem::cli {

struct TrainLanesFlags {
  std::string store;                 // empty: the platform's
  std::string output;                // empty: where sessions look; "none": do not save
  std::string leave_out;             // a network, or "all"; empty: none
  bool measure = false;              // also run the networks left out, and what is plotted
  std::vector<std::string> budgets;  // also train on what profiles of these times have
  std::string plots;                 // a folder for charts; empty: none
  bool only_ours = false;            // no models to compare with
  bool allow_other = false;
  // Networks whose cost tables are timed instead of training; none: train.
  std::vector<std::string> bench_table;
  bool json = false;
  int folds = 5;
  uint64_t seed = 1;
  predict::BoostingOptions boosting;
  PlatformFlags platform;
};

Status train_lanes(const TrainLanesFlags& flags);

}  // namespace tandem::cli
