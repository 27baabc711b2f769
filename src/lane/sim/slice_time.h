// The mechanistic model: microseconds of a slice on a lane of a platform, from the platform's
// figures alone. Shares nothing with the predictors, which see its samples only.
#pragma once

#include <cstdint>
#include <vector>

#include "lane/lane.h"
#include "lane/sim/platform_model.h"
#include "lane/sim/workload.h"

namespace tandem::sim {

// What else goes on.
struct Load {
  double memory_gbps = 0;  // of the DRAM bandwidth, that other lanes use meanwhile
  // Clocks, as shares of the highest: see DVFS steps.
  double cpu_clock = 1;
  double gpu_clock = 1;
  // The operands lie in caches, since the same slice ran just before.
  bool hot = false;
};

struct SliceTime {
  double us = 0;
  // Of it: what arithmetic alone, and what memory alone would take (they overlap).
  double compute_us = 0;
  double memory_us = 0;
  double overhead_us = 0;  // dispatch, forking and the like
  double dram_bytes = 0;   // that move over the memory bus
  ImplementationInfo implementation;

  // How much of the time the memory bus is what it waits for, in [0, 1].
  double memory_share() const;
};

// `cores`: those that take part, fastest cluster first. CPU lanes.
SliceTime cpu_slice_time(const PlatformModel& model, const std::vector<CoreGroup>& cores,
                         const Workload& work, const Load& load = {});
// The GPU lane. Times are between the ends of kernels in a queue that is never empty.
SliceTime gpu_slice_time(const PlatformModel& model, const Workload& work, const Load& load = {});

// The first `threads` cores of a lane (0: all of them).
std::vector<CoreGroup> cores_of(const LaneSpec& lane, int threads);
int core_count(const std::vector<CoreGroup>& cores);

// On lane number `lane` of the platform with that many threads (0: all that the lane has), as one
// of many: on the GPU with the gap before the next.
SliceTime slice_time(const PlatformModel& model, int lane, const Workload& work, int threads = 0,
                     const Load& load = {});

// Factors by which times differ from what is expected, log-normal and of mean 1; the same for the
// same `key`. Of all slices of a lane in one run (of a network, say), with the variation measured on
// such lanes; and of each slice, by the platform's jitter: larger for short ones.
double run_noise(const PlatformModel& model, int lane, uint64_t key);
double slice_noise(const PlatformModel& model, double us, uint64_t key);

// Mixes values into a key.
uint64_t mix(uint64_t a, uint64_t b);

}  // namespace tandem::sim
