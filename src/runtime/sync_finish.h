// Mechanism `finish`: for devices with which nothing else works. No events, and nothing on the
// device waits for the host.
#pragma once

#include "runtime/sync.h"

namespace tandem {

// Every queue is held back. Whoever waits for a queue waits until enough of it is enqueued, and
// then for all that is enqueued.
class FinishSynchronization : public Synchronization {
 public:
  FinishSynchronization(std::vector<QueueLane*> queue_lanes, const Schedule& schedule,
                        SharedCounters shared);

  Status enqueue_signal(int /*lane*/, int /*count*/) override { return {}; }
  void flushed(int lane, int count) override;
  StatusOr<bool> passed(const Wait& wait) override;
  Status wait_for_end(int lane) override;
  void end() override;

 private:
  Status enqueue_wait_in_queue(int lane, const Wait& wait) override;
  Status wait_for_queue(const Wait& wait) override;
  bool is_fed(const Wait& wait) const;
  Status finish(int lane);

  std::vector<std::atomic<int>> fed_;  // by lane: slices that are enqueued and flushed
};

}  // namespace tandem
