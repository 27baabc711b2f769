// `tandem bench schedule`: how far the joint search is from the optimum.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/adversary.h"
#include "cli/bench.h"
#include "cli/bench_problems.h"
#include "cli/conditions.h"
#include "cli/network_problems.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "cli/schedule_trial.h"
#include "fmt/format.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr const char* kAdversary = "adversary";

// What is said of a group of problems.
struct Summary {
  int graphs = 0;
  int proven = 0;
  double sum_gap_proven = 0;
  double max_gap_proven = 0;
  double sum_gap = 0;  // to the optimum or the bound, over all
  double max_gap = 0;
  double max_search_ms = 0;
  std::vector<double> search_ms;
  int joint_worse = 0;

  void add(const ScheduleTrial& trial) {
    ++graphs;
    sum_gap += trial.gap();
    max_gap = std::max(max_gap, trial.gap());
    search_ms.push_back(trial.search_ms);
    joint_worse += !trial.joint_never_worse();
    if (!trial.proven()) return;
    ++proven;
    sum_gap_proven += trial.gap();
    max_gap_proven = std::max(max_gap_proven, trial.gap());
  }
  double share_proven() const { return graphs == 0 ? 0 : static_cast<double>(proven) / graphs; }
  double mean_gap_proven() const { return proven == 0 ? 0 : sum_gap_proven / proven; }
  double mean_gap() const { return graphs == 0 ? 0 : sum_gap / graphs; }
  double median_search_ms() const {
    std::vector<double> sorted = search_ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
};

json to_json(const Summary& summary) {
  json result = {{"graphs", summary.graphs},
                 {"proven", summary.proven},
                 {"share_proven", summary.share_proven()},
                 {"mean_gap_to_bound", summary.mean_gap()},
                 {"max_gap_to_bound", summary.max_gap},
                 {"median_search_ms", summary.median_search_ms()},
                 {"joint_never_worse", summary.joint_worse == 0}};
  // Nothing is said of the optimum where none is known.
  result["mean_gap_proven"] = summary.proven == 0 ? json() : json(summary.mean_gap_proven());
  result["max_gap_proven"] = summary.proven == 0 ? json() : json(summary.max_gap_proven);
  return result;
}

struct Results {
  std::vector<ScheduleTrial> trials;
  Summary all;  // but for those that were looked for because joint does badly on them
  std::map<std::string, Summary> by_kind;

  void add(ScheduleTrial trial) {
    if (trial.kind != kAdversary) all.add(trial);
    by_kind[trial.kind].add(trial);
    trials.push_back(std::move(trial));
  }
  int joint_worse() const {
    return static_cast<int>(
        std::count_if(trials.begin(), trials.end(),
                      [](const ScheduleTrial& trial) { return !trial.joint_never_worse(); }));
  }
};

json settings_json(const BenchScheduleFlags& flags) {
  return {{"seed", flags.seed},
          {"cp_sat", flags.offline},
          {"time_limit_s", flags.time_limit},
          {"workers", flags.workers},
          {"branch_and_bound_ms", flags.exact_ms},
          {"contention", 1},
          {"libraries", library_versions()}};
}

void print_json(const BenchScheduleFlags& flags, const Results& results) {
  json report = to_json(results.all);
  report["joint_never_worse"] = results.joint_worse() == 0;
  report["graphs"] = json::array();
  for (const ScheduleTrial& trial : results.trials) report["graphs"].push_back(to_json(trial));
  for (const auto& [kind, summary] : results.by_kind) report["kinds"][kind] = to_json(summary);
  report["settings"] = settings_json(flags);
  fmt::print("{}\n", report.dump(2));
}

void print_summary(const std::string& kind, const Summary& summary) {
  const std::string gaps = summary.proven == 0
                               ? std::string("      -        -")
                               : fmt::format("{:6.2f}%  {:6.2f}%", 100 * summary.mean_gap_proven(),
                                             100 * summary.max_gap_proven);
  fmt::print("{:10} {:>6}  {:>5.0f}%  {}  {:6.2f}%  {:6.2f}%  {:>8.1f}  {:>11}\n", kind,
             summary.graphs, 100 * summary.share_proven(), gaps, 100 * summary.mean_gap(),
             100 * summary.max_gap, summary.median_search_ms(), summary.joint_worse);
}

void print_text(const BenchScheduleFlags& flags, const Results& results) {
  fmt::print(
      "kind       graphs  proven  gap of joint to      gap to optimum    search   worse than\n"
      "                           proven optima: mean, or bound: mean,   ms,      a baseline\n"
      "                           worst             worst              median\n");
  for (const auto& [kind, summary] : results.by_kind) {
    if (kind != kAdversary) print_summary(kind, summary);
  }
  print_summary("all", results.all);
  const auto adversaries = results.by_kind.find(kAdversary);
  if (adversaries != results.by_kind.end()) print_summary(kAdversary, adversaries->second);
  std::vector<const ScheduleTrial*> worst;
  for (const ScheduleTrial& trial : results.trials) {
    if (trial.proven()) worst.push_back(&trial);
  }
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto* a, const auto* b) { return a->gap() > b->gap(); });
  fmt::print("\nfurthest from a proven optimum:\n");
  for (size_t i = 0; i < std::min<size_t>(10, worst.size()); ++i) {
    fmt::print("  {:6.2f}%  {} ({} operators, {} lanes): joint {:.1f} us, optimum {:.1f} us\n",
               100 * worst[i]->gap(), worst[i]->name, worst[i]->operators, worst[i]->lanes,
               worst[i]->joint_us(), worst[i]->best_us());
  }
  if (!flags.offline) {
    fmt::print("\nwithout CP-SAT: proven by branch and bound alone\n");
    return;
  }
  fmt::print("\nCP-SAT: {} s a problem, {} workers; all without contention\n", flags.time_limit,
             flags.workers);
}

