#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/backoff.h"
#include "support/guarded.h"
#include "support/log.h"

namespace tandem {
namespace {

// After a good run: the queue is empty, or soon will be, and only needs to be seen so. Asks the
// driver again and again, as EventSynchronization does.
Status drain_by_asking(QueueLane& queue, Clock::time_point deadline) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> end, queue.enqueue_device_event());
  TANDEM_RETURN_IF_ERROR(queue.flush());
  for (Backoff backoff;;) {
    TANDEM_ASSIGN_OR_RETURN(const bool passed, end->passed());
    if (passed) return {};
    if (Clock::now() >= deadline) {
      return deadline_exceeded(
          fmt::format("{}: the queue did not get to its end in time", queue.info().name));
    }
    backoff.pause();
  }
}

}  // namespace

StatusOr<std::unique_ptr<Executor>> Executor::create(const Graph& graph, const Schedule& schedule,
                                                     const TensorBindings& bindings,
                                                     std::shared_ptr<LaneCrew> crew,
                                                     const ExecutorOptions& options) {
  std::unique_ptr<Executor> executor(new Executor(graph, std::move(crew), options));
  TANDEM_RETURN_IF_ERROR(executor->bind(schedule, bindings));
  return executor;
}

Executor::~Executor() {
  cancel();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return working_ == 0; });
}

Status Executor::bind(const Schedule& schedule, const TensorBindings& bindings) {
  const size_t lanes = crew_->lanes().size();
  if (schedule.lanes.size() != lanes) {
    return invalid_argument(fmt::format("the schedule is for {} lanes, and there are {}",
                                        schedule.lanes.size(), lanes));
  }
  schedule_ = schedule;
  lanes_ = std::vector<LaneState>(lanes);
  std::vector<bool> own_memory;
  for (size_t l = 0; l < lanes; ++l) {
    const auto lane = static_cast<int>(l);
    QueueLane* queue_lane = crew_->queue_lane(lane);
    own_memory.push_back(queue_lane && computes_on_own_memory(*queue_lane));
    if (schedule.lanes[l].empty()) continue;
    WorkerThread* thread = &crew_->thread(lane);
    auto crewman = std::find_if(crewmen_.begin(), crewmen_.end(),
                                [&](const Crewman& c) { return c.thread == thread; });
    if (crewman == crewmen_.end()) crewman = crewmen_.insert(crewmen_.end(), Crewman{thread, {}});
    if (queue_lane) {
      crewman->queue_lanes.push_back(lane);
    } else {
      crewman->host_lane = lane;
    }
  }

  TANDEM_RETURN_IF_ERROR(make_sync(options_.sync.mechanism));
  const Transfers transfers = plan_transfers(graph_, schedule, own_memory, options_.keep_all);
  // Each lane on its own thread, all threads at once.
  std::vector<Status> bound(lanes);
  for (size_t l = 0; l < lanes; ++l) {
    const auto lane = static_cast<int>(l);
    if (schedule.lanes[l].empty()) continue;
    crew_->thread(lane).post([&, lane] {
      bound[lane] = guarded(
          [&] { return bind_lane(lane, schedule.lanes[lane], transfers.lanes[lane], bindings); });
    });
  }
  for (const Crewman& crewman : crewmen_) crewman.thread->run([] {});
  for (size_t l = 0; l < lanes; ++l) {
    TANDEM_RETURN_IF_ERROR(bound[l].with_context("lane " + crew_->info(static_cast<int>(l)).name));
  }
  return {};
}

Status Executor::make_sync(SyncMechanism mechanism) {
  SyncOptions options = options_.sync;
  options.mechanism = mechanism;
  std::vector<QueueLane*> queue_lanes;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    queue_lanes.push_back(crew_->queue_lane(static_cast<int>(lane)));
  }
  TANDEM_ASSIGN_OR_RETURN(sync_, make_synchronization(options, std::move(queue_lanes), schedule_,
                                                      options_.first_count));
  options_.sync = options;
  return {};
}

