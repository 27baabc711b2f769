#include "tandem/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "runtime/adapter.h"
#include "runtime/numerics.h"
#include "runtime/planner.h"
#include "runtime/prepared_schedule.h"
#include "runtime/session_inputs.h"
#include "runtime/simulated_session.h"
#include "schedule/single_lane.h"
#include "support/guarded.h"
#include "support/log.h"
#include "support/stopwatch.h"

namespace tandem {
namespace {

// How long create() waits for lanes that another session is using.
constexpr std::chrono::seconds kLeasePatience{60};

// Later than this, a deadline would lie beyond what clocks can count.
SessionOptions with_bounded_deadline(SessionOptions options) {
  constexpr std::chrono::milliseconds kYear = std::chrono::hours(24 * 365);
  options.deadline = std::min(options.deadline, kYear);
  return options;
}

class SessionImpl final : public Session {
 public:
  SessionImpl(const Model& model, std::shared_ptr<Platform> platform,
              std::shared_ptr<LaneCrew> crew, const SessionOptions& options)
      : graph_(model.shared_graph()),
        platform_(std::move(platform)),
        crew_(std::move(crew)),
        options_(with_bounded_deadline(options)) {}
  ~SessionImpl() override;

  Status prepare();
  Status run(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs) override;
  void cancel() override;

  const Schedule& schedule() const override { return main_.schedule; }
  const Timeline& prediction() const override { return plan_.prediction; }
  Status save_plan(const std::string& path) const override;
  SyncMechanism sync() const override { return main_.executor->mechanism(); }
  const SessionTimes& times() const override { return times_; }
  double last_run_us() const override { return last_run_us_; }
  StatusOr<HostTensor> tensor(const std::string& name) const override;
  const std::string& fall_back_reason() const override { return fall_back_reason_; }
  const SessionMemory& memory() const override { return main_.plan.memory; }
  const Adaptation& adaptation() const override {
    static const Adaptation kNothing;
    return adapter_ ? adapter_->adaptation() : kNothing;
  }

 private:
  Status set_up(Schedule schedule, PreparedSchedule* prepared);
  Status bind(PreparedSchedule* prepared, std::shared_ptr<Tracer> tracer,
              std::vector<std::shared_ptr<LaneProgram>> programs);
  // Before a run that another one went well before.
  void adapt_if_due();
  Status take(Plan plan);
  Status run_on_main(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs);
  Status run_or_fall_back(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs);
  Status run_on(PreparedSchedule& prepared, const std::vector<HostTensor>& inputs,
                std::vector<HostTensor>* outputs);
  Status run_on_another_lane(const std::vector<HostTensor>& inputs,
                             std::vector<HostTensor>* outputs, const Status& failure);
  Status run_on_lane(int lane, const std::vector<HostTensor>& inputs,
                     std::vector<HostTensor>* outputs);
  StatusOr<int> best_lane_without(const std::vector<int>& blamed) const;

  const std::shared_ptr<const Graph> graph_;
  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<LaneCrew> crew_;
  const SessionOptions options_;
  std::unique_ptr<Planner> planner_;
  Plan plan_;
  SessionTimes times_;
  std::unique_ptr<Adapter> adapter_;  // null: does not adapt

  PreparedSchedule main_;
  std::vector<PreparedSchedule> single_lanes_;  // made when one is first fallen back on; by lane

  std::mutex in_run_;
  std::mutex current_mutex_;
  PreparedSchedule* current_ = nullptr;  // that runs; guarded by current_mutex_
  bool closing_ = false;                 // the destructor waits; guarded by current_mutex_
  // During this call of run(). Set before the executor is told, and cleared, under current_mutex_.
  std::atomic<bool> cancelled_ = false;

  const PreparedSchedule* last_ = nullptr;  // that ran last, successfully
  double last_run_us_ = 0;
  std::string fall_back_reason_;
};

Status SessionImpl::prepare() {
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew_, Clock::now() + kLeasePatience));
  TANDEM_ASSIGN_OR_RETURN(planner_, Planner::create(graph_, platform_, crew_, options_));
  TANDEM_ASSIGN_OR_RETURN(plan_, planner_->make_plan());
  if (options_.adapt) {
    TANDEM_ASSIGN_OR_RETURN(adapter_, Adapter::create(*planner_, options_, &plan_));
  }
  times_.calibrate_ms = planner_->calibrate_ms();
  times_.predictors_ms = planner_->predictors_ms();
  times_.schedule_ms = planner_->schedule_ms();
  return set_up(plan_.schedule, &main_);
}

Status SessionImpl::save_plan(const std::string& path) const {
  return tandem::save_plan(path, *graph_, plan_);
}

