// What schedulers know of time: the cost of a slice on a lane, and of crossing from one to another.
#pragma once

#include "graph/partition.h"
#include "tandem/status.h"

namespace tandem {

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Predicted microseconds of the slice on that lane with all of the lane's threads, alone.
  virtual double slice_us(int lane, const Slice& slice) const = 0;
  // Predicted microseconds that a wait of `to` on `from` adds: send + latency + receive.
  virtual double crossing_us(int from, int to) const = 0;
  // Predicted microseconds of whoever enqueues slices of that lane, per slice with its signal.
  virtual double enqueue_us(int /*lane*/) const { return 0; }
};

}  // namespace tandem
