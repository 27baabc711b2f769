// `tandem plan`: what each strategy is predicted to take, and a plan on disk.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/conditions.h"
#include "cli/distinct_files.h"
#include "cli/flags.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "graph/graph.h"
#include "report/explain.h"
#include "report/gantt.h"
#include "runtime/planner.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string model;
  LoadFlags load;
  PlatformFlags platform;
  CostFlags costs;
  SearchFlags search;
  std::string strategy = SessionOptions().strategy;
  std::string output;
  bool explain = false;
  bool json = false;
};

// What came of one strategy.
struct Considered {
  std::string strategy;
  double search_ms = 0;
  std::optional<Plan> plan{};
  std::string why_not{};  // if there is none
};

StatusOr<std::vector<Considered>> plan_all(Planner& planner, const std::string& chosen,
                                           bool pinned) {
  std::vector<Considered> all;
  for (const std::string_view name : scheduler_names()) {
    if (pinned && name != chosen && (name == "cpu" || name == "gpu")) continue;
    // A proof may take many times as long as all others together.
    if (name == "exact" && name != chosen) continue;
    Considered& considered = all.emplace_back();
    considered.strategy = name;
    const Stopwatch stopwatch;
    StatusOr<Plan> plan = planner.plan(considered.strategy);
    considered.search_ms = stopwatch.milliseconds();
    if (plan.ok()) {
      considered.plan = std::move(plan).value();
      continue;
    }
    // No lane of that kind, or too large a model for that strategy.
    const StatusCode code = plan.status().code();
    if ((code != StatusCode::kFailedPrecondition && code != StatusCode::kResourceExhausted) ||
        name == chosen) {
      return plan.status().with_context("strategy " + considered.strategy);
    }
    considered.why_not =
        code == StatusCode::kFailedPrecondition ? "has no lane here" : "is for smaller models";
  }
  return all;
}

int terminal_width() {
  constexpr int kDefault = 100;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns ? std::atoi(columns) : 0;
  return width > 0 ? width : kDefault;
}

nlohmann::json explanation_json(const Problem& problem,
                                const std::vector<ExplainedOperator>& operators) {
  nlohmann::json all = nlohmann::json::array();
  for (const ExplainedOperator& op : operators) {
    const Operator& of_graph = problem.graph->op(op.op);
    nlohmann::json json = {{"operator", of_graph.name},
                           {"kind", to_string(of_graph.kind())},
                           {"critical", op.critical}};
    for (const ExplainedSlice& s : op.slices) {
      nlohmann::json slice = {
          {"lane", problem.lanes[s.lane].name}, {"begin_us", s.begin_us}, {"end_us", s.end_us}};
      if (!s.slice.whole()) {
        slice["axis"] = s.slice.axis;
        slice["begin"] = s.slice.begin;
        slice["end"] = s.slice.end;
      }
      json["slices"].push_back(std::move(slice));
    }
    for (size_t lane = 0; lane < op.alone_us.size(); ++lane) {
      json["alone_us"][problem.lanes[lane].name] = op.alone_us[lane];
    }
    all.push_back(std::move(json));
  }
  return all;
}

// The slices of a mode, such as "cpu[c 0:32] gpu[c 32:64]".
std::string mode_text(const Problem& problem, const Mode& mode) {
  std::string text;
  for (const Part& part : mode.parts) {
    const std::string slice = to_string(*problem.graph, part.slice);
    const std::string& op = problem.graph->op(part.slice.op).name;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", problem.lanes[part.lane].name,
                        slice.substr(op.size()));
  }
  return text;
}

