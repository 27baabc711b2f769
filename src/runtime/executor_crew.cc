// What the threads of the crew do in an executor's run.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/executor.h"
#include "support/backoff.h"
#include "support/guarded.h"

namespace tandem {

void Executor::open_gate() {
  if (at_gate_.fetch_add(1) + 1 == static_cast<int>(crewmen_.size())) {
    started_ = Clock::now();
    gate_open_.store(true, std::memory_order_release);
    return;
  }
  for (Backoff backoff; !gate_open_.load(std::memory_order_acquire);) backoff.pause();
}

void Executor::serve(Crewman& crewman) {
  open_gate();
  {
    const bool on_host_lane = crewman.host_lane != kNone && !crewman.queues.empty();
    const RecordedSpan span(on_host_lane ? recording_.get() : nullptr, crewman.host_lane,
                            SpanKind::kFeed, kNone);
    feed_queues(crewman);
  }
  for (const QueueFeeder& queue : crewman.queues) sync_->release(queue.lane());
  Clock::time_point finished = started_;
  if (crewman.host_lane != kNone && !sync_->aborted()) {
    const int lane = crewman.host_lane;
    if (Status done = compute(crewman); !done.ok()) fail(lane, std::move(done));
    progress_[lane].phase.store(Phase::kDone, std::memory_order_relaxed);
    finished = Clock::now();
  }
  if (Status fed = feed_to_the_end(crewman); !fed.ok()) {
    fail(crewman.queues.front().lane(), std::move(fed));
  }
  for (const QueueFeeder& queue : crewman.queues) {
    if (sync_->aborted()) break;
    if (Status ended = sync_->wait_for_end(queue.lane()); !ended.ok()) {
      fail(queue.lane(), ended.with_context("waiting for its last slice"));
    }
    finished = Clock::now();
  }
  for (QueueFeeder& queue : crewman.queues) finish_queue(queue);
  std::lock_guard lock(mutex_);
  finished_ = std::max(finished_, finished);
  if (--working_ == 0) idle_.notify_all();
}

bool Executor::feed_queues(Crewman& crewman) {
  bool progress = false;
  for (QueueFeeder& queue : crewman.queues) {
    const size_t before = queue.fed();
    if (Status fed = guarded([&] { return queue.feed(); }); !fed.ok()) {
      fail(queue.lane(), std::move(fed));
    }
    progress = progress || queue.fed() > before;
  }
  return progress;
}

bool Executor::all_fed(const Crewman& crewman) {
  return std::all_of(crewman.queues.begin(), crewman.queues.end(),
                     [](const QueueFeeder& queue) { return queue.all_fed(); });
}

Status Executor::feed_to_the_end(Crewman& crewman) {
  for (Backoff backoff; !all_fed(crewman) && !sync_->aborted();) {
    if (feed_queues(crewman)) {
      backoff.reset();
    } else {
      TANDEM_RETURN_IF_ERROR(sync_->pause(&backoff));
    }
  }
  return {};
}

Status Executor::compute(Crewman& crewman) {
  const int lane = crewman.host_lane;
  HostProgress& progress = progress_[lane];
  for (size_t i = 0; i < lanes_[lane].slices.size(); ++i) {
    progress.at.store(static_cast<int>(i), std::memory_order_relaxed);
    progress.phase.store(Phase::kWaiting, std::memory_order_relaxed);
    // Before queues are fed on: with `finish`, a wait is for all that they have been fed.
    TANDEM_RETURN_IF_ERROR(wait_before(crewman, i));
    if (!all_fed(crewman)) feed_queues(crewman);
    if (sync_->aborted()) return cancelled("the run was aborted");
    progress.phase.store(Phase::kComputing, std::memory_order_relaxed);
    if (Status launched = launch(lane, i); !launched.ok()) {
      return launched.with_context(to_string(graph_, lanes_[lane].slices[i].slice));
    }
    sync_->signal(lane, static_cast<int>(i) + 1);
  }
  return {};
}

// Of a slice of the thread's host lane: its waits.
Status Executor::wait_before(Crewman& crewman, size_t index) {
  const int lane = crewman.host_lane;
  const auto slice = static_cast<int>(index);
  for (const Wait& awaited : lanes_[lane].slices[index].waits) {
    const RecordedSpan span(recording_.get(), lane, SpanKind::kWait, slice, awaited);
    if (Status waited = guarded([&] { return wait(crewman, awaited); }); !waited.ok()) {
      return waited.with_context(fmt::format("waiting for {} before {}",
                                             name_of(awaited.lane, awaited.count - 1),
                                             name_of(lane, slice)));
    }
  }
  return {};
}

// Another lane's progress may depend on queues that this thread has yet to feed.
Status Executor::wait(Crewman& crewman, const Wait& wait) {
  for (Backoff backoff; !all_fed(crewman);) {
    TANDEM_ASSIGN_OR_RETURN(const bool passed, sync_->passed(wait));
    if (passed) return sync_->aborted() ? cancelled("the run was aborted") : Status();
    if (feed_queues(crewman)) {
      backoff.reset();
    } else {
      TANDEM_RETURN_IF_ERROR(sync_->pause(&backoff));
    }
  }
  return sync_->wait(wait);
}

// Of a host lane. The recorded time ends before the others are told.
Status Executor::launch(int lane, size_t index) {
  const RecordedSpan span(recording_.get(), lane, SpanKind::kSlice, static_cast<int>(index));
  return guarded([&] { return lanes_[lane].slices[index].task->launch(); });
}

// Leaves the queue empty, whatever happened.
void Executor::finish_queue(QueueFeeder& queue) {
  while (true) {
    const Status drained = queue.drain(Clock::now() + options_.drain_grace);
    if (drained.ok()) return;
    fail(queue.lane(), drained.with_context("draining its queue"));
    // Anything but a late queue is an error of the device, after which nothing runs on it.
    if (drained.code() != StatusCode::kDeadlineExceeded) return;
  }
}

}  // namespace tandem
