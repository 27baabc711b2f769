#include "cli/schedule_trial.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"

namespace tandem::cli {
namespace {

constexpr const char* kStrategies[] = {"inter_heft", "inter_lookahead", "inter",
                                       "intra",      "chain",           "joint"};
// Two sums of the same times, in another order.
constexpr double kRounding = 1e-9;

Status run_strategies(const ModeTables& tables, const SearchOptions& options, ScheduleTrial* trial,
                      ModeSchedule* joint) {
  for (const char* strategy : kStrategies) {
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ModeScheduler> scheduler,
                            make_mode_scheduler(strategy));
    SearchReport report;
    TANDEM_ASSIGN_OR_RETURN(ModeSchedule schedule, scheduler->schedule(tables, options, &report));
    TANDEM_RETURN_IF_ERROR(check_mode_schedule(tables.problem, schedule));
    trial->makespans_us[strategy] = evaluate(tables, schedule).makespan_us;
    if (std::string_view(strategy) != "joint") continue;
    trial->search_ms = report.ms;
    *joint = std::move(schedule);
  }
  double single = 0;
  for (int lane = 0; lane < tables.lanes; ++lane) {
    const double us = evaluate(tables, single_lane_modes(tables, lane)).makespan_us;
    single = lane == 0 ? us : std::min(single, us);
  }
  trial->makespans_us["single"] = single;
  return {};
}

Status branch_and_bound(const ModeTables& tables, double budget_ms, ScheduleTrial* trial) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ModeScheduler> exact, make_mode_scheduler("exact"));
  SearchOptions options;
  options.budget_ms = budget_ms;
  const StatusOr<ModeSchedule> schedule = exact->schedule(tables, options, nullptr);
  if (schedule.ok()) {
    TANDEM_RETURN_IF_ERROR(check_mode_schedule(tables.problem, *schedule));
    trial->branch_and_bound_us = evaluate(tables, *schedule).makespan_us;
    return {};
  }
  if (schedule.status().code() == StatusCode::kResourceExhausted) return {};
  return schedule.status();
}

// What is proven must not be contradicted by what was found.
Status check_proofs(const ScheduleTrial& trial) {
  if (!trial.branch_and_bound_us) return {};
  const double proven = *trial.branch_and_bound_us;
  double best = trial.joint_us();
  if (trial.referee && trial.referee->schedule) best = std::min(best, trial.referee->makespan_us);
  if (best < proven * (1 - kRounding)) {
    return internal_error(
        fmt::format("{}: branch and bound calls {:.3f} us the optimum, and there is a schedule of "
                    "{:.3f} us",
                    trial.name, proven, best));
  }
  if (trial.referee && trial.referee->bound_us > proven * (1 + kRounding)) {
    return internal_error(fmt::format(
        "{}: branch and bound found a schedule of {:.3f} us, below the referee's bound of {:.3f}",
        trial.name, proven, trial.referee->bound_us));
  }
  return {};
}

}  // namespace

bool ScheduleTrial::proven() const {
  return branch_and_bound_us.has_value() || (referee && referee->is_optimal) ||
         best_us() <= lower_bound_us * (1 + kRounding);
}

double ScheduleTrial::best_us() const {
  double best = joint_us();
  for (const auto& [strategy, us] : makespans_us) best = std::min(best, us);
  if (branch_and_bound_us) best = std::min(best, *branch_and_bound_us);
  if (referee && referee->schedule) best = std::min(best, referee->makespan_us);
  return best;
}

bool ScheduleTrial::joint_never_worse() const {
  return std::all_of(makespans_us.begin(), makespans_us.end(), [&](const auto& entry) {
    return joint_us() <= entry.second * (1 + kRounding);
  });
}

StatusOr<ScheduleTrial> try_schedulers(const std::string& kind, const ModeProblem& problem,
                                       const TrialOptions& options, Referee* referee) {
  const ModeTables tables(problem);
  ScheduleTrial trial;
  trial.name = problem.name;
  trial.kind = kind;
  trial.operators = tables.operators;
  trial.lanes = tables.lanes;
  ModeSchedule joint;
  TANDEM_RETURN_IF_ERROR(run_strategies(tables, options.search, &trial, &joint));
  trial.lower_bound_us = tandem::lower_bound_us(tables);
  TANDEM_RETURN_IF_ERROR(branch_and_bound(tables, options.exact_ms, &trial));
  if (referee) {
    TANDEM_ASSIGN_OR_RETURN(trial.referee, referee->judge(tables, joint));
    trial.lower_bound_us = std::max(trial.lower_bound_us, trial.referee->bound_us);
  }
  TANDEM_RETURN_IF_ERROR(check_proofs(trial));
  return trial;
}

nlohmann::json to_json(const ScheduleTrial& trial) {
  nlohmann::json result = {{"name", trial.name},
                           {"kind", trial.kind},
                           {"operators", trial.operators},
                           {"lanes", trial.lanes},
                           {"exact_us", trial.best_us()},
                           {"proven", trial.proven()},
                           {"bound_us", trial.bound_us()},
                           {"gap", trial.gap()},
                           {"gap_to_best", trial.joint_us() / trial.best_us() - 1},
                           {"search_ms", trial.search_ms},
                           {"joint_never_worse", trial.joint_never_worse()}};
  for (const auto& [strategy, us] : trial.makespans_us) result[strategy + "_us"] = us;
  result["branch_and_bound_us"] =
      trial.branch_and_bound_us ? nlohmann::json(*trial.branch_and_bound_us) : nlohmann::json();
  if (trial.referee) {
    result["cp_sat"] = {{"optimal", trial.referee->is_optimal},
                        {"bound_us", trial.referee->bound_us},
                        {"seconds", trial.referee->seconds}};
    result["cp_sat"]["makespan_us"] =
        trial.referee->schedule ? nlohmann::json(trial.referee->makespan_us) : nlohmann::json();
  }
  return result;
}

}  // namespace tandem::cli