Status export_problems(const std::vector<BenchProblem>& problems, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const BenchProblem& bench : problems) {
    std::ofstream file(fmt::format("{}/{}.json", folder, bench.problem.name));
    file << to_json(bench.problem) << '\n';
    if (!file.flush()) return failed_precondition("cannot write problems into " + folder);
  }
  fmt::print(stderr, "{} problems written into {}\n", problems.size(), folder);
  return {};
}

StatusOr<std::vector<BenchProblem>> gather(const BenchScheduleFlags& flags) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<BenchProblem> problems,
                          generated_problems(flags.graphs - flags.graphs / 2, flags.seed));
  const auto append = [&](std::vector<BenchProblem> more) {
    std::move(more.begin(), more.end(), std::back_inserter(problems));
  };
  TANDEM_ASSIGN_OR_RETURN(std::vector<BenchProblem> networks,
                          random_network_problems(flags.graphs / 2, flags.seed));
  append(std::move(networks));
  if (flags.stages) {
    TANDEM_ASSIGN_OR_RETURN(std::vector<BenchProblem> stages, zoo_stage_problems());
    append(std::move(stages));
  }
  for (const std::string& folder : flags.folders) {
    TANDEM_ASSIGN_OR_RETURN(std::vector<BenchProblem> files, problems_in(folder, "file"));
    append(std::move(files));
  }
  const std::string adversaries = default_problem_folder();
  if (flags.adversaries && !adversaries.empty()) {
    TANDEM_ASSIGN_OR_RETURN(std::vector<BenchProblem> files, problems_in(adversaries, kAdversary));
    append(std::move(files));
  }
  return problems;
}

Status find_worst(const BenchScheduleFlags& flags) {
  AdversaryOptions options;
  options.seconds = 60 * flags.minutes;
  options.seed = flags.seed;
  std::vector<Adversary> worst;
  {
    Progress progress("looking for the worst");
    TANDEM_ASSIGN_OR_RETURN(
        worst, find_adversaries(options, [&](double share) { progress.set_share(share); }));
  }
  json found = json::array();
  std::vector<BenchProblem> problems;
  for (Adversary& adversary : worst) {
    found.push_back({{"name", adversary.problem.name},
                     {"operators", adversary.problem.operators.size()},
                     {"lanes", adversary.problem.lanes.size()},
                     {"joint_us", adversary.joint_us},
                     {"exact_us", adversary.optimum_us},
                     {"ratio", adversary.ratio()}});
    problems.push_back({kAdversary, std::move(adversary.problem)});
  }
  if (!flags.export_folder.empty()) {
    TANDEM_RETURN_IF_ERROR(export_problems(problems, flags.export_folder));
  }
  if (flags.json) {
    fmt::print("{}\n", json{{"adversaries", found}, {"settings", settings_json(flags)}}.dump(2));
    return {};
  }
  for (const json& one : found) {
    fmt::print("{:.4f}  {} ({} operators, {} lanes): joint {:.1f} us, optimum {:.1f} us\n",
               one["ratio"].get<double>(), one["name"].get<std::string>(),
               one["operators"].get<int>(), one["lanes"].get<int>(), one["joint_us"].get<double>(),
               one["exact_us"].get<double>());
  }
  return {};
}

}  // namespace

Status bench_schedule(const BenchScheduleFlags& flags) {
  TANDEM_RETURN_IF_ERROR(check_can_fill("--export", flags.export_folder));
  if (flags.adversary) return find_worst(flags);
  std::optional<Referee> referee;
  if (flags.offline && flags.export_folder.empty()) {
    TANDEM_ASSIGN_OR_RETURN(referee,
                            Referee::start({flags.python, flags.time_limit, flags.workers}));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<BenchProblem> problems, gather(flags));
  if (!flags.export_folder.empty()) return export_problems(problems, flags.export_folder);
  TrialOptions options;
  options.exact_ms = flags.exact_ms;
  Results results;
  {
    Progress progress("schedules", static_cast<int>(problems.size()));
    for (const BenchProblem& bench : problems) {
      StatusOr<ScheduleTrial> trial =
          try_schedulers(bench.kind, bench.problem, options, referee ? &*referee : nullptr);
      if (!trial.ok() && trial.status().code() == StatusCode::kNotFound) {
        return not_found(trial.status().message() + "; or leave CP-SAT out with --no-offline");
      }
      TANDEM_RETURN_IF_ERROR(trial.status());
      results.add(*std::move(trial));
      progress.step();
    }
  }
  if (flags.json) {
    print_json(flags, results);
  } else {
    print_text(flags, results);
  }
  if (results.joint_worse() == 0) return {};
  return internal_error(
      fmt::format("joint is worse than a baseline on {} problems", results.joint_worse()));
}

}  // namespace tandem::cli
