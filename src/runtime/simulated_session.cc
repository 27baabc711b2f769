#include "runtime/simulated_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/reference.h"
#include "runtime/adapter.h"
#include "runtime/memory_plan.h"
#include "runtime/planner.h"
#include "runtime/session_inputs.h"
#include "simulate/oracle_costs.h"
#include "simulate/simulated_run.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kLeasePatience{60};

StatusOr<simulate::Mechanism> mechanism_of(SyncMechanism mechanism) {
  switch (mechanism) {
    case SyncMechanism::kSvm:
      return simulate::Mechanism::kSvm;
    case SyncMechanism::kEvent:
      return simulate::Mechanism::kEvent;
    case SyncMechanism::kFinish:
      return simulate::Mechanism::kFinish;
    default:
      break;
  }
  return unsupported(fmt::format("simulated lanes do not synchronise by {}", to_string(mechanism)));
}

class SimulatedSession final : public Session {
 public:
  SimulatedSession(const Model& model, std::shared_ptr<SimulatedPlatform> platform,
                   std::shared_ptr<LaneCrew> crew, const SessionOptions& options)
      : graph_(model.shared_graph()),
        platform_(std::move(platform)),
        crew_(std::move(crew)),
        options_(options) {}

  Status prepare();
  Status run(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs) override;
  // A run takes no time that could be cut short.
  void cancel() override {}

  const Schedule& schedule() const override { return plan_.schedule; }
  const Timeline& prediction() const override { return plan_.prediction; }
  Status save_plan(const std::string& path) const override {
    return tandem::save_plan(path, *graph_, plan_);
  }
  SyncMechanism sync() const override { return planner_->mechanism(); }
  const SessionTimes& times() const override { return times_; }
  double last_run_us() const override { return last_run_us_; }
  StatusOr<HostTensor> tensor(const std::string& name) const override;
  const std::string& fall_back_reason() const override { return no_fall_back_; }
  const SessionMemory& memory() const override { return memory_; }
  const Adaptation& adaptation() const override {
    static const Adaptation kNothing;
    return adapter_ ? adapter_->adaptation() : kNothing;
  }

 private:
  // The clock that runs pass on; planning takes no time there.
  Clock::time_point now() const {
    const std::chrono::duration<double, std::micro> passed(passed_us_);
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(passed));
  }
  void adapt_if_due();
  simulate::SimulatedRun simulate_next();
  bool wants_values() const { return options_.keep_all || options_.check_numerics; }
  HostTensor value_of(TensorId id) const;

  const std::shared_ptr<const Graph> graph_;
  const std::shared_ptr<SimulatedPlatform> platform_;
  const std::shared_ptr<LaneCrew> crew_;
  const SessionOptions options_;
  std::unique_ptr<Planner> planner_;
  Plan plan_;
  SessionTimes times_;
  SessionMemory memory_;
  std::unique_ptr<simulate::OracleCosts> costs_;
  std::vector<ReferenceTensor> values_;  // of the last run, if anybody wants them
  std::unique_ptr<Adapter> adapter_;     // null: does not adapt
  double last_run_us_ = 0;
  double passed_us_ = 0;  // in all runs
  uint64_t runs_ = 0;
  const std::string no_fall_back_;
};

Status SimulatedSession::prepare() {
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew_, Clock::now() + kLeasePatience));
  TANDEM_ASSIGN_OR_RETURN(planner_, Planner::create(graph_, platform_, crew_, options_));
  TANDEM_ASSIGN_OR_RETURN(plan_, planner_->make_plan());
  TANDEM_RETURN_IF_ERROR(check_schedule(*graph_, plan_.schedule));
  if (options_.adapt) {
    TANDEM_ASSIGN_OR_RETURN(adapter_,
                            Adapter::create(*planner_, options_, &plan_, [this] { return now(); }));
  }
  times_.calibrate_ms = planner_->calibrate_ms();
  times_.predictors_ms = planner_->predictors_ms();
  times_.schedule_ms = planner_->schedule_ms();
  memory_ = plan_memory(*graph_, plan_.schedule, {.reuse = !wants_values() && !adapter_}).memory;
  TANDEM_ASSIGN_OR_RETURN(const simulate::Mechanism mechanism, mechanism_of(planner_->mechanism()));
  costs_ = std::make_unique<simulate::OracleCosts>(*graph_, platform_->world().model(), mechanism);
  return {};
}

