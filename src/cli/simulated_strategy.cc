#include "cli/simulated_strategy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fmt/format.h"
#include "report/gantt.h"
#include "schedule/plan.h"
#include "schedule/single_lane.h"
#include "simulate/oracle_costs.h"
#include "simulate/simulated_run.h"
#include "support/statistics.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct Outcome {
  PlannedSchedule planned;
  double search_ms = 0;
  std::vector<std::pair<std::string, double>> alone_us;  // by lane
  Summary us;                                            // of the runs, with noise
  double energy_mj = 0;                                  // of a run without
  Timeline timeline;
  std::vector<simulate::ThrottledRun> throttled;
};

StatusOr<Outcome> run_strategy(const Problem& problem, const sim::PlatformModel& platform,
                               const StrategyFlags& flags) {
  Outcome outcome;
  const Stopwatch stopwatch;
  PlanOptions options;
  options.strategy = flags.strategy;
  options.search.seed = flags.seed;
  TANDEM_ASSIGN_OR_RETURN(outcome.planned, plan(problem, options));
  outcome.search_ms = stopwatch.milliseconds();
  const Schedule& schedule = outcome.planned.schedule;
  for (int lane = 0; lane < static_cast<int>(problem.lanes.size()); ++lane) {
    const Schedule single = single_lane_schedule(problem, lane);
    const simulate::SimulatedRun run = simulate::simulate_run(problem, platform, single, {});
    outcome.alone_us.emplace_back(problem.lanes[lane].name, run.timeline.makespan_us);
  }
  simulate::SimulatedRun expected = simulate::simulate_run(problem, platform, schedule, {});
  outcome.timeline = std::move(expected.timeline);
  outcome.energy_mj = expected.energy_mj;
  std::vector<double> us;
  for (int run = 0; run < flags.runs; ++run) {
    simulate::RunOptions noisy;
    noisy.seed = sim::mix(flags.seed, static_cast<uint64_t>(run)) | 1;
    us.push_back(simulate::simulate_run(problem, platform, schedule, noisy).timeline.makespan_us);
  }
  outcome.us = summarize(us);
  if (flags.throttle_seconds > 0) {
    outcome.throttled =
        simulate::run_until_warm(problem, platform, schedule, flags.throttle_seconds);
  }
  return outcome;
}

double best_alone_us(const Outcome& outcome) {
  double best = outcome.alone_us.front().second;
  for (const auto& [lane, us] : outcome.alone_us) best = std::min(best, us);
  return best;
}

// Ten of them, from the first to the last.
std::vector<simulate::ThrottledRun> some(const std::vector<simulate::ThrottledRun>& runs) {
  constexpr size_t kShown = 10;
  std::vector<simulate::ThrottledRun> shown;
  for (size_t i = 0; i < std::min(kShown, runs.size()); ++i) {
    shown.push_back(
        runs[i * (runs.size() - 1) / (std::min(kShown, runs.size()) - (runs.size() > 1))]);
  }
  return shown;
}

void print_json(const Model& model, const sim::PlatformModel& platform,
                const simulate::Mechanism mechanism, const StrategyFlags& flags,
                const Outcome& outcome) {
  json alone = json::object();
  for (const auto& [lane, us] : outcome.alone_us) alone[lane] = us / 1000;
  json document = {{"simulated", true},
                   {"model", model.name()},
                   {"platform", platform.name},
                   {"runtime", platform.runtime_name},
                   {"strategy", flags.strategy},
                   {"sync", to_string(mechanism)},
                   {"seed", flags.seed},
                   {"fell_back", outcome.planned.fell_back},
                   {"search_ms", outcome.search_ms},
                   {"predicted_ms", outcome.planned.evaluation.makespan_us / 1000},
                   {"expected_ms", outcome.timeline.makespan_us / 1000},
                   {"median_ms", outcome.us.median / 1000},
                   {"p90_ms", outcome.us.p90 / 1000},
                   {"energy_mj", outcome.energy_mj},
                   {"alone_ms", alone},
                   {"speed_up", best_alone_us(outcome) / outcome.timeline.makespan_us}};
  for (const simulate::ThrottledRun& run : some(outcome.throttled)) {
    document["throttled"].push_back({{"at_s", run.at_s},
                                     {"ms", run.us / 1000},
                                     {"temperature_c", run.temperature_c},
                                     {"cpu_clock", run.cpu_clock},
                                     {"gpu_clock", run.gpu_clock}});
  }
  fmt::print("{}\n", document.dump(2));
}

void print_text(const Model& model, const sim::PlatformModel& platform,
                const simulate::Mechanism mechanism, const StrategyFlags& flags,
                const Outcome& outcome) {
  fmt::print("SIMULATED: {} on {}, kernels of {}, synchronised by {}\n", model.name(),
             platform.description, platform.runtime_name, to_string(mechanism));
  std::vector<std::string> names;
  for (const auto& [lane, us] : outcome.alone_us) {
    fmt::print("  {:12} alone {:>9.2f} ms\n", lane, us / 1000);
    names.push_back(lane);
  }
  fmt::print("  {:12}       {:>9.2f} ms, {:.2f}x the best lane alone{}; {:.1f} mJ\n",
             flags.strategy, outcome.timeline.makespan_us / 1000,
             best_alone_us(outcome) / outcome.timeline.makespan_us,
             outcome.planned.fell_back ? " (it fell back on it)" : "", outcome.energy_mj);
  fmt::print("  {} runs: median {:.2f} ms, p90 {:.2f} ms\n\n", flags.runs, outcome.us.median / 1000,
             outcome.us.p90 / 1000);
  constexpr int kWidth = 100;
  fmt::print("{}", gantt(model.graph(), outcome.planned.schedule, outcome.timeline, names, kWidth));
  if (!outcome.throttled.empty()) fmt::print("\n  over and over, on a chip that heats up:\n");
  for (const simulate::ThrottledRun& run : some(outcome.throttled)) {
    fmt::print(
        "  {:>7.1f} s {:>9.2f} ms at {:.1f} C, clocks of the CPU {:.0f}%, of the GPU {:.0f}%\n",
        run.at_s, run.us / 1000, run.temperature_c, 100 * run.cpu_clock, 100 * run.gpu_clock);
  }
}

}  // namespace

Status simulate_strategy(const Model& model, const sim::PlatformModel& platform,
                         const StrategyFlags& flags) {
  TANDEM_ASSIGN_OR_RETURN(const simulate::Mechanism mechanism,
                          simulate::parse_mechanism(platform, flags.sync));
  const simulate::OracleCosts costs(model.graph(), platform, mechanism);
  const Problem problem = simulate::problem_of(model.graph(), platform, &costs);
  TANDEM_ASSIGN_OR_RETURN(const Outcome outcome, run_strategy(problem, platform, flags));
  (flags.json ? print_json : print_text)(model, platform, mechanism, flags, outcome);
  return {};
}

}  // namespace tandem::cli
