// The state of a simulated platform: a clock for each lane, and what else goes on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lane/lane.h"
#include "lane/sim/slice_time.h"

namespace tandem::sim {

// What the other lanes do while one is timed.
enum class OtherWork : uint8_t { kNone, kMemory, kCompute };

// Shares of the highest clocks; of the CPU all clusters.
struct Clocks {
  double cpu = 1;
  double gpu = 1;
};

// Each lane is used by one thread at a time; different lanes may be used at once.
class World {
 public:
  // The same seed and the same calls on a lane give the same times.
  World(PlatformModel model, uint64_t seed);

  const PlatformModel& model() const { return model_; }
  uint64_t seed() const { return seed_; }
  double now_us(int lane) const { return lanes_[lane].now_us; }

  // Runs a slice on a lane; returns how long it took. `task` tells whether the same one ran right
  // before: then its data are in caches. Null: no.
  double run(int lane, const Workload& work, int threads, const void* task);
  // Copies between the host's memory and that which the GPU computes on.
  double copy(int lane, double bytes);
  // From now on, until it is called again.
  void set_other_work(int lane, OtherWork work) { lanes_[lane].others = work; }

  // The chip is too warm after so many inferences, and has these clocks from then on. Before any.
  void throttle_after(int inferences, const Clocks& clocks);
  // Whoever simulates an inference says so before it, and is told of the clocks that it has. From
  // any thread.
  Clocks next_inference();

 private:
  struct LaneState {
    double now_us = 0;
    uint64_t runs = 0;
    const void* last = nullptr;
    OtherWork others = OtherWork::kNone;
  };
  double pass(int lane, double us);
  Clocks clocks() const;

  const PlatformModel model_;
  const uint64_t seed_;
  std::vector<LaneState> lanes_;
  int throttle_after_ = 0;  // inferences; 0: never
  Clocks throttled_;
  std::atomic<int> inferences_ = 0;  // begun
};

// GB/s that lane number `lane` takes of the memory bus with work of that kind.
double bus_gbps(const PlatformModel& model, int lane, OtherWork work);
// Of copies, per byte.
double copy_us_per_byte(const PlatformModel& model);

// What all simulated lanes can do beside what Lane says.
class SimulatedLane {
 public:
  virtual ~SimulatedLane() = default;
  virtual World& world() const = 0;
  virtual int index() const = 0;  // in the platform's model
};
// Null for lanes that are not simulated.
SimulatedLane* as_simulated(Lane* lane);

// A lane that computes nothing: launch() passes time on the world's clock. A GPU has a queue, in
// which everything has run when it was enqueued; commands by which lanes wait for each other are
// kUnsupported: schedules on simulated lanes are simulated too (runtime/simulated_run.h).
std::unique_ptr<Lane> make_simulated_lane(std::shared_ptr<World> world, int lane);

}  // namespace tandem::sim