Status Executor::bind_lane(int lane, const std::vector<ScheduledSlice>& slices,
                           const std::vector<Transfers::Around>& transfers,
                           const TensorBindings& bindings) {
  LaneState& state = lanes_[lane];
  const Clock::time_point begin = Clock::now();
  if (!options_.programs.empty()) state.program = options_.programs[lane];
  if (!state.program) {
    TANDEM_ASSIGN_OR_RETURN(state.program, crew_->lanes()[lane]->load(graph_, bindings));
  }
  for (const ScheduledSlice& scheduled : slices) {
    auto task = state.program->bind(scheduled.slice, scheduled.threads);
    if (!task.ok()) return task.status().with_context(to_string(graph_, scheduled.slice));
    Transfers::Around around;
    if (!transfers.empty()) around = transfers[state.slices.size()];
    state.slices.push_back(
        {scheduled.slice, scheduled.waits, std::move(task).value(), std::move(around)});
  }
  state.bind_us = microseconds(Clock::now() - begin);
  return {};
}

std::vector<LanePreparation> Executor::preparations() const {
  std::vector<LanePreparation> preparations;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    const LaneState& state = lanes_[l];
    if (!state.program) continue;
    const PreparationStats stats = state.program->preparation();
    LanePreparation& lane = preparations.emplace_back();
    lane.lane = crew_->info(static_cast<int>(l)).name;
    lane.compile_ms = stats.compile_us / 1000;
    lane.warm_ms = stats.warm_us / 1000;
    lane.pack_ms = state.bind_us / 1000 - lane.compile_ms - lane.warm_ms;
    lane.programs_compiled = stats.programs_compiled;
    lane.programs_cached = stats.programs_cached;
    lane.bytes = state.program->bytes();
  }
  return preparations;
}

std::vector<std::shared_ptr<LaneProgram>> Executor::programs() const {
  std::vector<std::shared_ptr<LaneProgram>> programs;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    const bool from_before = !lanes_[l].program && !options_.programs.empty();
    programs.push_back(from_before ? options_.programs[l] : lanes_[l].program);
  }
  return programs;
}

Status Executor::run(const std::function<void()>& prepare, const std::function<void()>& collect,
                     const std::atomic<bool>* cancelled) {
  deadline_ = Clock::now() + options_.deadline;
  Status result = run_once(prepare, collect, cancelled);
  if (polled_in_vain())
    result = run_without_polling(prepare, collect, cancelled, std::move(result));
  return result;
}

bool Executor::polled_in_vain() {
  std::lock_guard lock(mutex_);
  return device_gave_up_;
}

Status Executor::run_without_polling(const std::function<void()>& prepare,
                                     const std::function<void()>& collect,
                                     const std::atomic<bool>* cancelled, Status failure) {
  if (!settle(deadline_)) return failure;
  const SyncMechanism before = mechanism();
  for (const SyncMechanism next : {SyncMechanism::kEvent, SyncMechanism::kFinish}) {
    if (!make_sync(next).ok()) continue;
    log().warn(
        "a lane took longer than the {} ms for which devices poll: from now on, lanes synchronise "
        "by {} instead of {}",
        options_.sync.device_spin_limit.count(), to_string(next), to_string(before));
    return run_once(prepare, collect, cancelled);
  }
  return failure;
}

