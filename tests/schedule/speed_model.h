// A cost model for tests.
#pragma once

#include <vector>

#include "schedule/cost_table.h"

namespace tandem::testing {

// Lanes of given speeds in FLOPs a microsecond, with a fixed cost per slice and per crossing.
class SpeedModel : public CostModel {
 public:
  SpeedModel(const Graph& graph, std::vector<double> speeds, double overhead, double crossing)
      : graph_(graph), speeds_(std::move(speeds)), overhead_(overhead), crossing_(crossing) {}
  double slice_us(int lane, const Slice& slice, int /*threads*/ = 0) const override {
    return overhead_ + work_of(graph_, slice).flops / speeds_[lane];
  }
  double crossing_us(int, int) const override { return crossing_; }

 private:
  const Graph& graph_;
  std::vector<double> speeds_;
  double overhead_;
  double crossing_;
};

}  // namespace tandem::testing
