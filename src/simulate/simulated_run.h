// Runs a schedule on the lanes of a platform's model: an event simulation by the executor's rules.
#pragma once

#include <cstdint>
#include <vector>

#include "lane/sim/slice_time.h"
#include "report/timeline.h"
#include "schedule/scheduler.h"

namespace tandem::simulate {

struct RunOptions {
  // Of the noise; 0: times are their expectations.
  uint64_t seed = 0;
  double cpu_clock = 1;  // shares of the highest clock
  double gpu_clock = 1;
};

struct SimulatedRun {
  Timeline timeline;
  double energy_mj = 0;         // of cores and GPU while the run lasts: active and idle
  std::vector<double> busy_us;  // by lane
};

// A slice starts when its lane is free, it has been enqueued (on the GPU) and word has come of the
// end of what it waits for, a crossing after that end; copies come before it, and copies of what
// others read after it. What lanes
// take of the memory bus slows the others. The schedule must pass check_schedule(); problem.cost,
// which must be set, says what crossings, copies and enqueueing take, and nothing else.
SimulatedRun simulate_run(const Problem& problem, const sim::PlatformModel& model,
                          const Schedule& schedule, const RunOptions& options);

// The same network over and over, on a chip that heats up: clocks step down while it is too warm,
// and up again. Of runs within 0.1 s, the first.
struct ThrottledRun {
  double at_s = 0;  // since the first began
  double us = 0;
  double temperature_c = 0;
  double cpu_clock = 1;
  double gpu_clock = 1;
};
std::vector<ThrottledRun> run_until_warm(const Problem& problem, const sim::PlatformModel& model,
                                         const Schedule& schedule, double seconds);

}  // namespace tandem::simulate