// What else could have been, and how the search went.
nlohmann::json search_json(const Problem& problem, const PlannedSchedule& planned) {
  nlohmann::json json = {{"tried", planned.search.tried},
                         {"kept", planned.search.kept},
                         {"evaluations", planned.search.evaluations},
                         {"ms", planned.search.ms},
                         {"fell_back_on_one_lane", planned.fell_back},
                         {"starts", nlohmann::json::array()},
                         {"stages", nlohmann::json::array()},
                         {"choices", nlohmann::json::array()}};
  for (const SearchReport::Start& start : planned.search.starts) {
    json["starts"].push_back({{"strategy", start.strategy}, {"predicted_us", start.makespan_us}});
  }
  for (size_t s = 0; s < planned.search.stages.size(); ++s) {
    const StageReport& stage = planned.search.stages[s];
    json["stages"].push_back({{"operators", planned.stage_names[s]},
                              {"count", stage.last - stage.first},
                              {"tried", stage.tried},
                              {"kept", stage.kept},
                              {"before_us", stage.before_us},
                              {"after_us", stage.after_us}});
  }
  for (const OperatorChoice& choice : planned.choices) {
    nlohmann::json alternatives = nlohmann::json::array();
    for (const auto& other : choice.alternatives) {
      alternatives.push_back({{"mode", mode_text(problem, other.mode)},
                              {"makespan_change_us", other.makespan_change_us}});
    }
    json["choices"].push_back({{"operator", problem.graph->op(choice.op).name},
                               {"mode", mode_text(problem, choice.mode)},
                               {"us", choice.us},
                               {"critical", choice.critical},
                               {"alternatives", std::move(alternatives)}});
  }
  return json;
}

void print_search(const Problem& problem, const PlannedSchedule& planned) {
  constexpr size_t kAlternatives = 3;
  fmt::print("\nChoices (* critical), and by how much the best others would change the whole:\n");
  for (const OperatorChoice& choice : planned.choices) {
    fmt::print("{} {:32} {:9.1f} us  {}\n", choice.critical ? '*' : ' ',
               problem.graph->op(choice.op).name, choice.us, mode_text(problem, choice.mode));
    for (size_t i = 0; i < std::min(kAlternatives, choice.alternatives.size()); ++i) {
      fmt::print("    {:+9.1f} us  {}\n", choice.alternatives[i].makespan_change_us,
                 mode_text(problem, choice.alternatives[i].mode));
    }
  }
  for (const SearchReport::Start& start : planned.search.starts) {
    fmt::print("started from {:16} {:9.3f} ms\n", start.strategy, start.makespan_us / 1000);
  }
  for (size_t s = 0; s < planned.search.stages.size(); ++s) {
    const StageReport& stage = planned.search.stages[s];
    fmt::print("stage of {:3} operators, {}: {} moves tried, {} kept, {:.3f} -> {:.3f} ms\n",
               stage.last - stage.first, planned.stage_names[s], stage.tried, stage.kept,
               stage.before_us / 1000, stage.after_us / 1000);
  }
  if (planned.search.tried > 0) {
    fmt::print("{} moves tried, {} kept, {} evaluations, {:.1f} ms\n", planned.search.tried,
               planned.search.kept, planned.search.evaluations, planned.search.ms);
  }
}