Status Executor::run_once(const std::function<void()>& prepare,
                          const std::function<void()>& collect,
                          const std::atomic<bool>* cancelled) {
  if (!settle(deadline_)) {
    return deadline_exceeded("still busy with an earlier run that was aborted: " +
                             describe_progress());
  }
  if (!lease_) {
    TANDEM_ASSIGN_OR_RETURN(LaneCrew::Lease lease, LaneCrew::acquire(crew_, deadline_, cancelled));
    lease_.emplace(std::move(lease));
  }
  if (options_.tracer && options_.tracer->wants_next()) {
    auto recording = Recording::start(*crew_, schedule_);
    if (!recording.ok()) {
      lease_.reset();
      return recording.status();
    }
    recording_ = std::move(recording).value();
  }
  prepare();

  sync_->begin(deadline_);
  for (LaneState& lane : lanes_) {
    lane.fed = 0;
    lane.at.store(0, std::memory_order_relaxed);
    lane.phase.store(Phase::kWaiting, std::memory_order_relaxed);
  }
  at_gate_.store(0);
  gate_open_.store(false);
  {
    std::lock_guard lock(mutex_);
    running_ = true;
    working_ = static_cast<int>(crewmen_.size());
    blamed_.clear();
    device_gave_up_ = false;
    // Whoever sets it from now on finds the run going on, and aborts it.
    if (cancelled && cancelled->load()) sync_->abort(tandem::cancelled("the run was cancelled"));
  }
  started_ = finished_ = Clock::now();  // stays if there is nothing to do
  // Devices wake up while threads do.
  for (const Crewman& crewman : crewmen_) {
    for (int lane : crewman.queue_lanes) {
      sync_->rouse(lane);
      if (recording_) recording_->skip_enqueued(lane);
    }
  }
  for (const Crewman& crewman : crewmen_) {
    crewman.thread->post([this, &crewman] { serve(crewman); });
  }
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return working_ == 0; };
  if (!idle_.wait_until(lock, deadline_, idle)) {
    lock.unlock();
    expire();
    lock.lock();
    idle_.wait_until(lock, Clock::now() + options_.drain_grace, idle);
  }
  running_ = false;
  lock.unlock();

  if (sync_->aborted()) expire();  // for want of a better reason, a device gave up a wait
  Status result = sync_->reason();
  if (result.ok()) {
    makespan_us_ = microseconds(finished_ - started_);
    // There may be no memory for what is collected; the lanes are given back all the same.
    result = guarded([&] {
      collect();
      return recording_ ? report_recording() : Status();
    });
  }
  settle(Clock::now());
  return result;
}

Status Executor::report_recording() {
  std::vector<bool> held_back;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    held_back.push_back(sync_->is_held_back(static_cast<int>(lane)));
  }
  TANDEM_ASSIGN_OR_RETURN(const Timeline timeline,
                          recording_->finish(held_back, started_, finished_));
  options_.tracer->recorded(schedule_, timeline);
  return {};
}

bool Executor::settle(Clock::time_point deadline) {
  if (!lease_) return true;
  {
    std::unique_lock lock(mutex_);
    if (!idle_.wait_until(lock, deadline, [this] { return working_ == 0; })) return false;
  }
  sync_->end();
  recording_.reset();
  lease_.reset();
  return true;
}

void Executor::cancel() {
  std::lock_guard lock(mutex_);
  if (running_) sync_->abort(tandem::cancelled("the run was cancelled"));
}

void Executor::open_gate() {
  if (at_gate_.fetch_add(1) + 1 == static_cast<int>(crewmen_.size())) {
    started_ = Clock::now();
    gate_open_.store(true, std::memory_order_release);
    return;
  }
  for (Backoff backoff; !gate_open_.load(std::memory_order_acquire);) backoff.pause();
}

void Executor::serve(const Crewman& crewman) {
  open_gate();
  {
    const bool on_host_lane = crewman.host_lane != kNone && !crewman.queue_lanes.empty();
    const RecordedSpan span(on_host_lane ? recording_.get() : nullptr, crewman.host_lane,
                            SpanKind::kFeed, kNone);
    feed_queues(crewman);
  }
  for (int lane : crewman.queue_lanes) sync_->release(lane);
  Clock::time_point finished = started_;
  if (crewman.host_lane != kNone && !sync_->aborted()) {
    const int lane = crewman.host_lane;
    if (Status done = compute(crewman); !done.ok()) fail(lane, std::move(done));
    lanes_[lane].phase.store(Phase::kDone, std::memory_order_relaxed);
    finished = Clock::now();
  }
  if (Status fed = feed_to_the_end(crewman); !fed.ok()) {
    fail(crewman.queue_lanes.front(), std::move(fed));
  }
  for (int lane : crewman.queue_lanes) {
    if (sync_->aborted()) break;
    if (Status ended = sync_->wait_for_end(lane); !ended.ok()) {
      fail(lane, ended.with_context("waiting for its last slice"));
    }
    finished = Clock::now();
  }
  for (int lane : crewman.queue_lanes) finish_queue(lane);
  std::lock_guard lock(mutex_);
  finished_ = std::max(finished_, finished);
  if (--working_ == 0) idle_.notify_all();
}