Status SessionImpl::set_up(Schedule schedule, PreparedSchedule* prepared) {
  const Stopwatch memory;
  const bool reuse = !options_.keep_all && !options_.check_numerics && !options_.adapt;
  TANDEM_ASSIGN_OR_RETURN(*prepared,
                          allocate_memory(*graph_, std::move(schedule), *crew_, {.reuse = reuse}));
  times_.memory_ms += memory.milliseconds();
  const Stopwatch stopwatch;
  std::shared_ptr<Tracer> tracer = options_.tracer;
  if (prepared == &main_ && adapter_) tracer = adapter_->tracer();
  TANDEM_RETURN_IF_ERROR(bind(prepared, std::move(tracer), {}));
  times_.bind_ms += stopwatch.milliseconds();
  if (prepared == &main_) times_.lanes = prepared->executor->preparations();
  return {};
}

Status SessionImpl::bind(PreparedSchedule* prepared, std::shared_ptr<Tracer> tracer,
                         std::vector<std::shared_ptr<LaneProgram>> programs) {
  ExecutorOptions options;
  options.sync.mechanism = main_.executor ? main_.executor->mechanism() : planner_->mechanism();
  options.sync.device_spin_limit = options_.device_spin_limit;
  options.deadline = options_.deadline;
  options.keep_all = options_.keep_all || options_.check_numerics;
  options.tracer = std::move(tracer);
  options.programs = std::move(programs);
  return prepared->bind(*graph_, crew_, options);
}

void SessionImpl::adapt_if_due() {
  if (!adapter_ || !adapter_->is_due()) return;
  const StatusOr<LaneCrew::Lease> lease =
      LaneCrew::acquire(crew_, Clock::now() + options_.deadline, &cancelled_);
  // Without it, the run will say why.
  if (!lease.ok()) return;
  adapter_->adapt(*planner_, &plan_, [this](Plan plan) { return take(std::move(plan)); });
}

// In the same memory and by the same programs, which know no schedule.
Status SessionImpl::take(Plan plan) {
  PreparedSchedule next{plan.schedule, main_.plan, main_.arena, nullptr};
  TANDEM_RETURN_IF_ERROR(bind(&next, adapter_->tracer(), main_.executor->programs()));
  last_ = nullptr;
  main_ = std::move(next);
  plan_ = std::move(plan);
  return {};
}

// A run in progress in another thread is cancelled and waited for.
SessionImpl::~SessionImpl() {
  {
    std::lock_guard lock(current_mutex_);
    closing_ = true;
    cancelled_ = true;
    if (current_) current_->executor->cancel();
  }
  std::lock_guard wait(in_run_);
}

Status SessionImpl::run(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs) {
  const std::unique_lock alone(in_run_, std::try_to_lock);
  if (!alone) return failed_precondition("another thread is in run() of this session");
  {
    std::lock_guard lock(current_mutex_);
    if (closing_) return cancelled("the session is being destroyed");
    cancelled_ = false;
  }
  return guarded([&]() -> Status {
    TANDEM_RETURN_IF_ERROR(check_inputs(*graph_, inputs));
    TANDEM_RETURN_IF_ERROR(run_or_fall_back(inputs, outputs));
    if (!options_.check_numerics) return {};
    return check_numerics(*graph_, last_->schedule, last_->arena->bindings(),
                          platform_->lane_names());
  });
}

Status SessionImpl::run_or_fall_back(const std::vector<HostTensor>& inputs,
                                     std::vector<HostTensor>* outputs) {
  fall_back_reason_.clear();
  // After a run that was aborted, lanes may still be at it.
  if (last_ == &main_) adapt_if_due();
  last_ = nullptr;
  const Status status = run_on_main(inputs, outputs);
  if (status.ok() || status.code() == StatusCode::kCancelled || !options_.fall_back) return status;
  return run_on_another_lane(inputs, outputs, status);
}

Status SessionImpl::run_on_main(const std::vector<HostTensor>& inputs,
                                std::vector<HostTensor>* outputs) {
  if (!adapter_) return run_on(main_, inputs, outputs);
  SpeedTracer& tracer = *adapter_->tracer();
  tracer.expect(&plan_.prediction);
  const Status status = run_on(main_, inputs, outputs);
  if (status.code() != StatusCode::kUnsupported || !tracer.wanted_alone()) return status;
  log().warn("the session does not adapt to its lanes' speeds: {}", status.message());
  tracer.stop();
  return run_on(main_, inputs, outputs);
}

void SessionImpl::cancel() {
  std::lock_guard lock(current_mutex_);
  cancelled_ = true;
  if (current_) current_->executor->cancel();
}

Status SessionImpl::run_on(PreparedSchedule& prepared, const std::vector<HostTensor>& inputs,
                           std::vector<HostTensor>* outputs) {
  {
    std::lock_guard lock(current_mutex_);
    if (cancelled_) return cancelled("the run was cancelled");
    current_ = &prepared;
  }
  const Status status = prepared.run(*graph_, inputs, outputs, &cancelled_);
  {
    std::lock_guard lock(current_mutex_);
    current_ = nullptr;
  }
  if (status.ok()) {
    last_ = &prepared;
    last_run_us_ = prepared.executor->makespan_us();
  }
  return status;
}

