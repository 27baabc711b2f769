#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/guarded.h"
#include "support/log.h"

namespace tandem {

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
  progress_ = std::vector<HostProgress>(lanes);
  TANDEM_RETURN_IF_ERROR(make_sync(options_.sync.mechanism));
  const BindOptions options{options_.programs, options_.keep_all};
  TANDEM_ASSIGN_OR_RETURN(lanes_, bind_lanes(graph_, schedule_, bindings, *crew_, options));
  assign_crewmen();
  return {};
}

void Executor::assign_crewmen() {
  for (size_t l = 0; l < lanes_.size(); ++l) {
    if (lanes_[l].slices.empty()) continue;
    const auto lane = static_cast<int>(l);
    WorkerThread* thread = &crew_->thread(lane);
    auto crewman = std::find_if(crewmen_.begin(), crewmen_.end(),
                                [&](const Crewman& c) { return c.thread == thread; });
    if (crewman == crewmen_.end()) crewman = crewmen_.insert(crewmen_.end(), Crewman{thread, {}});
    if (QueueLane* queue = crew_->queue_lane(lane)) {
      crewman->queues.emplace_back(graph_, lane, lanes_[l], *queue);
    } else {
      crewman->host_lane = lane;
    }
  }
}

Status Executor::make_sync(SyncMechanism mechanism) {
  SyncOptions options = options_.sync;
  options.mechanism = mechanism;
  std::vector<QueueLane*> queue_lanes;
  for (size_t lane = 0; lane < crew_->lanes().size(); ++lane) {
    queue_lanes.push_back(crew_->queue_lane(static_cast<int>(lane)));
  }
  TANDEM_ASSIGN_OR_RETURN(sync_, make_synchronization(options, std::move(queue_lanes), schedule_,
                                                      options_.first_count));
  options_.sync = options;
  return {};
}

std::vector<std::shared_ptr<LaneProgram>> Executor::programs() const {
  std::vector<std::shared_ptr<LaneProgram>> programs;
  for (const BoundLane& lane : lanes_) programs.push_back(lane.program);
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
  TANDEM_RETURN_IF_ERROR(acquire_lanes(cancelled));
  prepare();
  start_crew(cancelled);
  await_crew();
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

// Idle, and, if the run is to be recorded, recording.
Status Executor::acquire_lanes(const std::atomic<bool>* cancelled) {
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
  return {};
}

void Executor::start_crew(const std::atomic<bool>* cancelled) {
  sync_->begin(deadline_);
  for (HostProgress& lane : progress_) {
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
  for (Crewman& crewman : crewmen_) {
    for (QueueFeeder& queue : crewman.queues) queue.begin(*sync_, recording_.get());
  }
  for (Crewman& crewman : crewmen_) {
    crewman.thread->post([this, &crewman] { serve(crewman); });
  }
}

// Until they are done; or until the deadline, and then as long as the grace is.
void Executor::await_crew() {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return working_ == 0; };
  if (!idle_.wait_until(lock, deadline_, idle)) {
    lock.unlock();
    expire();
    lock.lock();
    idle_.wait_until(lock, Clock::now() + options_.drain_grace, idle);
  }
  running_ = false;
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
