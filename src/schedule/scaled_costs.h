// Costs of lanes that are faster or slower than was predicted.
#pragma once

#include <utility>
#include <vector>

#include "schedule/cost_table.h"

namespace tandem {

// Slices take `factors[lane]` times as long as the other model says; all else stays as it is. That
// model must outlive this one.
class ScaledCosts : public CostModel {
 public:
  ScaledCosts(const CostModel& costs, std::vector<double> factors)
      : costs_(costs), factors_(std::move(factors)) {}
  double slice_us(int lane, const Slice& slice, int threads) const override {
    return factors_[lane] * costs_.slice_us(lane, slice, threads);
  }
  Contention contention(int lane, const Slice& slice) const override {
    return costs_.contention(lane, slice);
  }
  double crossing_us(int from, int to) const override { return costs_.crossing_us(from, to); }
  double command_us(int lane) const override { return costs_.command_us(lane); }
  double copy_us(int lane, const CopySize& size) const override {
    return costs_.copy_us(lane, size);
  }
  double enqueue_us(int lane) const override { return costs_.enqueue_us(lane); }
  StartCosts start(int lane, int host) const override { return costs_.start(lane, host); }

 private:
  const CostModel& costs_;
  const std::vector<double> factors_;
};

}  // namespace tandem
