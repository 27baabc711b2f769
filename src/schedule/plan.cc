#include "schedule/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "schedule/intra.h"
#include "schedule/joint.h"
#include "schedule/order_evaluator.h"
#include "schedule/single_lane.h"

namespace tandem {
namespace {

bool is_single_lane(std::string_view strategy) { return strategy == "cpu" || strategy == "gpu"; }

// The modes that a schedule of the graph stands for, where the problem has them all.
std::optional<ModeSchedule> modes_of(const Graph& graph, const ModeProblem& problem,
                                     const Schedule& schedule) {
  std::vector<int> index_of(graph.operators().size(), kNone);
  const std::vector<OperatorId> launched = launched_operators(graph);
  for (size_t i = 0; i < launched.size(); ++i) index_of[launched[i]] = static_cast<int>(i);
  ModeSchedule result;
  result.modes.assign(problem.operators.size(), kNone);
  std::vector<std::vector<std::pair<int, Slice>>> parts(problem.operators.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      parts[index_of[scheduled.slice.op]].emplace_back(static_cast<int>(lane), scheduled.slice);
    }
  }
  for (size_t op = 0; op < parts.size(); ++op) {
    const std::vector<Mode>& modes = problem.operators[op].modes;
    for (size_t m = 0; m < modes.size() && result.modes[op] == kNone; ++m) {
      const bool same =
          modes[m].parts.size() == parts[op].size() &&
          std::all_of(modes[m].parts.begin(), modes[m].parts.end(), [&](const Part& part) {
            return std::find(parts[op].begin(), parts[op].end(),
                             std::pair(part.lane, part.slice)) != parts[op].end();
          });
      if (same) result.modes[op] = static_cast<int>(m);
    }
    if (result.modes[op] == kNone) return std::nullopt;
  }
  result.lanes.resize(schedule.lanes.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      const int op = index_of[scheduled.slice.op];
      const std::vector<Part>& of_mode = problem.operators[op].modes[result.modes[op]].parts;
      const auto part = std::find_if(of_mode.begin(), of_mode.end(), [&](const Part& p) {
        return p.lane == static_cast<int>(lane) && p.slice == scheduled.slice;
      });
      result.lanes[lane].push_back({op, static_cast<int>(part - of_mode.begin())});
    }
  }
  return result;
}

std::vector<std::string> stage_names(const ModeTables& tables, const SearchReport& report) {
  std::vector<std::string> names;
  for (const StageReport& stage : report.stages) {
    names.push_back(fmt::format("{} .. {}", tables.problem.operators[stage.first].name,
                                tables.problem.operators[stage.last - 1].name));
  }
  return names;
}

std::vector<OperatorChoice> explain(const Graph& graph, const ModeTables& tables,
                                    const ModeSchedule& schedule) {
  const std::vector<OperatorId> launched = launched_operators(graph);
  OrderEvaluator evaluator(tables);
  evaluator.reset(ordered(tables, schedule));
  std::vector<OperatorChoice> choices(launched.size());
  for (const auto& link : evaluator.critical_path()) choices[link.part.op].critical = true;
  for (int op = 0; op < tables.operators; ++op) {
    OperatorChoice& choice = choices[op];
    const std::vector<Mode>& modes = tables.problem.operators[op].modes;
    choice.op = launched[op];
    choice.mode = modes[schedule.modes[op]];
    for (const Part& part : choice.mode.parts) choice.us = std::max(choice.us, part.us);
    for (int mode = 0; mode < tables.mode_count(op); ++mode) {
      if (mode == schedule.modes[op]) continue;
      Change change;
      change.mode_count = 1;
      change.modes[0] = {op, mode};
      const double us = evaluator.try_change(change) - evaluator.makespan_us();
      choice.alternatives.push_back({modes[mode], us});
    }
    std::stable_sort(
        choice.alternatives.begin(), choice.alternatives.end(),
        [](const auto& a, const auto& b) { return a.makespan_change_us < b.makespan_change_us; });
  }
  return choices;
}

Evaluation evaluate_as_predicted(const ModeTables& tables, const ModeSchedule& schedule) {
  return tables.has_contention ? evaluate_with_contention(tables, schedule)
                               : evaluate(tables, schedule);
}

// The fastest lane alone.
ModeSchedule best_single_lane(const ModeTables& tables) {
  ModeSchedule best = single_lane_modes(tables, 0);
  for (int lane = 1; lane < tables.lanes; ++lane) {
    ModeSchedule other = single_lane_modes(tables, lane);
    if (evaluate(tables, other).makespan_us < evaluate(tables, best).makespan_us) {
      best = std::move(other);
    }
  }
  return best;
}

StatusOr<PlannedSchedule> plan_single_lane(const Problem& problem, const PlanOptions& options) {
  if (!options.pins.empty()) {
    return invalid_argument(
        fmt::format("strategy '{}' puts every operator on one lane; pins are for the others",
                    options.strategy));
  }
  PlannedSchedule result;
  TANDEM_ASSIGN_OR_RETURN(result.schedule,
                          SingleLaneScheduler(options.strategy == "gpu").schedule(problem));
  if (!problem.cost) return result;
  TANDEM_ASSIGN_OR_RETURN(result.evaluation, evaluate_schedule(problem, result.schedule));
  return result;
}

}  // namespace

