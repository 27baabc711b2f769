// What schedulers know of time: the cost of a slice on a lane, and of crossing from one to another.
#pragma once

#include "schedule/placement.h"
#include "tandem/status.h"

namespace tandem {

// What a copy of a region of a tensor costs time for.
struct CopySize {
  int64_t pieces = 0;  // that lie apart from each other: pixels of a slice of channels, say
  int64_t bytes = 0;
};
CopySize copy_size(const Graph& graph, const TensorRegion& what);

// How a slice takes part in contention for memory. A slice of contention A that runs while one of
// contention B runs elsewhere takes
//   1 + (A.slowdown_compute - 1) * (1 - B.memory_share) + (A.slowdown_memory - 1) * B.memory_share
// times as long as alone.
struct Contention {
  double memory_share = 0;      // how memory-bound it is, in [0, 1]
  double slowdown_memory = 1;   // while the other lanes run memory-bound slices; >= 1
  double slowdown_compute = 1;  // while they run compute-bound ones; >= 1

  bool operator==(const Contention&) const = default;
};

// Microseconds that a run in which a queue takes part costs beside its slices. Devices, and whoever
// waits for them, may have to wake up first, which takes far longer than to go on from slice to
// slice.
struct StartCosts {
  double host_us = 0;   // of the thread that feeds the queue and waits for its end
  double queue_us = 0;  // from the start to the first slice's, and from the last one's end until
                        // the host has seen it

  bool operator==(const StartCosts&) const = default;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Predicted microseconds of the slice on that lane with that many threads (0: as many as the
  // lane has), alone.
  virtual double slice_us(int lane, const Slice& slice, int threads = 0) const = 0;
  // Of the slice on that lane; the default is that lanes do not slow each other down.
  virtual Contention contention(int /*lane*/, const Slice& /*slice*/) const { return {}; }
  // Predicted microseconds that a wait of `to` on `from` adds: send + latency + receive.
  virtual double crossing_us(int from, int to) const = 0;
  // Of these, what a signal takes of the lane's own time, and a wait even if what it waits for is
  // long done: on a queue, both are commands between its slices. The default is that they take
  // none.
  virtual double command_us(int /*lane*/) const { return 0; }
  // Predicted microseconds of copying that much between the host's memory and that of a lane that
  // computes on its own, either way.
  virtual double copy_us(int /*lane*/, const CopySize& /*size*/) const { return 0; }
  // Predicted microseconds of whoever enqueues slices of that lane, per slice with its signal.
  virtual double enqueue_us(int /*lane*/) const { return 0; }
  // Of that queue lane, on a run whose host lane (kNone: there is none) waits for it. The default
  // is that starting costs no more than going on.
  virtual StartCosts start(int lane, int host) const;
};

}  // namespace tandem
