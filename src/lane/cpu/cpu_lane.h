// The CPU lane: a set of cores, with kernels from oneDNN, XNNPACK and plain loops.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lane/lane.h"

namespace tandem {

struct CpuLaneOptions {
  std::string name = "cpu";
  std::vector<int> cores;  // logical processors; the lane has as many threads
};

// kInvalidArgument if `cores` is empty or names a processor that this process may not use.
StatusOr<std::unique_ptr<Lane>> make_cpu_lane(const CpuLaneOptions& options);

}  // namespace tandem
