// Puts the slices of an asynchronous lane into its queue.
#pragma once

#include "runtime/bound_lanes.h"
#include "runtime/recording.h"
#include "runtime/sync.h"

namespace tandem {

// Of one queue lane, run after run. Calls come from the thread that feeds the lane, except for
// begin().
class QueueFeeder {
 public:
  // Everything must outlive the feeder; `lane` is its index.
  QueueFeeder(const Graph& graph, int lane, const BoundLane& bound, QueueLane& queue)
      : graph_(&graph), lane_(lane), bound_(&bound), queue_(&queue) {}

  int lane() const { return lane_; }
  // Of a run: nothing has been fed. `sync` and `recording` (null: none) are those of the run. The
  // device wakes up meanwhile.
  void begin(Synchronization& sync, Recording* recording);
  // Enqueues and flushes all that is left, with waits and signals in between; or, of a lane that is
  // held back, as far as may be. Nothing in it waits for the device: until everything is flushed,
  // the device may be waiting for what comes after.
  Status feed();
  // How many slices have been fed, and whether that is all of them.
  size_t fed() const { return fed_; }
  bool all_fed() const { return fed_ == bound_->slices.size(); }
  // Once everything is fed, or the run was aborted: returns when the queue is empty.
  // kDeadlineExceeded if it is not by then; any other error is the device's.
  Status drain(Clock::time_point deadline);

 private:
  StatusOr<bool> may_be_fed(const BoundSlice& slice) const;
  Status enqueue(size_t index);
  Status drain_by_asking(Clock::time_point deadline);

  const Graph* graph_;
  int lane_;
  const BoundLane* bound_;
  QueueLane* queue_;
  Synchronization* sync_ = nullptr;
  Recording* recording_ = nullptr;
  size_t fed_ = 0;
};

}  // namespace tandem
