// Quick calibration: a cost model from measured slices of the graph at hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "profile/calibration_cache.h"
#include "profile/lane_crew.h"
#include "schedule/cost_table.h"

namespace tandem {

struct CalibrationOptions {
  double seconds = 5;       // that measurements may take, about; compilers aside
  std::string dir;          // see CalibrationCache
  std::string fingerprint;  // of the platform
  std::string mechanism;    // of synchronisation: crossings are kept by it
};

// Where measurements come from that are not in the cache. Called only if some are missing.
struct CalibrationSources {
  // Memory for every tensor of the graph, without reuse. Must live until create() returns.
  std::function<StatusOr<const TensorBindings*>()> memory;
  // Microseconds of a crossing.
  std::function<StatusOr<double>(int from, int to)> crossing;
};

// Measured are: every operator whole on every lane, and cut in quarters along its two best axes;
// operators with equal signatures once; the most telling first, as far as the time allows. Sizes in
// between are interpolated; what is not measured is estimated from what the lane achieves on
// operators of the same kind. Given a cache that has it all, no clock is read, and the answer is
// always the same.
class Calibration : public CostModel {
 public:
  // The caller has the lease.
  static StatusOr<std::unique_ptr<Calibration>> create(const Graph& graph, LaneCrew& crew,
                                                       const CalibrationOptions& options,
                                                       const CalibrationSources& sources);

  // Measured with all of the lane's threads, and given for any number of them.
  double slice_us(int lane, const Slice& slice, int threads = 0) const override;
  double crossing_us(int from, int to) const override { return crossings_[from][to]; }
  double enqueue_us(int lane) const override { return enqueueing_[lane]; }
  double copy_us(int lane, const CopySize& size) const override;

  // Slices measured by create(), and those that it wanted but had no time for.
  int measured() const { return measured_; }
  int missing() const { return missing_; }

 private:
  class Measurement;
  // Time by size along one axis, ascending.
  using Curve = std::vector<std::pair<int64_t, double>>;
  struct OperatorCosts {
    double whole_us = 0;
    std::vector<std::pair<int, Curve>> curves;  // by axis
  };

  Calibration(const Graph& graph, int lanes)
      : graph_(graph), costs_(lanes), overhead_us_(lanes), enqueueing_(lanes), copies_(lanes) {}
  void build(const std::vector<std::string>& signatures, const std::vector<std::string>& lane_names,
             const CalibrationData& data);

  const Graph& graph_;
  std::vector<std::vector<OperatorCosts>> costs_;  // by lane and operator
  std::vector<double> overhead_us_;                // by lane: of a slice of next to nothing
  std::vector<std::vector<double>> crossings_;
  std::vector<double> enqueueing_;  // by lane
  std::vector<CopyTimes> copies_;   // by lane
  int measured_ = 0;
  int missing_ = 0;
};

}  // namespace tandem