// Tries the lanes that are not to blame, the best first, until one does it.
Status SessionImpl::run_on_another_lane(const std::vector<HostTensor>& inputs,
                                        std::vector<HostTensor>* outputs, const Status& failure) {
  std::vector<int> given_up = main_.executor->blamed_lanes();
  std::string failures = failure.message();
  while (true) {
    const StatusOr<int> lane = best_lane_without(given_up);
    if (!lane.ok()) return Status(failure.code(), lane.status().message() + ": " + failures);
    const Status again = run_on_lane(*lane, inputs, outputs);
    const std::string& name = crew_->info(*lane).name;
    if (again.ok()) {
      fall_back_reason_ =
          fmt::format("everything ran on lane {}, because of an error: {}", name, failures);
      log().warn("{}", fall_back_reason_);
      return {};
    }
    if (again.code() == StatusCode::kCancelled) return again;
    failures += fmt::format("; falling back on lane {}: {}", name, again.message());
    given_up.push_back(*lane);
  }
}

Status SessionImpl::run_on_lane(int lane, const std::vector<HostTensor>& inputs,
                                std::vector<HostTensor>* outputs) {
  if (single_lanes_.empty()) single_lanes_.resize(crew_->lanes().size());
  PreparedSchedule& prepared = single_lanes_[lane];
  if (!prepared.executor) {
    // The run that failed may still have the lanes, because one of them has not come back.
    TANDEM_ASSIGN_OR_RETURN(
        const LaneCrew::Lease lease,
        LaneCrew::acquire(crew_, Clock::now() + options_.deadline, &cancelled_));
    if (Status ready = set_up(single_lane_schedule(planner_->problem(), lane), &prepared);
        !ready.ok()) {
      prepared = {};
      return ready;
    }
  }
  return run_on(prepared, inputs, outputs);
}

// The fastest by calibration, or else the first.
StatusOr<int> SessionImpl::best_lane_without(const std::vector<int>& blamed) const {
  const Problem problem = planner_->problem();
  int best = kNone;
  for (int lane = 0; lane < static_cast<int>(crew_->lanes().size()); ++lane) {
    if (std::find(blamed.begin(), blamed.end(), lane) != blamed.end()) continue;
    if (best == kNone ||
        (problem.cost && single_lane_us(problem, lane) < single_lane_us(problem, best))) {
      best = lane;
    }
  }
  if (best == kNone) return failed_precondition("no lane is left to fall back on");
  return best;
}

StatusOr<HostTensor> SessionImpl::tensor(const std::string& name) const {
  const auto found = std::find_if(graph_->tensors().begin(), graph_->tensors().end(),
                                  [&](const Tensor& t) { return t.name == name; });
  if (found == graph_->tensors().end()) {
    return not_found(fmt::format("model {} has no tensor {} (passes may have fused it away)",
                                 graph_->name, name));
  }
  if (found->kind == TensorKind::kConstant) return *found->value;
  if (!last_) return failed_precondition("the last run did not succeed, or there was none");
  const auto id = static_cast<TensorId>(found - graph_->tensors().begin());
  if (!last_->plan.survives[id]) {
    return failed_precondition(fmt::format(
        "the memory of {} was reused in the run; create the session with keep_all", name));
  }
  return guarded([&]() -> StatusOr<HostTensor> {
    HostTensor value(found->type, found->dims);
    copy_from_view(last_->arena->bindings()[id], value);
    return value;
  });
}

}  // namespace

StatusOr<std::unique_ptr<Session>> Session::create(const Model& model,
                                                   std::shared_ptr<Platform> platform,
                                                   const SessionOptions& options) {
  if (!platform) return invalid_argument("there is no platform");
  return guarded([&]() -> StatusOr<std::unique_ptr<Session>> {
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
    if (auto simulated = std::dynamic_pointer_cast<SimulatedPlatform>(platform)) {
      StatusOr<std::unique_ptr<Session>> session =
          make_simulated_session(model, std::move(simulated), std::move(crew), options);
      if (!session.ok()) return session.status().with_context("model " + model.name());
      return session;
    }
    auto session =
        std::make_unique<SessionImpl>(model, std::move(platform), std::move(crew), options);
    const Status ready = guarded([&] { return session->prepare(); });
    TANDEM_RETURN_IF_ERROR(ready.with_context("model " + model.name()));
    return std::unique_ptr<Session>(std::move(session));
  });
}

StatusOr<std::unique_ptr<Session>> Session::create(const Model& model,
                                                   const SessionOptions& options) {
  static std::mutex mutex;
  // Never destroyed: drivers do not like to be torn down while the process exits.
  static auto* const platform = new std::shared_ptr<Platform>;
  {
    std::lock_guard lock(mutex);
    if (!*platform) {
      TANDEM_ASSIGN_OR_RETURN(*platform, Platform::create());
    }
  }
  return create(model, *platform, options);
}

}  // namespace tandem
