#include "runtime/sync.h"

#include <fmt/format.h>

#include <new>

#include "runtime/sync_event.h"
#include "runtime/sync_svm.h"

namespace tandem {

SharedCounters SharedCounters::create(std::shared_ptr<std::byte> memory, size_t lanes,
                                      uint32_t start) {
  SharedCounters shared;
  auto* lines = new (memory.get()) ProgressCounter[lanes + 1];
  for (size_t lane = 0; lane < lanes; ++lane) lines[lane].value.store(start);
  lines[lanes].value.store(0);
  shared.counters = lines;
  shared.abort = &lines[lanes].value;
  shared.memory = std::move(memory);
  return shared;
}

Synchronization::Synchronization(std::vector<QueueLane*> queue_lanes, const Schedule& schedule,
                                 SharedCounters shared)
    : queue_lanes_(std::move(queue_lanes)),
      held_back_(held_back_lanes(queue_lanes_)),
      shared_(std::move(shared)) {
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    base_.push_back(shared_.counters[lane].value.load());
    awaited_.emplace_back(schedule.lanes[lane].size() + 1, false);
    awaited_.back().back() = true;
  }
  for (const std::vector<ScheduledSlice>& lane : schedule.lanes) {
    for (const ScheduledSlice& scheduled : lane) {
      for (const Wait& wait : scheduled.waits) awaited_[wait.lane][wait.count] = true;
    }
  }
}

void Synchronization::begin(Clock::time_point deadline) { deadline_ = deadline; }

void Synchronization::signal(int lane, int count) {
  // An exchange, where a store would do for plain writes: on x86 it also waits for the streaming
  // stores that libraries may use.
  shared_.counters[lane].value.exchange(target(lane, count), std::memory_order_release);
}

Status Synchronization::wait(const Wait& wait) {
  return queue_lanes_[wait.lane] ? wait_for_queue(wait) : poll(wait.lane, wait.count);
}

StatusOr<bool> Synchronization::passed(const Wait& wait) {
  return finished(wait.lane) >= wait.count;
}

Status Synchronization::enqueue_wait(int lane, const Wait& wait) {
  // What is enqueued from now on sees what the host has seen.
  if (!queue_lanes_[wait.lane] && finished(wait.lane) >= wait.count) return {};
  return enqueue_wait_in_queue(lane, wait);
}

Status Synchronization::poll(int lane, int count) {
  return poll_until([&, wanted = target(lane, count)] {
    return reached(shared_.counters[lane].value.load(std::memory_order_acquire), wanted);
  });
}

void Synchronization::end() {
  for (size_t lane = 0; lane < base_.size(); ++lane) {
    base_[lane] = target(static_cast<int>(lane), slices(static_cast<int>(lane)));
    shared_.counters[lane].value.store(base_[lane], std::memory_order_relaxed);
  }
  shared_.abort->store(0, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  reason_ = {};
}

void Synchronization::abort(Status reason) {
  {
    std::lock_guard lock(mutex_);
    if (reason_.ok()) reason_ = std::move(reason);
  }
  shared_.abort->store(1, std::memory_order_relaxed);
  release_all();
}

Status Synchronization::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

int Synchronization::finished(int lane) const {
  return static_cast<int>(shared_.counters[lane].value.load(std::memory_order_acquire) -
                          base_[lane]);
}

std::vector<bool> held_back_lanes(const std::vector<QueueLane*>& queue_lanes) {
  std::vector<bool> held_back;
  for (const QueueLane* lane : queue_lanes) {
    held_back.push_back(lane && computes_on_own_memory(*lane));
  }
  return held_back;
}

StatusOr<std::unique_ptr<Synchronization>> make_synchronization(SyncMechanism mechanism,
                                                                std::vector<QueueLane*> queue_lanes,
                                                                const Schedule& schedule,
                                                                SharedCounters shared) {
  if (mechanism == SyncMechanism::kEvent) {
    return EventSynchronization::create(std::move(queue_lanes), schedule, std::move(shared));
  }
  std::unique_ptr<Synchronization> result =
      std::make_unique<SvmSynchronization>(std::move(queue_lanes), schedule, std::move(shared));
  return result;
}

StatusOr<SyncMechanism> choose_mechanism(SyncMechanism asked, const std::vector<QueueLane*>& lanes,
                                         std::string* why) {
  why->clear();
  if (asked == SyncMechanism::kEvent) return asked;
  for (QueueLane* lane : lanes) {
    if (!lane) continue;
    if (lane->shared_memory() != SharedMemoryKind::kFineAtomics) {
      *why =
          fmt::format("lane {} has {}; polling counters needs {}", lane->info().name,
                      to_string(lane->shared_memory()), to_string(SharedMemoryKind::kFineAtomics));
    } else if (const Status passed = lane->self_test(); !passed.ok()) {
      *why = fmt::format("lane {} failed the self-test: {}", lane->info().name, passed.message());
    }
    if (why->empty()) continue;
    if (asked == SyncMechanism::kSvm) {
      return unsupported("synchronisation by svm was asked for, but " + *why +
                         "; use --sync event or auto");
    }
    return SyncMechanism::kEvent;
  }
  return SyncMechanism::kSvm;
}

}  // namespace tandem
