#include "runtime/queue_feeder.h"

#include <fmt/format.h>

#include "support/backoff.h"
#include "support/guarded.h"

namespace tandem {

void QueueFeeder::begin(Synchronization& sync, Recording* recording) {
  sync_ = &sync;
  recording_ = recording;
  fed_ = 0;
  sync_->rouse(lane_);
  if (recording_) recording_->skip_enqueued(lane_);
}

Status QueueFeeder::feed() {
  // A device starts on what it has while the rest is enqueued.
  constexpr size_t kSlicesPerFlush = 16;
  const size_t first = fed_;
  for (; !all_fed() && !sync_->aborted(); ++fed_) {
    const BoundSlice& slice = bound_->slices[fed_];
    TANDEM_ASSIGN_OR_RETURN(const bool may, may_be_fed(slice));
    if (!may) break;
    if (Status enqueued = guarded([&] { return enqueue(fed_); }); !enqueued.ok()) {
      return enqueued.with_context(to_string(*graph_, slice.slice));
    }
    if (fed_ % kSlicesPerFlush == 0) {
      TANDEM_RETURN_IF_ERROR(queue_->flush());
      sync_->release(lane_);
    }
  }
  if (fed_ == first) return {};
  TANDEM_RETURN_IF_ERROR(queue_->flush());
  sync_->flushed(lane_, static_cast<int>(fed_));
  return {};
}

StatusOr<bool> QueueFeeder::may_be_fed(const BoundSlice& slice) const {
  if (!sync_->is_held_back(lane_)) return true;
  for (const Wait& wait : slice.waits) {
    TANDEM_ASSIGN_OR_RETURN(const bool passed, sync_->passed(wait));
    if (!passed) return false;
  }
  return true;
}

// One slice, with what belongs around it.
Status QueueFeeder::enqueue(size_t index) {
  const BoundSlice& slice = bound_->slices[index];
  const auto note = [&](SpanKind kind, const Wait& wait) {
    if (recording_) recording_->add_enqueued(lane_, kind, static_cast<int>(index), wait);
  };
  for (size_t w = 0; !sync_->is_held_back(lane_) && w < slice.waits.size(); ++w) {
    TANDEM_RETURN_IF_ERROR(sync_->enqueue_wait(lane_, slice.waits[w]));
    note(SpanKind::kWait, slice.waits[w]);
  }
  for (const TensorRegion& part : slice.transfers.before) {
    TANDEM_RETURN_IF_ERROR(bound_->program->enqueue_upload(part.tensor, part.region));
  }
  note(SpanKind::kUpload, {});
  TANDEM_RETURN_IF_ERROR(slice.task->launch());
  note(SpanKind::kSlice, {});
  for (const TensorRegion& part : slice.transfers.after) {
    TANDEM_RETURN_IF_ERROR(bound_->program->enqueue_download(part.tensor, part.region));
  }
  note(SpanKind::kDownload, {});
  const auto count = static_cast<int>(index) + 1;
  if (sync_->is_awaited(lane_, count)) TANDEM_RETURN_IF_ERROR(sync_->enqueue_signal(lane_, count));
  note(SpanKind::kSignal, {});
  return {};
}

Status QueueFeeder::drain(Clock::time_point deadline) {
  return guarded([&] {
    const bool ask = !sync_->aborted() && computes_on_own_memory(*queue_);
    return ask ? drain_by_asking(deadline) : queue_->drain(deadline);
  });
}

// After a good run: the queue is empty, or soon will be, and only needs to be seen so. Asks the
// driver again and again, as EventSynchronization does.
Status QueueFeeder::drain_by_asking(Clock::time_point deadline) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> end, queue_->enqueue_device_event());
  TANDEM_RETURN_IF_ERROR(queue_->flush());
  for (Backoff backoff;;) {
    TANDEM_ASSIGN_OR_RETURN(const bool passed, end->passed());
    if (passed) return {};
    if (Clock::now() >= deadline) {
      return deadline_exceeded(
          fmt::format("{}: the queue did not get to its end in time", queue_->info().name));
    }
    backoff.pause();
  }
}

}  // namespace tandem