// Nothing here may wait for the device: until everything is flushed, the device may be waiting for
// what comes after.
Status Executor::feed(int lane) {
  QueueLane& queue = *crew_->queue_lane(lane);
  // A device starts on what it has while the rest is enqueued.
  constexpr size_t kSlicesPerFlush = 16;
  LaneState& state = lanes_[lane];
  const size_t first = state.fed;
  for (bool may = true; state.fed < state.slices.size() && !sync_->aborted(); ++state.fed) {
    const BoundSlice& slice = state.slices[state.fed];
    for (size_t w = 0; sync_->is_held_back(lane) && may && w < slice.waits.size(); ++w) {
      TANDEM_ASSIGN_OR_RETURN(may, sync_->passed(slice.waits[w]));
    }
    if (!may) break;
    if (Status enqueued = guarded([&] { return enqueue(lane, state.fed); }); !enqueued.ok()) {
      return enqueued.with_context(to_string(graph_, slice.slice));
    }
    if (state.fed % kSlicesPerFlush == 0) {
      TANDEM_RETURN_IF_ERROR(queue.flush());
      sync_->release(lane);
    }
  }
  if (state.fed == first) return {};
  TANDEM_RETURN_IF_ERROR(queue.flush());
  sync_->flushed(lane, static_cast<int>(state.fed));
  return {};
}

// One slice, with what belongs around it.
Status Executor::enqueue(int lane, size_t index) {
  LaneState& state = lanes_[lane];
  const BoundSlice& slice = state.slices[index];
  const auto note = [&](SpanKind kind, const Wait& wait) {
    if (recording_) recording_->add_enqueued(lane, kind, static_cast<int>(index), wait);
  };
  for (size_t w = 0; !sync_->is_held_back(lane) && w < slice.waits.size(); ++w) {
    TANDEM_RETURN_IF_ERROR(sync_->enqueue_wait(lane, slice.waits[w]));
    note(SpanKind::kWait, slice.waits[w]);
  }
  for (const TensorRegion& part : slice.transfers.before) {
    TANDEM_RETURN_IF_ERROR(state.program->enqueue_upload(part.tensor, part.region));
  }
  note(SpanKind::kUpload, {});
  TANDEM_RETURN_IF_ERROR(slice.task->launch());
  note(SpanKind::kSlice, {});
  for (const TensorRegion& part : slice.transfers.after) {
    TANDEM_RETURN_IF_ERROR(state.program->enqueue_download(part.tensor, part.region));
  }
  note(SpanKind::kDownload, {});
  const auto count = static_cast<int>(index) + 1;
  if (sync_->is_awaited(lane, count)) TANDEM_RETURN_IF_ERROR(sync_->enqueue_signal(lane, count));
  note(SpanKind::kSignal, {});
  return {};
}

bool Executor::feed_queues(const Crewman& crewman) {
  bool progress = false;
  for (int lane : crewman.queue_lanes) {
    const size_t before = lanes_[lane].fed;
    if (Status fed = guarded([&] { return feed(lane); }); !fed.ok()) fail(lane, std::move(fed));
    progress = progress || lanes_[lane].fed > before;
  }
  return progress;
}

bool Executor::all_fed(const Crewman& crewman) const {
  return std::all_of(crewman.queue_lanes.begin(), crewman.queue_lanes.end(),
                     [this](int lane) { return lanes_[lane].fed == lanes_[lane].slices.size(); });
}

