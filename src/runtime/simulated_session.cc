#include "runtime/simulated_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/reference.h"
#include "runtime/memory_plan.h"
#include "runtime/planner.h"
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
  const Adaptation& adaptation() const override { return no_adaptation_; }

 private:
  bool wants_values() const { return options_.keep_all || options_.check_numerics; }
  StatusOr<Plan> make_plan();
  Status check_inputs(const std::vector<HostTensor>& inputs) const;
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
  double last_run_us_ = 0;
  uint64_t runs_ = 0;
  const std::string no_fall_back_;
  const Adaptation no_adaptation_{};
};

Status SimulatedSession::prepare() {
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew_, Clock::now() + kLeasePatience));
  TANDEM_ASSIGN_OR_RETURN(planner_, Planner::create(graph_, platform_, crew_, options_));
  TANDEM_ASSIGN_OR_RETURN(plan_, make_plan());
  TANDEM_RETURN_IF_ERROR(check_schedule(*graph_, plan_.schedule));
  times_.calibrate_ms = planner_->calibrate_ms();
  times_.schedule_ms = planner_->schedule_ms();
  memory_ = plan_memory(*graph_, plan_.schedule, {.reuse = !wants_values()}).memory;
  TANDEM_ASSIGN_OR_RETURN(const simulate::Mechanism mechanism, mechanism_of(planner_->mechanism()));
  costs_ = std::make_unique<simulate::OracleCosts>(*graph_, platform_->world().model(), mechanism);
  return {};
}

StatusOr<Plan> SimulatedSession::make_plan() {
  if (!options_.plan.empty()) return planner_->load(options_.plan);
  if (!options_.schedule) return planner_->plan(options_.strategy);
  return Plan{planner_->origin(), *options_.schedule, {}};
}

Status SimulatedSession::check_inputs(const std::vector<HostTensor>& inputs) const {
  const bool right = std::equal(inputs.begin(), inputs.end(), graph_->inputs().begin(),
                                graph_->inputs().end(), [&](const HostTensor& given, TensorId id) {
                                  return given.type == graph_->tensor(id).type &&
                                         given.dims == graph_->tensor(id).dims;
                                });
  return right ? Status()
               : invalid_argument("the inputs are not those of model " + graph_->name +
                                  ": give one for each, of its type and extents");
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

Status SimulatedSession::run(const std::vector<HostTensor>& inputs,
                             std::vector<HostTensor>* outputs) {
  TANDEM_RETURN_IF_ERROR(check_inputs(inputs));
  const sim::PlatformModel& model = platform_->world().model();
  const Problem problem = simulate::problem_of(*graph_, model, costs_.get());
  simulate::RunOptions options;
  options.seed = sim::mix(platform_->world().seed(), ++runs_) | 1;
  const simulate::SimulatedRun run =
      simulate::simulate_run(problem, model, plan_.schedule, options);
  if (options_.tracer && options_.tracer->wants_next()) {
    options_.tracer->recorded(plan_.schedule, run.timeline);
  }
  last_run_us_ = run.timeline.makespan_us;
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
  if (options.adapt) {
    return unsupported("simulated lanes keep their speeds from run to run: nothing to adapt to");
  }
  auto session =
      std::make_unique<SimulatedSession>(model, std::move(platform), std::move(crew), options);
  TANDEM_RETURN_IF_ERROR(session->prepare());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace tandem
