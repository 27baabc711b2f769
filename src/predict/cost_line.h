// time = sum of weight * term, with weights that are not negative: the simplest cost models, and
// what the trees correct.
#pragma once

#include <span>
#include <vector>

#include "tandem/status.h"

namespace tandem::predict {

// Fitted so that the sum of squared *relative* errors is least: operators of microseconds count as
// much as those of milliseconds. With the terms 1, FLOPs and bytes this is a smooth roofline:
// dispatch, 1/rate and 1/bandwidth.
class CostLine {
 public:
  CostLine() = default;
  explicit CostLine(std::vector<double> weights) : weights_(std::move(weights)) {}

  // terms: rows x width, not negative; times: positive, one a row.
  static CostLine fit(std::span<const double> terms, size_t width, std::span<const double> times);

  // At least a nanosecond (times are in microseconds), so that logarithms exist.
  double predict(std::span<const double> terms) const;
  const std::vector<double>& weights() const { return weights_; }

 private:
  std::vector<double> weights_;
};

}  // namespace tandem::predict