HostTensor SimulatedSession::value_of(TensorId id) const {
  const Tensor& tensor = graph_->tensor(id);
  HostTensor value(tensor.type, tensor.dims);
  if (values_.empty()) return value;
  const std::vector<double>& from = values_[id].values;
  if (tensor.type == DataType::kFloat32) {
    std::transform(from.begin(), from.end(), value.data<float>(),
                   [](double x) { return static_cast<float>(x); });
  } else {
    std::transform(from.begin(), from.end(), value.data<int64_t>(),
                   [](double x) { return static_cast<int64_t>(x); });
  }
  return value;
}

void SimulatedSession::adapt_if_due() {
  if (!adapter_ || !adapter_->is_due()) return;
  const StatusOr<LaneCrew::Lease> lease = LaneCrew::acquire(crew_, Clock::now() + kLeasePatience);
  if (!lease.ok()) return;
  adapter_->adapt(*planner_, &plan_, [this](Plan plan) {
    TANDEM_RETURN_IF_ERROR(check_schedule(*graph_, plan.schedule));
    plan_ = std::move(plan);
    return Status();
  });
}

simulate::SimulatedRun SimulatedSession::simulate_next() {
  sim::World& world = platform_->world();
  const Problem problem = simulate::problem_of(*graph_, world.model(), costs_.get());
  const sim::Clocks clocks = world.next_inference();
  simulate::RunOptions options;
  options.seed = sim::mix(world.seed(), ++runs_) | 1;
  options.cpu_clock = clocks.cpu;
  options.gpu_clock = clocks.gpu;
  return simulate::simulate_run(problem, world.model(), plan_.schedule, options);
}

Status SimulatedSession::run(const std::vector<HostTensor>& inputs,
                             std::vector<HostTensor>* outputs) {
  TANDEM_RETURN_IF_ERROR(check_inputs(*graph_, inputs));
  adapt_if_due();
  if (adapter_) adapter_->tracer()->expect(&plan_.prediction);
  Tracer* const tracer = adapter_ ? adapter_->tracer().get() : options_.tracer.get();
  const bool recorded = tracer && tracer->wants_next();
  const simulate::SimulatedRun run = simulate_next();
  if (recorded) tracer->recorded(plan_.schedule, run.timeline);
  last_run_us_ = run.timeline.makespan_us;
  passed_us_ += last_run_us_;
  if (wants_values()) values_ = reference(*graph_, inputs);
  outputs->clear();
  for (const TensorId id : graph_->outputs()) outputs->push_back(value_of(id));
  return {};
}

StatusOr<HostTensor> SimulatedSession::tensor(const std::string& name) const {
  if (values_.empty()) {
    return failed_precondition(
        "simulated lanes compute no values; create the session with keep_all, and the reference "
        "does");
  }
  for (size_t id = 0; id < graph_->tensors().size(); ++id) {
    if (graph_->tensors()[id].name == name) return value_of(static_cast<TensorId>(id));
  }
  return not_found(fmt::format("model {} has no tensor {}", graph_->name, name));
}

}  // namespace

StatusOr<std::unique_ptr<Session>> make_simulated_session(
    const Model& model, std::shared_ptr<SimulatedPlatform> platform, std::shared_ptr<LaneCrew> crew,
    const SessionOptions& options) {
  auto session =
      std::make_unique<SimulatedSession>(model, std::move(platform), std::move(crew), options);
  TANDEM_RETURN_IF_ERROR(session->prepare());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace tandem
