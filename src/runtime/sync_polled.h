// Mechanisms `svm` and `pinned`: devices poll and advance the progress counters themselves. They
// differ in the memory that these lie in.
#pragma once

#include "runtime/sync.h"

namespace tandem {

class PolledSynchronization : public Synchronization {
 public:
  PolledSynchronization(const SyncOptions& options, std::vector<QueueLane*> queue_lanes,
                        const Schedule& schedule, SharedCounters shared)
      : Synchronization(options.mechanism, std::move(queue_lanes), schedule, std::move(shared)),
        spin_limit_(options.device_spin_limit) {}

  void begin(Clock::time_point deadline) override;
  void rouse(int lane) override;
  void release(int lane) override;
  Status enqueue_signal(int lane, int count) override;
  Status wait_for_end(int lane) override;

 private:
  Status enqueue_wait_in_queue(int lane, const Wait& wait) override;
  Status wait_for_queue(const Wait& wait) override { return poll(wait.lane, wait.count); }

  const std::chrono::milliseconds spin_limit_;
  uint32_t run_ = 0;
};

}  // namespace tandem
