#include "runtime/sync_polled.h"

#include <algorithm>

namespace tandem {

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
