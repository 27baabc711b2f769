// What a crossing between a CPU lane and a queue lane costs, by mechanism.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile/lane_crew.h"
#include "schedule/cost_table.h"
#include "tandem/platform.h"
#include "tandem/session.h"

namespace tandem {

struct Quantiles {
  double median = 0;
  double p90 = 0;
};

// Microseconds. A round trip: a CPU lane signals, the queue, which waits for that, goes on and
// signals, and the CPU lane sees it. Its parts, which nothing can time directly because the device
// has no clock:
// - svm: gpu_to_cpu is the interval at which the host sees a queue signal again and again (dispatch
//   of the signal, its store, and the host's polling); cpu_to_gpu is the rest of the round trip
//   (the device's polling, and the end of the waiting kernel);
// - pinned: as svm;
// - event, finish: half of the round trip each. With finish, a kernel that does nothing is launched
//   in between.
struct CrossingTimes {
  bool available = false;
  std::string why_not;  // if not available
  Quantiles cpu_to_gpu;
  Quantiles gpu_to_cpu;
  Quantiles round_trip;
  // Processor time of a CPU lane's thread that waits for the queue for long; if measured.
  std::optional<double> cpu_ms_per_second_of_waiting;
};

struct SyncBenchOptions {
  int warm_up = 200;
  int iterations = 2'000;
  // How long the wait takes whose processor time is measured; zero: it is not.
  std::chrono::milliseconds long_wait{0};
};

// One mechanism (not kAuto) between two lanes. The caller has the lease.
StatusOr<CrossingTimes> bench_crossing(LaneCrew& crew, int cpu_lane, int queue_lane,
                                       SyncMechanism mechanism, const SyncBenchOptions& options);

// What it costs to start the queue after a pause, and to see the end of what it did: runs of one
// signal, which last a moment and then, on a CPU lane's thread that feeds the queue and has work of
// its own meanwhile, a while. A queue with a thread of its own costs the host nothing. The caller
// has the lease.
StatusOr<StartCosts> bench_start(LaneCrew& crew, int queue_lane, SyncMechanism mechanism);

struct MechanismTimes {
  SyncMechanism mechanism = SyncMechanism::kSvm;
  CrossingTimes times;
};

struct LanePairTimes {
  std::string cpu_lane;
  std::string queue_lane;
  std::vector<MechanismTimes> mechanisms;
};

// Every mechanism between every CPU lane and every queue lane. Empty if there are none.
StatusOr<std::vector<LanePairTimes>> bench_sync(const std::shared_ptr<Platform>& platform,
                                                const SyncBenchOptions& options = {});

}  // namespace tandem
