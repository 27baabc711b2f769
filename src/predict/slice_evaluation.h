// How wrong predictors of this engine's lanes are on shapes that they have not seen.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "predict/metrics.h"
#include "predict/slice_predictor.h"

namespace tandem::predict {

struct SliceEvaluationOptions {
  int folds = 5;  // of shape groups: each is held out once
  uint64_t seed = 1;
  BoostingOptions boosting = {};
  // By sample: whether predictors may learn from it. Empty: from all. Errors are of all the same.
  std::vector<bool> learn = {};
  bool only_ours = false;  // without the models to compare with
};

// What the same measurement differs by from one time to the next.
struct RepeatNoise {
  // Half of the quartile distance over the median, mean over rows: what half of the samples behind
  // a median differ from it by, at most.
  double quartiles = 0;
  // Rows that differ in nothing that could matter (parts of one size of one operator, measured at
  // different places of it and at different times) against the mean of the others.
  ErrorSummary twins;

  // `twins` where there are enough of them, as they are whole measurements and further apart in
  // time; else `quartiles`.
  double value() const;
};

// MAPE that predictors are meant to reach: 8%, or 1.5 times the noise where that is more.
double target_mape(const RepeatNoise& noise);

struct SliceErrors {
  std::string lane;
  SliceFamily family = SliceFamily::kCopy;
  size_t rows = 0;
  size_t shapes = 0;
  bool own_model = false;  // else the model of all of the lane's families
  ErrorSummary ours = {};
  ErrorSummary without_kernel = {};
  ErrorSummary flops_only = {};
  RepeatNoise noise = {};
  bool meets_target() const { return ours.mape <= target_mape(noise); }
};

// Of slowdowns under load: predicted over measured.
struct SlowdownErrors {
  std::string lane;
  OtherLoad load = OtherLoad::kNone;
  double mean = 1;  // slowdown measured
  ErrorSummary ours = {};
  ErrorSummary constant = {};  // if the mean of the training rows were predicted
};

// One prediction for each sample by predictors that have not seen its group; NaN: none, since there
// was nothing to learn from.
struct HeldOutPredictions {
  std::vector<double> ours;
  std::vector<double> without_kernel;
  std::vector<double> flops_only;
};

struct SliceEvaluation {
  std::vector<std::string> groups;  // by sample
  HeldOutPredictions predictions;
  std::vector<SliceErrors> families;
  std::vector<SlowdownErrors> slowdowns;
};

// `on_step` is called lanes * folds times.
StatusOr<SliceEvaluation> evaluate_slices(std::span<const SliceSample> samples,
                                          const SliceEvaluationOptions& options,
                                          const std::function<void()>& on_step);

// Of the lane's samples without load.
ErrorSummary overall_errors(std::span<const SliceSample> samples,
                            std::span<const double> predictions, const std::string& lane);

// Distinct lanes, in order of appearance.
std::vector<std::string> lanes_of(std::span<const SliceSample> samples);

RepeatNoise repeat_noise(std::span<const SliceSample* const> samples);

}  // namespace tandem::predict