Status Executor::feed_to_the_end(const Crewman& crewman) {
  for (Backoff backoff; !all_fed(crewman) && !sync_->aborted();) {
    if (feed_queues(crewman)) {
      backoff.reset();
    } else {
      TANDEM_RETURN_IF_ERROR(sync_->pause(&backoff));
    }
  }
  return {};
}

// Another lane's progress may depend on queues that this thread has yet to feed.
Status Executor::wait(const Crewman& crewman, const Wait& wait) {
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

Status Executor::compute(const Crewman& crewman) {
  const int lane = crewman.host_lane;
  LaneState& state = lanes_[lane];
  for (size_t i = 0; i < state.slices.size(); ++i) {
    const BoundSlice& slice = state.slices[i];
    state.at.store(static_cast<int>(i), std::memory_order_relaxed);
    state.phase.store(Phase::kWaiting, std::memory_order_relaxed);
    // Before queues are fed on: with `finish`, a wait is for all that they have been fed.
    for (const Wait& awaited : slice.waits) {
      const RecordedSpan span(recording_.get(), lane, SpanKind::kWait, static_cast<int>(i),
                              awaited);
      if (Status waited = guarded([&] { return wait(crewman, awaited); }); !waited.ok()) {
        return waited.with_context(fmt::format("waiting for {} before {}",
                                               name_of(awaited.lane, awaited.count - 1),
                                               name_of(lane, static_cast<int>(i))));
      }
    }
    if (!all_fed(crewman)) feed_queues(crewman);
    if (sync_->aborted()) return cancelled("the run was aborted");
    state.phase.store(Phase::kComputing, std::memory_order_relaxed);
    if (Status launched = launch(lane, i); !launched.ok()) {
      return launched.with_context(to_string(graph_, slice.slice));
    }
    sync_->signal(lane, static_cast<int>(i) + 1);
  }
  return {};
}

// Of a host lane. The recorded time ends before the others are told.
Status Executor::launch(int lane, size_t index) {
  const RecordedSpan span(recording_.get(), lane, SpanKind::kSlice, static_cast<int>(index));
  return guarded([&] { return lanes_[lane].slices[index].task->launch(); });
}

// Leaves the queue empty, whatever happened.
void Executor::finish_queue(int lane) {
  QueueLane& queue = *crew_->queue_lane(lane);
  while (true) {
    const Status drained = guarded([&] {
      const Clock::time_point deadline = Clock::now() + options_.drain_grace;
      const bool ask = !sync_->aborted() && computes_on_own_memory(queue);
      return ask ? drain_by_asking(queue, deadline) : queue.drain(deadline);
    });
    if (drained.ok()) return;
    fail(lane, drained.with_context("draining its queue"));
    // Anything but a late queue is an error of the device, after which nothing runs on it.
    if (drained.code() != StatusCode::kDeadlineExceeded) return;
  }
}

void Executor::fail(int lane, Status reason) {
  // A lane that stopped because the run was aborted is not the one that failed, and neither is one
  // whose wait has taken too long.
  if (sync_->aborted() || reason.code() == StatusCode::kDeadlineExceeded) return expire();
  {
    std::lock_guard lock(mutex_);
    blamed_.push_back(lane);
  }
  sync_->abort(reason.with_context("lane " + crew_->info(lane).name));
}

void Executor::expire() {
  if (!sync_->reason().ok()) return;
  // Nobody on the host has aborted the run yet.
  const bool by_device = sync_->aborted() && Clock::now() < deadline_;
  {
    std::lock_guard lock(mutex_);
    blamed_ = stalled_lanes();
    device_gave_up_ = device_gave_up_ || by_device;
  }
  const std::string what = by_device ? fmt::format("a device has polled for a lane for {} ms",
                                                   options_.sync.device_spin_limit.count())
                                     : fmt::format("a lane is late for the deadline of {} ms",
                                                   options_.deadline.count());
  sync_->abort(deadline_exceeded(fmt::format("{}: {}", what, describe_progress())));
}

}  // namespace tandem
