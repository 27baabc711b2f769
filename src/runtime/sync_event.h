// Mechanism `event`: host lanes set events that queues wait for, and block on events of queues. For
// devices that cannot poll memory.
#pragma once

#include <map>
#include <utility>

#include "runtime/sync.h"

namespace tandem {

// Counters tell host lanes of each other only. Every crossing between a host lane and a queue has
// an event, made when the queue is fed.
class EventSynchronization : public Synchronization {
 public:
  EventSynchronization(std::vector<QueueLane*> queue_lanes, const Schedule& schedule,
                       SharedCounters shared);

  void signal(int lane, int count) override;
  StatusOr<bool> passed(const Wait& wait) override;
  Status enqueue_signal(int lane, int count) override;
  Status wait_for_end(int lane) override;
  void end() override;

 private:
  // A queue waits for a count of a host lane. The feeder makes the event while the host lane may
  // already have got there: whoever comes second sets it.
  struct HostCrossing {
    std::mutex mutex;
    std::unique_ptr<HostEvent> event;
    bool passed = false;
  };
  // Host lanes, and feeders, wait for a count of a queue.
  struct QueueCrossing {
    std::unique_ptr<DeviceEvent> event;
    std::atomic<DeviceEvent*> published{nullptr};  // the same, for the host lanes
  };
  using Count = std::pair<int, int>;  // lane, count

  Status enqueue_wait_in_queue(int lane, const Wait& wait) override;
  Status wait_for_queue(const Wait& wait) override;
  Status await(int lane, DeviceEvent& event) const;
  void release_all() override;

  // By the count awaited, then by the queue that waits. Maps do not change after construction.
  std::map<Count, std::map<int, HostCrossing>> host_crossings_;
  std::map<Count, QueueCrossing> queue_crossings_;
};

}  // namespace tandem
