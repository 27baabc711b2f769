#include "runtime/sync_polled.h"

#include <algorithm>

namespace tandem {

void PolledSynchronization::begin(Clock::time_point deadline) {
  Synchronization::begin(deadline);
  ++run_;
  shared_.dozing->store(0, std::memory_order_relaxed);
}

void PolledSynchronization::rouse(int lane) {
  // Longer than it takes to wake a thread and enqueue a slice; and not the session's patience,
  // since nothing depends on it.
  constexpr std::chrono::milliseconds kAwake{2};
  QueueLane& queue = *queue_lanes_[lane];
  if (queue.enqueue_doze(&shared_.released[lane], run_, shared_.dozing, kAwake).ok()) {
    static_cast<void>(queue.flush());
  }
}

void PolledSynchronization::release(int lane) {
  shared_.released[lane].value.store(run_, std::memory_order_release);
}

Status PolledSynchronization::enqueue_signal(int lane, int count) {
  return queue_lanes_[lane]->enqueue_signal(&shared_.counters[lane], target(lane, count));
}

Status PolledSynchronization::enqueue_wait_in_queue(int lane, const Wait& wait) {
  // Of a deadline it gets more than is left, so that the host, which can say what happened, is the
  // first to notice.
  const std::chrono::duration<double> left = 2 * (deadline_ - Clock::now());
  return queue_lanes_[lane]->enqueue_wait(
      &shared_.counters[wait.lane], target(wait.lane, wait.count), shared_.abort,
      std::min<std::chrono::duration<double>>(left, spin_limit_));
}

Status PolledSynchronization::wait_for_end(int lane) { return poll(lane, slices(lane)); }

}  // namespace tandem
