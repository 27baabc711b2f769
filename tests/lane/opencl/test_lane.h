// The lane that the tests share, and memory for graphs on it.
#pragma once

#include <memory>
#include <vector>

#include "lane/opencl/opencl_lane_impl.h"
#include "support/clock.h"

namespace tandem::opencl {

// One for the whole process, on the first core that it may use, without a program cache. Null, with
// a failure recorded, if there is no device.
LaneImpl* test_lane();

// Memory for every tensor of a graph but the packed ones; all of it, padding included, holds NaN
// (or a pattern of bits) until written.
struct Memory {
  Memory(LaneImpl* lane, const Graph& graph);

  // Makes every byte of a tensor's memory the pattern again.
  void spoil(TensorId tensor);
  // Whether what does not belong to elements of the tensor is the pattern still.
  bool untouched_outside(TensorId tensor) const;

  TensorBindings bindings;
  std::vector<std::shared_ptr<std::byte>> blocks;  // by tensor
  std::vector<size_t> sizes;                       // in bytes
};

}  // namespace tandem::opencl
