// `tandem simulate`: a network on a platform that is not here.
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/simulated_strategy.h"
#include "cli/validation_report.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lane/sim/slice_time.h"
#include "platform/platform_file.h"
#include "schedule/placement.h"
#include "schedule/scheduler.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string model;
  std::string platform;
  PlatformFileOptions file;
  LoadFlags load;
  int threads = 0;
  StrategyFlags strategy;
  bool throttle = false;
  bool operators = false;
  bool validate = false;
  std::string fit;
  int rounds = 40;
  std::string published = "data/published";
  bool json = false;
};

// One line for each workload of the network that is launched, with how often it occurs: the format
// of data/published/*_networks.csv.
void print_operators(const Model& model) {
  const Graph& graph = model.graph();
  const Placement placement = analyse(graph);
  std::map<std::string, int> counts;
  std::vector<std::string> order;
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!placement.launched[op]) continue;
    const auto id = static_cast<OperatorId>(op);
    const std::string text = sim::to_text(sim::workload_of(graph, Slice{id, kNone, 0, 0}));
    if (counts[text]++ == 0) order.push_back(text);
  }
  for (const std::string& text : order) {
    fmt::print("{},{},{}\n", model.name(), text, counts[text]);
  }
}

struct LaneTime {
  std::string name;
  int threads = 0;
  double us = 0;
  std::map<std::string, double> by_family;
};

// Every operator that is launched, whole, on that lane; and what is paid once per inference.
LaneTime lane_time(const Graph& graph, const sim::PlatformModel& platform, int lane, int threads) {
  const sim::LaneSpec& spec = platform.lanes[lane];
  const std::vector<sim::CoreGroup> cores = sim::cores_of(spec, threads);
  LaneTime time{spec.name, sim::core_count(cores), 0, {}};
  const Placement placement = analyse(graph);
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!placement.launched[op]) continue;
    const Slice slice{static_cast<OperatorId>(op), kNone, 0, 0};
    const sim::Workload work = sim::workload_of(graph, slice);
    const double us = sim::slice_time(platform, lane, work, threads).us;
    time.us += us;
    time.by_family[to_string(work.family)] += us;
  }
  if (cores.empty()) {
    time.us += platform.gpu_coefficients.inference_us;
    time.by_family["per inference"] = platform.gpu_coefficients.inference_us;
  }
  return time;
}

Status print_lanes(const Model& model, const sim::PlatformModel& platform, const Flags& flags) {
  std::vector<LaneTime> times;
  for (int lane = 0; lane < static_cast<int>(platform.lanes.size()); ++lane) {
    times.push_back(lane_time(model.graph(), platform, lane, flags.threads));
  }
  if (flags.json) {
    nlohmann::json lanes = nlohmann::json::array();
    for (const LaneTime& time : times) {
      lanes.push_back({{"lane", time.name},
                       {"threads", time.threads},
                       {"ms", time.us / 1000},
                       {"us_by_family", time.by_family}});
    }
    fmt::print("{}\n", nlohmann::json{{"simulated", true},
                                      {"model", model.name()},
                                      {"platform", platform.name},
                                      {"runtime", platform.runtime_name},
                                      {"set", flags.file.set},
                                      {"lanes", lanes}}
                           .dump(2));
    return {};
  }
  fmt::print("SIMULATED: {} on {}, kernels of {}\n", model.name(), platform.description,
             platform.runtime_name);
  for (const LaneTime& time : times) {
    const std::string threads =
        time.threads > 0 ? fmt::format(", threads {}", time.threads) : std::string();
    fmt::print("{}{}: {:.2f} ms\n", time.name, threads, time.us / 1000);
    for (const auto& [family, us] : time.by_family) {
      fmt::print("  {:14} {:>9.2f} ms\n", family, us / 1000);
    }
  }
  return {};
}

Status simulate(const Flags& flags) {
  if (!flags.fit.empty()) {
    return fit_coefficients(flags.published, flags.file.calibration, flags.fit, flags.rounds);
  }
  if (flags.validate) {
    return print_validation(flags.published, flags.file.calibration, flags.json);
  }
  if (flags.model.empty()) return invalid_argument("give a model, or --validate");
  TANDEM_ASSIGN_OR_RETURN(const Model model, flags.load.load(flags.model));
  if (flags.operators) {
    print_operators(model);
    return {};
  }
  if (flags.platform.empty()) {
    return invalid_argument("give --platform NAME or FILE: there are " +
                            fmt::format("{}", fmt::join(platform_names(), ", ")));
  }
  TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel platform,
                          load_platform(flags.platform, flags.file));
  if (flags.strategy.strategy.empty()) return print_lanes(model, platform, flags);
  StrategyFlags strategy = flags.strategy;
  strategy.json = flags.json;
  constexpr double kThrottleSeconds = 1200;
  if (flags.throttle) strategy.throttle_seconds = kThrottleSeconds;
  return simulate_strategy(model, platform, strategy);
}

}  // namespace

void add_simulate_command(CLI::App& app, Status* outcome) {
  CLI::App* command =
      app.add_subcommand("simulate", "Simulate a network on the model of a phone or board");
  const auto flags = std::make_shared<Flags>();
  command->add_option("model", flags->model, "An ONNX file, or zoo:NAME");
  command->add_option("--platform", flags->platform, "A built-in platform, or a JSON file");
  command->add_option("--runtime", flags->file.runtime, "Whose kernels: tflite, ncnn, mace")
      ->capture_default_str();
  command
      ->add_option("--set", flags->file.set, "Change a figure of the platform: gpu.compute_units=6")
      ->allow_extra_args(false);
  command
      ->add_option("--lane", flags->file.lanes,
                   "Lanes instead of the platform's: cpu=prime:1+big:3, gpu=gpu")
      ->allow_extra_args(false);
  command->add_option("--calibration", flags->file.calibration,
                      "Coefficients from this file instead of the built-in ones");
  CLI::Option* threads =
      command->add_option("--threads,--num_threads", flags->threads, "Of CPU lanes; 0: all cores")
          ->check(at_least(0));
  CLI::Option* strategy =
      command
          ->add_option("--strategy", flags->strategy.strategy,
                       fmt::format("Plan so, and run the plan on the simulated clock: {}",
                                   fmt::join(scheduler_names(), ", ")))
          ->excludes(threads);
  command
      ->add_option("--sync", flags->strategy.sync,
                   "How lanes synchronise: svm, event, finish, or auto: the best that there is")
      ->needs(strategy)
      ->capture_default_str();
  command->add_option("--seed", flags->strategy.seed, "Of noise and searches")
      ->needs(strategy)
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--runs,--num_runs", flags->strategy.runs, "With noise")
      ->needs(strategy)
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_flag("--throttle", flags->throttle,
                 "Also run it for 20 simulated minutes on a chip that heats up")
      ->needs(strategy);
  command->add_flag("--operators", flags->operators, "Print what the network computes, as CSV");
  command->add_flag("--validate", flags->validate,
                    "Compare simulated times with published ones instead");
  CLI::Option* fit = command->add_option(
      "--fit", flags->fit, "Fit the coefficients to published times, and write them to this file");
  command->add_option("--rounds", flags->rounds, "Of the fit, at most")
      ->needs(fit)
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--published", flags->published, "The folder of published times")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print JSON");
  flags->load.add_to(*command);
  command->callback([flags, outcome] { *outcome = simulate(*flags); });
}

}  // namespace tandem::cli
