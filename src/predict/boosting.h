// Training of gradient-boosted trees, by XGBoost. Nothing else of the engine knows XGBoost: what
// comes out is a TreeEnsemble.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "predict/frame.h"
#include "predict/tree_ensemble.h"

namespace tandem::predict {

// The defaults are what tools/hyperparameters_lanes.json started from, within 1% of its best.
struct BoostingOptions {
  int trees = 100;  // at most
  int depth = 6;
  double learning_rate = 0.08;
  double row_share = 0.8;      // of the rows, drawn for each tree
  double feature_share = 0.6;  // of the features, drawn for each tree
  double minimum_weight = 4;  // rows in a leaf, at least; robust errors count rows far off for less
  double regularisation = 4;  // L2, of the leaves
  int patience = 15;          // trees without a better validation error, after which it stops
  uint64_t seed = 1;

  // Refuses what is out of range, naming it.
  Status validate() const;
};

// Of kRobustError: where squared errors become absolute ones, in units of the target.
inline constexpr double kRobustSlope = 0.05;

enum class Objective {
  kSquaredError,  // the target's mean
  // Between its mean and its median (Huber's loss, smooth): rows that are far off pull no more than
  // those kRobustSlope off. For logarithms of times, of which some are measured wrongly.
  kRobustError,
  kLogistic,  // the log-odds of the target, which is 0 or 1
};

// A trained ensemble, and the XGBoost predictions that tests compare it with.
struct Boosted {
  TreeEnsemble ensemble;
  int rounds = 0;                 // trees kept
  double validation_error = 0;    // of what stops the training; 0 without validation rows
  std::vector<float> by_xgboost;  // its own predictions (margins) of the training rows
};

// Fits `targets`, one a row of `frame`. With validation rows (of other groups than the rest: see
// group_folds), training stops when their error no longer falls, and the best count of trees is
// kept. One thread, and the same result every time.
StatusOr<Boosted> boost(const Frame& frame, std::span<const float> targets,
                        std::span<const size_t> validation, Objective objective,
                        const BoostingOptions& options);

// The XGBoost that is linked: "1.7.4".
std::string boosting_version();

}  // namespace tandem::predict
