#include "runtime/sync_svm.h"

#include <algorithm>

namespace tandem {

Status SvmSynchronization::enqueue_signal(int lane, int count) {
  return queue_lanes_[lane]->enqueue_signal(&shared_.counters[lane], target(lane, count));
}

Status SvmSynchronization::enqueue_wait_in_queue(int lane, const Wait& wait) {
  // The device has no clock; what is left of the time is told to it in polls. It gets more than is
  // left, so that the host, which can say what happened, is the first to notice.
  const double seconds = 2e-6 * microseconds(deadline_ - Clock::now());
  const double polls = std::max(1.0, seconds * queue_lanes_[lane]->polls_per_second());
  return queue_lanes_[lane]->enqueue_wait(&shared_.counters[wait.lane],
                                          target(wait.lane, wait.count), shared_.abort,
                                          static_cast<uint64_t>(polls));
}

Status SvmSynchronization::wait_for_end(int lane) { return poll(lane, slices(lane)); }

}  // namespace tandem