StatusOr<Evaluation> evaluate_schedule(const Problem& problem, const Schedule& schedule) {
  TANDEM_ASSIGN_OR_RETURN(const ModeProblem modes, problem_of_schedule(problem, schedule));
  const std::optional<ModeSchedule> as_modes = modes_of(*problem.graph, modes, schedule);
  if (!as_modes) return internal_error("a schedule is not made of its own slices");
  TANDEM_RETURN_IF_ERROR(check_mode_schedule(modes, *as_modes));
  return evaluate_as_predicted(ModeTables(modes), *as_modes);
}

StatusOr<PlannedSchedule> plan(const Problem& problem, const PlanOptions& options) {
  if (is_single_lane(options.strategy)) return plan_single_lane(problem, options);
  // Before anything slow, and before costs are asked for.
  if (options.strategy != "intra") {
    TANDEM_RETURN_IF_ERROR(make_mode_scheduler(options.strategy).status());
  }
  if (!problem.cost) {
    return invalid_argument(fmt::format("strategy '{}' needs measured costs", options.strategy));
  }
  const Graph& graph = *problem.graph;
  // What `intra` chooses is more finely cut than modes are.
  std::optional<Schedule> intra;
  ModeOptions mode_options;
  mode_options.pins = options.pins;
  if (options.pins.empty() && (options.strategy == "intra" || options.strategy == "joint")) {
    TANDEM_ASSIGN_OR_RETURN(intra, IntraScheduler().divide(problem));
    mode_options.partitions.push_back(&*intra);
  }
  TANDEM_ASSIGN_OR_RETURN(const ModeProblem modes, build_mode_problem(problem, mode_options));
  const ModeTables tables(modes);
  std::optional<ModeSchedule> divided;
  if (intra) divided = modes_of(graph, modes, *intra);

  PlannedSchedule result;
  ModeSchedule chosen;
  if (options.strategy == "joint") {
    std::vector<std::pair<std::string, ModeSchedule>> starts;
    if (divided) starts.emplace_back("intra, finely cut", *divided);
    TANDEM_ASSIGN_OR_RETURN(
        chosen, JointScheduler().schedule(tables, options.search, starts, &result.search));
    result.stage_names = stage_names(tables, result.search);
  } else if (options.strategy == "intra" && divided) {
    chosen = *divided;
  } else {
    TANDEM_ASSIGN_OR_RETURN(const auto scheduler, make_mode_scheduler(options.strategy));
    TANDEM_ASSIGN_OR_RETURN(chosen, scheduler->schedule(tables, options.search, &result.search));
  }
  result.evaluation = evaluate_as_predicted(tables, chosen);
  if (options.pins.empty()) {
    const ModeSchedule alone = best_single_lane(tables);
    const Evaluation evaluation = evaluate_as_predicted(tables, alone);
    result.best_lane_us = evaluation.makespan_us;
    if (evaluation.makespan_us < result.evaluation.makespan_us) {
      chosen = alone;
      result.evaluation = evaluation;
      result.fell_back = true;
    }
  }
  TANDEM_RETURN_IF_ERROR(check_mode_schedule(modes, chosen));
  TANDEM_ASSIGN_OR_RETURN(result.schedule, to_schedule(graph, modes, chosen, options.strategy));
  if (options.explain) result.choices = explain(graph, tables, chosen);
  return result;
}

StatusOr<Pin> parse_pin(const Graph& graph, const std::vector<LaneTraits>& lanes,
                        std::string_view text) {
  // Names of operators may hold anything but names of lanes do not: the last '='.
  const size_t equals = text.rfind('=');
  const auto bad = [&](const std::string& why) {
    return invalid_argument(fmt::format(
        "pin '{}': {}; pins look like OPERATOR=LANE or OPERATOR=LANE:SHARE", text, why));
  };
  if (equals == std::string_view::npos) return bad("there is no '='");
  const std::string_view name = text.substr(0, equals);
  std::string_view lane = text.substr(equals + 1);
  Pin pin;
  if (const size_t colon = lane.rfind(':'); colon != std::string_view::npos) {
    const std::string_view share = lane.substr(colon + 1);
    lane = lane.substr(0, colon);
    const auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), pin.share);
    if (error != std::errc() || end != share.data() + share.size() || !(pin.share > 0) ||
        !(pin.share <= 1)) {
      return bad(fmt::format("'{}' is not a share above 0 and at most 1", share));
    }
  }
  std::vector<std::string> names;
  for (const LaneTraits& l : lanes) names.push_back(l.name);
  const auto found = std::find(names.begin(), names.end(), lane);
  if (found == names.end()) {
    return not_found(fmt::format("pin '{}': there is no lane '{}'; there are: {}", text, lane,
                                 fmt::join(names, ", ")));
  }
  pin.lane = static_cast<int>(found - names.begin());
  const auto& operators = graph.operators();
  const auto op = std::find_if(operators.begin(), operators.end(),
                               [&](const Operator& o) { return o.name == name; });
  if (op == operators.end()) {
    return not_found(
        fmt::format("pin '{}': the model has no operator '{}' (passes may have fused "
                    "it into another; `tandem plan --explain` lists them)",
                    text, name));
  }
  pin.op = static_cast<OperatorId>(op - operators.begin());
  if (!analyse(graph).launched[pin.op]) {
    return invalid_argument(
        fmt::format("pin '{}': that operator is never launched, its output lies "
                    "in the memory of others; pin those",
                    text));
  }
  return pin;
}

}  // namespace tandem
