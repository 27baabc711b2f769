// Costs from this machine's saved predictors: nothing is measured.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "predict/predictor_file.h"
#include "profile/lane_crew.h"
#include "profile/transfer_costs.h"
#include "schedule/cost_table.h"

namespace tandem {

// A slice, where it would run, and with how many threads (0: the lane's maximum).
struct LaneSlice {
  int lane = 0;
  Slice slice;
  int threads = 0;
};

// Slices of operators with equal signatures, of one size along one axis, on one lane with one
// number of threads are one question: it is put to the lane (which implementation?) and to the
// predictors once, as it is asked. Where along the axis a slice lies makes no difference, although
// slices at the edges of an image read fewer lines.
//
// Times are those of cold data, as networks have them, except where one operator is all that runs
// (is_alone()): then they are those of slices that ran just before, which are up to twice as fast,
// and not by the same factor on every lane.
//
// Calls on one object must not overlap in time, also those of const functions: answers are kept.
class PredictedCosts : public CostModel {
 public:
  // kNotFound if the file has no predictor for one of the lanes. Graph and lanes must outlive the
  // result.
  static StatusOr<std::unique_ptr<PredictedCosts>> create(const Graph& graph,
                                                          const std::vector<Lane*>& lanes,
                                                          const predict::PredictorFile& predictors,
                                                          TransferCosts transfers);
  ~PredictedCosts() override;

  // Predicts all that are not known yet. Fails where slice_us() would only warn and say that it
  // takes for ever.
  Status prepare(const std::vector<LaneSlice>& slices) const;

  // Infinite where the lane has no implementation.
  double slice_us(int lane, const Slice& slice, int threads = 0) const override;
  // memory_share: bytes that the slice moves at least, per predicted time, over what a core reads
  // from memory, as probed beside the measurements. Slowdowns are learned from measurements under
  // load; those of a slice are taken from the nearest eighth of the operator along that axis.
  Contention contention(int lane, const Slice& slice) const override;
  double crossing_us(int from, int to) const override { return transfers_.crossings[from][to]; }
  double command_us(int lane) const override { return transfers_.commands[lane]; }
  double enqueue_us(int lane) const override { return transfers_.enqueueing[lane]; }
  StartCosts start(int lane, int host) const override {
    return transfers_.starts.empty() ? CostModel::start(lane, host) : transfers_.starts[lane];
  }
  double copy_us(int lane, const CopySize& size) const override {
    return tandem::copy_us(transfers_.copies[lane], size);
  }

  // Distinct questions answered so far.
  size_t answered() const;

 private:
  struct LaneModel;
  struct Answer {
    double us = 0;
    double bytes = 0;  // that the slice moves at least
    // Of whole operators and eighths.
    double slowdown_memory = 1;
    double slowdown_compute = 1;
  };
  using Key = uint64_t;

  PredictedCosts(const Graph& graph, TransferCosts transfers);
  Status load_lane(Lane* lane, const predict::PredictorFile& predictors,
                   const TensorBindings& bindings);
  Key key_of(int lane, const Slice& slice, int threads) const;
  StatusOr<const Answer*> ask(int lane, const Slice& slice, int threads) const;
  StatusOr<Answer> predict(const LaneModel& model, const Slice& asked, int threads) const;
  const PartitionAxis* axis_of(const Slice& slice) const;
  const Answer* find(int lane, const Slice& slice, int threads) const;

  const Graph& graph_;
  const Placement placement_;
  const bool repeated_;  // slices find the data of their last run in caches
  TransferCosts transfers_;
  alignas(64) std::byte nowhere_[64] = {};        // an address; nobody looks at what is there
  std::vector<int> question_of_;                  // by operator: equal for equal signatures
  std::vector<std::vector<PartitionAxis>> axes_;  // by operator
  std::vector<std::unique_ptr<LaneModel>> lanes_;
};

// What searches ask for: every launched operator whole, and along its best two axes in parts of
// 1/steps, 2/steps, ... (rounded to what may be cut), on every lane with all of its threads.
std::vector<LaneSlice> usual_slices(const Graph& graph, int lanes, int steps = 8);

}  // namespace tandem
