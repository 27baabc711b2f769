#include "runtime/sync_event.h"

#include <fmt/format.h>

namespace tandem {

EventSynchronization::EventSynchronization(std::vector<QueueLane*> queue_lanes,
                                           const Schedule& schedule, SharedCounters shared)
    : Synchronization(SyncMechanism::kEvent, std::move(queue_lanes), schedule, std::move(shared)) {
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      for (const Wait& wait : scheduled.waits) {
        const Count count{wait.lane, wait.count};
        if (queue_lanes_[lane] && !held_back_[lane]) {
          host_crossings_[count][static_cast<int>(lane)];
        } else if (queue_lanes_[wait.lane]) {
          queue_crossings_[count];
        }
      }
    }
  }
}

void EventSynchronization::signal(int lane, int count) {
  Synchronization::signal(lane, count);
  const auto crossings = host_crossings_.find({lane, count});
  if (crossings == host_crossings_.end()) return;
  Status failure;
  for (auto& [queue, crossing] : crossings->second) {
    std::lock_guard lock(crossing.mutex);
    if (crossing.passed) continue;
    crossing.passed = true;
    if (!crossing.event) continue;
    if (const Status set = crossing.event->set(); !set.ok()) {
      failure = set.with_context(
          fmt::format("lane {}: setting an event", queue_lanes_[queue]->info().name));
    }
  }
  // Takes the locks again.
  if (!failure.ok()) abort(std::move(failure));
}

Status EventSynchronization::enqueue_signal(int lane, int count) {
  const auto found = queue_crossings_.find({lane, count});
  if (found == queue_crossings_.end()) return {};  // the end of the lane: see wait_for_end()
  TANDEM_ASSIGN_OR_RETURN(found->second.event, queue_lanes_[lane]->enqueue_device_event());
  found->second.published.store(found->second.event.get(), std::memory_order_release);
  return {};
}

Status EventSynchronization::enqueue_wait_in_queue(int lane, const Wait& wait) {
  HostCrossing& crossing = host_crossings_.at({wait.lane, wait.count}).at(lane);
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<HostEvent> event,
                          queue_lanes_[lane]->enqueue_host_wait());
  std::lock_guard lock(crossing.mutex);
  crossing.event = std::move(event);
  return crossing.passed ? crossing.event->set() : Status();
}

Status EventSynchronization::wait_for_queue(const Wait& wait) {
  QueueCrossing& crossing = queue_crossings_.at({wait.lane, wait.count});
  TANDEM_RETURN_IF_ERROR(
      poll_until([&] { return crossing.published.load(std::memory_order_acquire) != nullptr; }));
  TANDEM_RETURN_IF_ERROR(await(wait.lane, *crossing.published.load(std::memory_order_acquire)));
  advance(wait.lane, wait.count);  // for finished(), which reports read
  return {};
}

StatusOr<bool> EventSynchronization::passed(const Wait& wait) {
  const auto found = queue_crossings_.find({wait.lane, wait.count});
  if (found == queue_crossings_.end()) return Synchronization::passed(wait);
  const DeviceEvent* event = found->second.published.load(std::memory_order_acquire);
  if (!event) return false;
  TANDEM_ASSIGN_OR_RETURN(const bool passed, event->passed());
  if (passed) advance(wait.lane, wait.count);
  return passed;
}

// Sleeps, where `svm` is there for those who want it fast. Devices with memory of their own have
// nothing faster: there the driver is asked again and again. Where interrupts come late, as in
// virtual machines that have been given a GPU, callbacks and blocking calls were seen to take 18 ms
// more than that.
Status EventSynchronization::await(int lane, DeviceEvent& event) const {
  if (!computes_on_own_memory(*queue_lanes_[lane])) {
    TANDEM_RETURN_IF_ERROR(event.wait(deadline_));
    return aborted() ? cancelled("the run was aborted") : Status();
  }
  for (Backoff backoff;;) {
    TANDEM_ASSIGN_OR_RETURN(const bool passed, event.passed());
    if (passed) return aborted() ? cancelled("the run was aborted") : Status();
    TANDEM_RETURN_IF_ERROR(pause(&backoff));
  }
}

Status EventSynchronization::wait_for_end(int lane) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> end,
                          queue_lanes_[lane]->enqueue_device_event());
  TANDEM_RETURN_IF_ERROR(queue_lanes_[lane]->flush());
  TANDEM_RETURN_IF_ERROR(await(lane, *end));
  advance(lane, slices(lane));
  return {};
}

void EventSynchronization::end() {
  for (auto& [count, crossings] : host_crossings_) {
    for (auto& [queue, crossing] : crossings) {
      crossing.event.reset();
      crossing.passed = false;
    }
  }
  for (auto& [count, crossing] : queue_crossings_) {
    crossing.event.reset();
    crossing.published.store(nullptr, std::memory_order_relaxed);
  }
  Synchronization::end();
}

void EventSynchronization::release_all() {
  for (auto& [count, crossings] : host_crossings_) {
    for (auto& [queue, crossing] : crossings) {
      std::lock_guard lock(crossing.mutex);
      if (crossing.passed) continue;
      crossing.passed = true;
      if (crossing.event) crossing.event->abandon();
    }
  }
}

}  // namespace tandem
