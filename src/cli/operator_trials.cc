#include "cli/operator_trials.h"

#include <chrono>
#include <utility>

#include "cli/random_tensor.h"
#include "fmt/format.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr int kWarmUps = 5;
constexpr double kWarmUpUs = 5000;

}  // namespace

StatusOr<std::unique_ptr<OperatorTrials>> OperatorTrials::create(std::shared_ptr<const Graph> graph,
                                                                 std::shared_ptr<LaneCrew> crew) {
  std::unique_ptr<OperatorTrials> trials(new OperatorTrials(std::move(graph), std::move(crew)));
  LaneCrew& lanes = *trials->crew_;
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(trials->crew_, Clock::now() + kPatience));
  TANDEM_ASSIGN_OR_RETURN(Arena arena, Arena::create(*trials->graph_, plan_memory(*trials->graph_),
                                                     Arena::allocator_for(lanes.lanes())));
  trials->arena_.emplace(std::move(arena));
  const TensorBindings& bindings = trials->arena_->bindings();
  for (const TensorId input : trials->graph_->inputs()) {
    const Tensor& tensor = trials->graph_->tensor(input);
    copy_to_view(random_value(tensor), bindings[input]);
  }
  trials->programs_.resize(lanes.lanes().size());
  for (size_t lane = 0; lane < lanes.lanes().size(); ++lane) {
    Status loaded;
    lanes.thread(static_cast<int>(lane)).run([&] {
      StatusOr<std::unique_ptr<LaneProgram>> program =
          lanes.lanes()[lane]->load(*trials->graph_, bindings);
      loaded = program.status();
      if (program.ok()) trials->programs_[lane] = *std::move(program);
    });
    TANDEM_RETURN_IF_ERROR(loaded);
  }
  return trials;
}

StatusOr<OperatorTrial> OperatorTrials::prepare(const std::vector<SplitPart>& parts,
                                                SyncMechanism mechanism) const {
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew_, Clock::now() + kPatience));
  OperatorTrial trial;
  trial.parts = parts;
  trial.mechanism = mechanism;
  Schedule schedule;
  schedule.lanes.resize(crew_->lanes().size());
  for (const SplitPart& part : parts) {
    schedule.lanes[part.lane].push_back({part.slice, part.threads, part.us});
  }
  TANDEM_RETURN_IF_ERROR(check_schedule(*graph_, schedule));
  ExecutorOptions options;
  options.sync.mechanism = mechanism;
  options.programs = programs_;
  TANDEM_ASSIGN_OR_RETURN(trial.executor,
                          Executor::create(*graph_, schedule, arena_->bindings(), crew_, options));
  return trial;
}

Status OperatorTrials::warm_up(OperatorTrial& trial) {
  double total_us = 0;
  for (int i = 0; i < kWarmUps && total_us < kWarmUpUs; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const double us, run(trial));
    total_us += us;
  }
  return {};
}

StatusOr<double> OperatorTrials::run(OperatorTrial& trial) {
  TANDEM_RETURN_IF_ERROR(trial.executor->run([] {}, [] {}));
  if (trial.executor->mechanism() != trial.mechanism) {
    return failed_precondition(fmt::format(
        "the machine is too busy for synchronisation by {}: a wait took too long for it",
        to_string(trial.mechanism)));
  }
  return trial.executor->makespan_us();
}

std::string describe(const Graph& graph, const LaneCrew& crew,
                     const std::vector<SplitPart>& parts) {
  if (parts.size() == 1) return crew.info(parts.front().lane).name;
  std::string text;
  for (const SplitPart& part : parts) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : " + ", crew.info(part.lane).name,
                        work_of(graph, part.slice).flops / work_of(graph, part.slice.op).flops);
  }
  return text + fmt::format(" along axis {}", parts.front().slice.axis);
}

}  // namespace tandem::cli
