// Work for the other lanes while one is measured.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "predict/slice_case.h"
#include "profile/graph_memory.h"
#include "profile/lane_crew.h"
#include "profile/slice_timer.h"

namespace tandem {

// Two loads, made of the lanes' own kernels: element-wise functions that stream through more memory
// than the last cache holds, and matrix products that stay in a core's own caches.
class OtherLoads {
 public:
  // `last_cache_bytes` of the host. The caller has the lease.
  static StatusOr<std::unique_ptr<OtherLoads>> create(LaneCrew& crew, int64_t last_cache_bytes);
  ~OtherLoads();

  // Work like a lane's load, in tasks of some hundred microseconds on a core, which can be timed
  // while the thread that looks is busy.
  struct Sample {
    std::vector<Task*> tasks;
    double bytes = 0;  // that a task moves at least
  };
  Sample sample(int lane, predict::OtherLoad load) const;

  // Calls `measure` on the lane's thread while all other lanes run the load. `expected_us`: what it
  // takes, about: queues get work for somewhat longer. False: a queue had run out of work before
  // `measure` returned, so that its result means nothing; next time there will be more. `measure`
  // must hand on what it is given to SliceTimer::time().
  StatusOr<bool> during(int lane, predict::OtherLoad load, double expected_us,
                        const std::function<Status(const SliceTimer::Meanwhile&)>& measure);

 private:
  // The tasks of one load on one lane, run in turn, over and over.
  struct Load {
    std::vector<std::unique_ptr<Task>> tasks;
    size_t next = 0;
    double task_us = 0;

    Status launch_next() { return tasks[next++ % tasks.size()]->launch(); }
  };
  struct LaneLoads {
    std::unique_ptr<LaneProgram> program;
    Load memory;
    Load compute;
    std::vector<std::unique_ptr<Task>> memory_sample;
    std::vector<std::unique_ptr<Task>> compute_sample;
  };
  struct Busy;

  explicit OtherLoads(LaneCrew& crew) : crew_(crew) {}
  Status bind(int lane);
  Status bind_sample(int lane);
  Load& load_of(int lane, predict::OtherLoad load);
  // The queue's work for so long, begun.
  StatusOr<std::unique_ptr<DeviceEvent>> fill(int lane, Load& load, double us);

  LaneCrew& crew_;
  Graph graph_;
  int64_t rows_ = 0;  // of the streaming load
  GraphMemory memory_;
  std::vector<LaneLoads> lanes_;
  double margin_ = 1.5;  // of the expected time
};

}  // namespace tandem
