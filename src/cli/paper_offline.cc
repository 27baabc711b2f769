#include "cli/paper_offline.h"

#include <algorithm>
#include <utility>

#include "cli/bench_problems.h"
#include "schedule/evaluator.h"
#include "schedule/intra.h"
#include "schedule/mode_builder.h"
#include "schedule/mode_scheduler.h"

namespace tandem::cli {

StatusOr<OfflineResult> solve_offline(const Problem& problem, const std::string& name,
                                      Referee& referee) {
  TANDEM_ASSIGN_OR_RETURN(const Schedule intra, IntraScheduler().schedule(problem));
  ModeOptions options;
  options.partitions.push_back(&intra);
  TANDEM_ASSIGN_OR_RETURN(ModeProblem modes, build_mode_problem(problem, options));
  modes.name = name;
  remove_contention(&modes);
  const ModeTables tables(modes);
  TANDEM_ASSIGN_OR_RETURN(const auto joint, make_mode_scheduler("joint"));
  TANDEM_ASSIGN_OR_RETURN(ModeSchedule best, joint->schedule(tables, {}, nullptr));
  OfflineResult result;
  result.joint_us = result.best_us = evaluate(tables, best).makespan_us;
  TANDEM_ASSIGN_OR_RETURN(Referee::Verdict verdict, referee.judge(tables, best));
  if (verdict.schedule && verdict.makespan_us < result.best_us) {
    best = *std::move(verdict.schedule);
    result.best_us = verdict.makespan_us;
  }
  result.bound_us = std::max(verdict.bound_us, lower_bound_us(tables));
  result.is_optimal = verdict.is_optimal;
  result.seconds = verdict.seconds;
  TANDEM_ASSIGN_OR_RETURN(result.schedule, to_schedule(*problem.graph, modes, best, "offline"));
  return result;
}

nlohmann::json to_json(const OfflineResult& result) {
  return {{"proven", result.is_optimal},
          {"joint_us", result.joint_us},
          {"best_us", result.best_us},
          {"bound_us", result.bound_us},
          {"seconds", result.seconds}};
}

}  // namespace tandem::cli