void print_json(const Flags& flags, const Planner& planner, const std::vector<Considered>& all,
                const Plan& plan, const PlannedSchedule* planned,
                const nlohmann::json& conditions) {
  const Problem problem = planner.problem();
  nlohmann::json json = {{"model", plan.origin.model},
                         {"operators", problem.graph->operators().size()},
                         {"strategy", plan.schedule.strategy},
                         {"predicted_ms", plan.prediction.makespan_us / 1000},
                         {"calibrate_ms", planner.calibrate_ms()},
                         {"predictors_ms", planner.predictors_ms()},
                         {"costs", planner.origin().costs},
                         {"conditions", conditions},
                         {"plan", nlohmann::json::parse(to_json(*problem.graph, plan))}};
  for (const Considered& considered : all) {
    nlohmann::json& row = json["strategies"].emplace_back();
    row["strategy"] = considered.strategy;
    row["search_ms"] = considered.search_ms;
    if (considered.plan) row["predicted_ms"] = considered.plan->prediction.makespan_us / 1000;
  }
  if (flags.explain) {
    json["explanation"] =
        explanation_json(problem, explain(problem, plan.schedule, plan.prediction));
    json["search"] = search_json(problem, *planned);
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Flags& flags, const Planner& planner, const std::vector<Considered>& all,
                const Plan& plan, const PlannedSchedule* planned) {
  const Problem problem = planner.problem();
  fmt::print("{}: {} operators; lanes {}; costs: {} ({:.0f} ms)\n", plan.origin.model,
             problem.graph->operators().size(), fmt::join(plan.origin.lanes, ", "),
             planner.origin().costs, planner.calibrate_ms() + planner.predictors_ms());
  for (const Considered& considered : all) {
    if (considered.plan) {
      fmt::print("{} {:15} predicted {:9.3f} ms   search {:8.3f} ms\n",
                 considered.strategy == flags.strategy ? '>' : ' ', considered.strategy,
                 considered.plan->prediction.makespan_us / 1000, considered.search_ms);
    } else {
      fmt::print("  {:15} {}\n", considered.strategy, considered.why_not);
    }
  }
  fmt::print(
      "\nTimeline of {}, as predicted:\n{}", plan.schedule.strategy,
      gantt(*problem.graph, plan.schedule, plan.prediction, plan.origin.lanes, terminal_width()));
  if (flags.explain) {
    fmt::print("\n{}", explanation_text(problem, explain(problem, plan.schedule, plan.prediction)));
    print_search(problem, *planned);
  }
}

Status plan(const Flags& flags) {
  const Conditions conditions;
  // Before anything slow.
  TANDEM_RETURN_IF_ERROR(make_scheduler(flags.strategy).status());
  TANDEM_RETURN_IF_ERROR(check_distinct({{"the model", flags.model}, {"--output", flags.output}}));
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--output", flags.output}}));
  TANDEM_ASSIGN_OR_RETURN(const Model model, flags.load.load(flags.model));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  SessionOptions options;
  options.search_thoroughly = true;
  options.calibration_dir = flags.platform.calibration_dir();
  flags.costs.apply_to(&options);
  flags.search.apply_to(&options);
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + options.deadline));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Planner> planner,
                          Planner::create(model.shared_graph(), platform, crew, options));
  std::vector<Considered> all;
  {
    const Progress progress(model.name() + ": planning");
    TANDEM_RETURN_IF_ERROR(planner->prepare_costs());
    TANDEM_ASSIGN_OR_RETURN(all, plan_all(*planner, flags.strategy, !options.pins.empty()));
  }
  const auto chosen = std::find_if(all.begin(), all.end(), [&](const Considered& considered) {
    return considered.strategy == flags.strategy;
  });
  if (!flags.output.empty()) {
    TANDEM_RETURN_IF_ERROR(save_plan(flags.output, model.graph(), *chosen->plan));
  }
  std::optional<PlannedSchedule> planned;
  if (flags.explain) {
    TANDEM_ASSIGN_OR_RETURN(Planner::ExplainedPlan explained,
                            planner->plan_and_explain(flags.strategy));
    planned = std::move(explained.planned);
  }
  const PlannedSchedule* why = planned ? &*planned : nullptr;
  if (flags.json) {
    print_json(flags, *planner, all, *chosen->plan, why, conditions.to_json(*platform));
    return {};
  }
  print_text(flags, *planner, all, *chosen->plan, why);
  if (!flags.output.empty()) fmt::print("\nwritten to {}\n", flags.output);
  return {};
}

}  // namespace

void add_plan_command(CLI::App& app, Status* outcome) {
  CLI::App* command = app.add_subcommand(
      "plan", "Decide what each lane computes and when; keep the plan for 'tandem run --plan'");
  const auto flags = std::make_shared<Flags>();
  command->add_option("model", flags->model, "An ONNX file, or zoo:NAME (see 'tandem zoo list')")
      ->required();
  flags->load.add_to(*command);
  command
      ->add_option("--strategy", flags->strategy,
                   fmt::format("The one whose plan is shown and kept: {}",
                               fmt::join(scheduler_names(), ", ")))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "Write the plan to this file");
  command->add_flag("--explain", flags->explain,
                    "Say of every operator where it goes, what that takes and what else would");
  command->add_flag("--json", flags->json, "Print JSON");
  flags->platform.add_to(*command);
  flags->costs.add_to(*command);
  flags->search.add_to(*command);
  command->callback([flags, outcome] { *outcome = plan(*flags); });
}

}  // namespace tandem::cli
