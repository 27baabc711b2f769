// Measures slices of one graph for a calibration.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile/calibration_cache.h"
#include "profile/lane_crew.h"
#include "profile/slice_timer.h"

namespace tandem {

// What of every operator is measured in one go: parts of one axis.
struct MeasurementStage {
  size_t axis = 0;                // into partition_axes()
  std::vector<double> fractions;  // of its extent; 1: the whole operator
};
// In this order: the first ones tell most.
const std::vector<MeasurementStage>& measurement_stages();
// How often the best division by what is known is measured after that, at most.
constexpr size_t kMeasurementRefinements = 6;

// A time to compare operators by where none is measured: microseconds on a machine of 50 GFLOPS and
// 10 GB/s.
double nominal_us(const Work& work);

// Fills gaps in CalibrationData. Operators with equal signatures are measured once. The caller has
// the lease on the lanes; everything that is given must outlive the measurement.
class SliceMeasurement {
 public:
  using SlicesByLane = std::vector<std::vector<Slice>>;
  // Memory for every tensor; asked for once there is something to measure.
  using Memory = std::function<StatusOr<const TensorBindings*>()>;

  // `signatures`: by operator; empty for those that are not launched. `repeated`: slices are timed
  // behind themselves. `seconds`: what measuring may take, binding whole operators aside.
  SliceMeasurement(const Graph& graph, LaneCrew& crew, const std::vector<std::string>& signatures,
                   Memory memory, bool repeated, double seconds, CalibrationData* data);

  // Slices of a stage that the data lack, the largest first.
  SlicesByLane wanted(const MeasurementStage& stage) const;
  // Those of the slices that the data lack.
  SlicesByLane unknown(SlicesByLane slices) const;
  // Operators that it may pay to cut, one of each signature.
  std::vector<OperatorId> worth_cutting() const;

  // Measures as many of the slices as fit into this round's share of the time: `rounds_left`, this
  // one included, share what is left.
  Status measure(const SlicesByLane& slices, size_t rounds_left);
  // Slices, so far.
  int measured() const { return measured_; }

 private:
  struct Bound {
    std::vector<Slice> slices;
    std::vector<std::unique_ptr<Task>> tasks;
    std::vector<std::vector<double>> samples;  // microseconds, by slice
    SliceTimer* timer = nullptr;
  };
  struct LaneTools {
    std::unique_ptr<LaneProgram> program;
    std::unique_ptr<SliceTimer> timer;
  };

  std::map<SliceSize, double>& times_of(int lane, OperatorId op);
  bool is_known(int lane, const Slice& slice) const;
  double fastest_us(OperatorId op) const;
  StatusOr<LaneTools*> tools_of(int lane);
  StatusOr<std::vector<Bound>> bind_all(const SlicesByLane& slices, Clock::time_point until);
  Status bind(int lane, const std::vector<Slice>& slices, Clock::time_point until, Bound* bound);
  Status time_in_turns(Clock::time_point until, std::vector<Bound>* bound);
  Status time(int turn, Bound* bound) const;
  void keep(int lane, Bound bound);

  const Graph& graph_;
  LaneCrew& crew_;
  const std::vector<std::string>& signatures_;
  const Memory memory_;
  const bool repeated_;
  CalibrationData* data_;
  Clock::time_point deadline_;
  std::vector<OperatorId> representatives_;
  const TensorBindings* bindings_ = nullptr;  // null until something has to be measured
  std::vector<LaneTools> tools_;              // by lane; empty until then
  int measured_ = 0;
};

}  // namespace tandem
