#include "runtime/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "runtime/memory_plan.h"
#include "runtime/sync_event.h"
#include "runtime/sync_finish.h"
#include "runtime/sync_polled.h"

namespace tandem {
namespace {

// Of SharedCounters.
size_t line_count(size_t lanes) { return 2 * (lanes + 1); }

}  // namespace

SharedCounters SharedCounters::create(std::shared_ptr<std::byte> memory, size_t lanes,
                                      uint32_t start) {
  SharedCounters shared;
  auto* lines = new (memory.get()) ProgressCounter[line_count(lanes)];
  for (size_t line = 0; line < line_count(lanes); ++line) {
    lines[line].value.store(line < lanes ? start : 0);
  }
  shared.counters = lines;
  shared.abort = &lines[lanes].value;
  shared.released = lines + lanes + 1;
  shared.dozing = &lines[2 * lanes + 1].value;
  shared.memory = std::move(memory);
  return shared;
}

StatusOr<SharedCounters> SharedCounters::allocate(SyncMechanism mechanism,
                                                  const std::vector<QueueLane*>& queue_lanes,
                                                  uint32_t start) {
  const size_t bytes = line_count(queue_lanes.size()) * sizeof(ProgressCounter);
  const auto allocate = [&]() -> StatusOr<std::shared_ptr<std::byte>> {
    for (QueueLane* lane : queue_lanes) {
      const bool polls = mechanism == SyncMechanism::kSvm || mechanism == SyncMechanism::kPinned;
      if (!lane || !polls) continue;
      auto memory =
          mechanism == SyncMechanism::kSvm ? lane->allocate(bytes) : lane->allocate_pinned(bytes);
      if (!memory.ok()) return memory.status().with_context("lane " + lane->info().name);
      return memory;
    }
    return Arena::host_allocator()(bytes);
  };
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, allocate());
  return create(std::move(memory), queue_lanes.size(), start);
}

Synchronization::Synchronization(SyncMechanism mechanism, std::vector<QueueLane*> queue_lanes,
                                 const Schedule& schedule, SharedCounters shared)
    : queue_lanes_(std::move(queue_lanes)),
      held_back_(held_back_lanes(mechanism, queue_lanes_, schedule)),
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

void Synchronization::advance(int lane, int count) {
  std::atomic<uint32_t>& counter = shared_.counters[lane].value;
  const uint32_t wanted = target(lane, count);
  uint32_t current = counter.load(std::memory_order_relaxed);
  while (!reached(current, wanted) &&
         !counter.compare_exchange_weak(current, wanted, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
}

Status Synchronization::pause(Backoff* backoff) const {
  if (aborted()) return cancelled("the run was aborted");
  if (backoff->is_patient() && Clock::now() >= deadline_) {
    return deadline_exceeded("the deadline has passed");
  }
  backoff->pause();
  return {};
}

std::vector<bool> held_back_lanes(SyncMechanism mechanism,
                                  const std::vector<QueueLane*>& queue_lanes,
                                  const Schedule& schedule) {
  std::vector<bool> held_back;
  for (size_t lane = 0; lane < queue_lanes.size(); ++lane) {
    const auto waits_for_queue = [&](const ScheduledSlice& slice) {
      return std::any_of(slice.waits.begin(), slice.waits.end(),
                         [&](const Wait& wait) { return queue_lanes[wait.lane] != nullptr; });
    };
    const std::vector<ScheduledSlice>& slices = schedule.lanes[lane];
    held_back.push_back(queue_lanes[lane] &&
                        (computes_on_own_memory(*queue_lanes[lane]) ||
                         mechanism == SyncMechanism::kFinish ||
                         (mechanism == SyncMechanism::kEvent &&
                          std::any_of(slices.begin(), slices.end(), waits_for_queue))));
  }
  return held_back;
}

StatusOr<std::unique_ptr<Synchronization>> make_synchronization(const SyncOptions& options,
                                                                std::vector<QueueLane*> queue_lanes,
                                                                const Schedule& schedule,
                                                                uint32_t first_count) {
  const auto queues = std::count_if(queue_lanes.begin(), queue_lanes.end(),
                                    [](const QueueLane* lane) { return lane != nullptr; });
  if (options.mechanism == SyncMechanism::kPinned && queues > 1) {
    return unsupported(
        "synchronisation by pinned: a device's mapped memory is not seen by another; use svm, "
        "event "
        "or finish with several OpenCL lanes");
  }
  TANDEM_ASSIGN_OR_RETURN(SharedCounters shared,
                          SharedCounters::allocate(options.mechanism, queue_lanes, first_count));
  std::unique_ptr<Synchronization> result;
  switch (options.mechanism) {
    case SyncMechanism::kSvm:
    case SyncMechanism::kPinned:
      result = std::make_unique<PolledSynchronization>(options, std::move(queue_lanes), schedule,
                                                       std::move(shared));
      break;
    case SyncMechanism::kEvent:
      result = std::make_unique<EventSynchronization>(std::move(queue_lanes), schedule,
                                                      std::move(shared));
      break;
    case SyncMechanism::kFinish:
      result = std::make_unique<FinishSynchronization>(std::move(queue_lanes), schedule,
                                                       std::move(shared));
      break;
    case SyncMechanism::kAuto:
      return internal_error("no mechanism has been chosen");
  }
  return result;
}

Status check_mechanism(SyncMechanism mechanism, const std::vector<QueueLane*>& queue_lanes) {
  for (QueueLane* lane : queue_lanes) {
    if (!lane) continue;
    Status passed;
    if (mechanism == SyncMechanism::kSvm) {
      const SharedMemoryKind kind = lane->shared_memory();
      if (kind != SharedMemoryKind::kFineAtomics) {
        return unsupported(fmt::format("lane {} has {}; polling counters needs {}",
                                       lane->info().name, to_string(kind),
                                       to_string(SharedMemoryKind::kFineAtomics)));
      }
      passed = lane->self_test();
    } else if (mechanism == SyncMechanism::kPinned) {
      passed = lane->pinned_self_test();
    }
    if (!passed.ok()) {
      return unsupported(
          fmt::format("lane {} failed the self-test: {}", lane->info().name, passed.message()));
    }
  }
  return {};
}

const char* to_string(SyncMechanism mechanism) {
  switch (mechanism) {
    case SyncMechanism::kAuto:
      return "auto";
    case SyncMechanism::kSvm:
      return "svm";
    case SyncMechanism::kEvent:
      return "event";
    case SyncMechanism::kPinned:
      return "pinned";
    case SyncMechanism::kFinish:
      return "finish";
  }
  return "unknown";
}

}  // namespace tandem
