// Mechanism `svm`: devices poll and advance the progress counters themselves.
#pragma once

#include "runtime/sync.h"

namespace tandem {

class SvmSynchronization : public Synchronization {
 public:
  SvmSynchronization(std::vector<QueueLane*> queue_lanes, const Schedule& schedule,
                     SharedCounters shared)
      : Synchronization(std::move(queue_lanes), schedule, std::move(shared)) {}

  Status enqueue_signal(int lane, int count) override;
  Status wait_for_end(int lane) override;

 private:
  Status enqueue_wait_in_queue(int lane, const Wait& wait) override;
  Status wait_for_queue(const Wait& wait) override { return poll(wait.lane, wait.count); }
};

}  // namespace tandem
