// Quick calibration: a cost model from measured slices of the graph at hand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profile/calibration_cache.h"
#include "profile/lane_crew.h"
#include "profile/transfer_costs.h"
#include "schedule/cost_table.h"

namespace tandem {

class SliceMeasurement;

struct CalibrationOptions {
  double seconds = 5;       // that measurements may take, about; compilers aside
  std::string dir;          // see CalibrationCache
  std::string fingerprint;  // of the platform
  std::string mechanism;    // of synchronisation: crossings are kept by it
};

// Measured are: every operator whole on every lane, and cut in quarters along its two best axes;
// then, several times over, the cut that choose_split() finds best by what is known, since times
// between quarters may have steps; operators with equal signatures once; the most telling first, as
// far as the time allows. Sizes in between are interpolated; what is not measured is estimated from
// what the lane achieves on operators of the same kind. How lanes slow each other down is measured
// by loads of the two kinds (see lane_contention.h). Slices are timed behind others, as in a
// network; those of a graph of one operator behind themselves, as in its sessions. Given a cache
// that has it all, no clock is read, and the answer is always the same.
class Calibration : public CostModel {
 public:
  // The caller has the lease.
  static StatusOr<std::unique_ptr<Calibration>> create(const Graph& graph, LaneCrew& crew,
                                                       const CalibrationOptions& options,
                                                       const CalibrationSources& sources);

  // Measured with all of the lane's threads, and given for any number of them.
  double slice_us(int lane, const Slice& slice, int threads = 0) const override;
  double crossing_us(int from, int to) const override { return transfers_.crossings[from][to]; }
  double command_us(int lane) const override { return transfers_.commands[lane]; }
  double enqueue_us(int lane) const override { return transfers_.enqueueing[lane]; }
  StartCosts start(int lane, int host) const override {
    return transfers_.starts.empty() ? CostModel::start(lane, host) : transfers_.starts[lane];
  }
  double copy_us(int lane, const CopySize& size) const override;
  Contention contention(int lane, const Slice& slice) const override;

  // Slices measured by create(), and those that it wanted but had no time for.
  int measured() const { return measured_; }
  int missing() const { return missing_; }

 private:
  using SliceTimes = std::map<SliceSize, double>;
  // Time by size along one axis, ascending.
  using Curve = std::vector<std::pair<int64_t, double>>;
  struct OperatorCosts {
    double whole_us = 0;
    std::vector<std::pair<int, Curve>> curves;  // by axis
  };

  Calibration(const Graph& graph, int lanes) : graph_(graph), costs_(lanes), overhead_us_(lanes) {}
  Status measure_stages(SliceMeasurement* measurement);
  Status refine(const LaneCrew& crew, SliceMeasurement* measurement,
                const std::function<void()>& build);
  // Costs from what the data have.
  void build(const std::vector<std::string>& signatures, const LaneCrew& crew,
             const CalibrationData& data);
  void build_whole(int lane, const std::vector<std::string>& signatures,
                   const std::vector<const SliceTimes*>& times);
  void build_curves(int lane, OperatorId op, const SliceTimes& times);
  // The parts of the best divisions by what is known, by lane.
  std::vector<std::vector<Slice>> best_parts(const LaneCrew& crew,
                                             const std::vector<OperatorId>& operators) const;

  const Graph& graph_;
  std::vector<std::vector<OperatorCosts>> costs_;  // by lane and operator
  std::vector<double> overhead_us_;                // by lane: of a slice of next to nothing
  TransferCosts transfers_;
  std::vector<LaneSlowdowns> slowdowns_;  // by lane
  int measured_ = 0;
  int missing_ = 0;
};

}  // namespace tandem
