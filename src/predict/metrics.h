// How wrong predictions are.
#pragma once

#include <span>
#include <string>

namespace tandem::predict {

// Of the absolute percentage errors |predicted / measured - 1|, as fractions.
struct ErrorSummary {
  size_t count = 0;
  double mape = 0;       // their mean
  double p90 = 0;        // 90% of them are at most this
  double within_10 = 0;  // the share that is at most 0.1
  // The sum of |predicted - measured| over the sum of measured times: what matters to schedules, in
  // which slices count by their time.
  double time_weighted = 0;
};

// Both of the same length; measured values are positive. All zero for no values.
ErrorSummary summarize_errors(std::span<const double> predicted, std::span<const double> measured);

// What the same thing measured again says: every measurement against the mean of the others with
// its key. No predictor of the key alone can do much better. `count` is of those that have others.
ErrorSummary repeat_errors(std::span<const std::string> keys, std::span<const double> measured);

}  // namespace tandem::predict
