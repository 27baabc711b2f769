#include "lane/sim/world.h"

#include <algorithm>

namespace tandem::sim {
namespace {

// Of the bus that one side can take when it streams alone.
constexpr double kMostOfBus = 0.8;
// Work that stays in caches misses them at times.
constexpr double kComputeShare = 0.05;

}  // namespace

World::World(PlatformModel model, uint64_t seed)
    : model_(std::move(model)), seed_(seed), lanes_(model_.lanes.size()) {}

double World::pass(int lane, double us) {
  LaneState& state = lanes_[lane];
  const uint64_t key = mix(mix(seed_, static_cast<uint64_t>(lane)), state.runs++);
  const double taken =
      us * run_noise(model_, lane, mix(key, 1)) * slice_noise(model_, us, mix(key, 2));
  state.now_us += taken;
  return taken;
}

void World::throttle_after(int inferences, const Clocks& clocks) {
  throttle_after_ = inferences;
  throttled_ = clocks;
}

Clocks World::next_inference() {
  ++inferences_;
  return clocks();
}

Clocks World::clocks() const {
  return throttle_after_ > 0 && inferences_ > throttle_after_ ? throttled_ : Clocks{};
}

double World::run(int lane, const Workload& work, int threads, const void* task) {
  LaneState& state = lanes_[lane];
  Load load;
  load.cpu_clock = clocks().cpu;
  load.gpu_clock = clocks().gpu;
  load.hot = task != nullptr && task == state.last;
  for (int other = 0; other < static_cast<int>(lanes_.size()); ++other) {
    if (other != lane) load.memory_gbps += bus_gbps(model_, other, state.others);
  }
  state.last = task;
  return pass(lane, slice_time(model_, lane, work, threads, load).us);
}

double World::copy(int lane, double bytes) {
  return pass(lane, model_.sync.map_us + bytes * copy_us_per_byte(model_));
}

double bus_gbps(const PlatformModel& model, int lane, OtherWork work) {
  if (work == OtherWork::kNone) return 0;
  const LaneSpec& spec = model.lanes[lane];
  double gbps = 0;
  for (const CoreGroup& group : spec.cores) {
    gbps += model.core_coefficients[group.cluster].stream_gbps * group.cores;
  }
  if (spec.cores.empty()) {
    gbps = model.gpu.bandwidth_gbps * model.gpu_coefficients.bandwidth_efficiency;
  }
  gbps = std::min(gbps, kMostOfBus * model.dram_gbps);
  return work == OtherWork::kMemory ? gbps : kComputeShare * gbps;
}

// Read and written once, by one core.
double copy_us_per_byte(const PlatformModel& model) {
  double best = 0;
  for (const CoreCoefficients& core : model.core_coefficients) {
    best = std::max(best, core.stream_gbps);
  }
  return 2 / (best * 1e3);
}

}  // namespace tandem::sim
