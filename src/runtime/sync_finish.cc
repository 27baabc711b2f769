#include "runtime/sync_finish.h"

namespace tandem {

FinishSynchronization::FinishSynchronization(std::vector<QueueLane*> queue_lanes,
                                             const Schedule& schedule, SharedCounters shared)
    : Synchronization(SyncMechanism::kFinish, std::move(queue_lanes), schedule, std::move(shared)),
      fed_(schedule.lanes.size()) {}

void FinishSynchronization::flushed(int lane, int count) {
  fed_[lane].store(count, std::memory_order_release);
}

bool FinishSynchronization::is_fed(const Wait& wait) const {
  return fed_[wait.lane].load(std::memory_order_acquire) >= wait.count;
}

// What was enqueued before is known to have run. It waits for nothing, so that the queue gets there
// by itself.
Status FinishSynchronization::finish(int lane) {
  const int fed = fed_[lane].load(std::memory_order_acquire);
  TANDEM_RETURN_IF_ERROR(queue_lanes_[lane]->finish());
  advance(lane, fed);
  return {};
}

StatusOr<bool> FinishSynchronization::passed(const Wait& wait) {
  if (finished(wait.lane) >= wait.count) return true;
  if (!queue_lanes_[wait.lane] || !is_fed(wait)) return false;
  TANDEM_RETURN_IF_ERROR(finish(wait.lane));
  return true;
}

Status FinishSynchronization::enqueue_wait_in_queue(int, const Wait&) {
  return internal_error("a queue that is held back cannot wait");
}

Status FinishSynchronization::wait_for_queue(const Wait& wait) {
  if (finished(wait.lane) >= wait.count) return {};
  TANDEM_RETURN_IF_ERROR(poll_until([&] { return is_fed(wait); }));
  TANDEM_RETURN_IF_ERROR(finish(wait.lane));
  return aborted() ? cancelled("the run was aborted") : Status();
}

Status FinishSynchronization::wait_for_end(int lane) { return finish(lane); }

void FinishSynchronization::end() {
  for (std::atomic<int>& fed : fed_) fed.store(0, std::memory_order_relaxed);
  Synchronization::end();
}

}  // namespace tandem
