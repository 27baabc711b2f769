// `tandem run`: runs a model, checks it, times it.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/conditions.h"
#include "cli/contest.h"
#include "cli/distinct_files.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/output_files.h"
#include "cli/report.h"
#include "cli/run_report.h"
#include "cli/verify.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "graph/graph.h"
#include "report/drift.h"
#include "report/recorder.h"
#include "schedule/scheduler.h"
#include "support/statistics.h"
#include "tandem/session.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string model;
  LoadFlags load;
  PlatformFlags platform;
  CostFlags costs;
  SearchFlags search;
  std::optional<std::string> strategy;
  std::vector<std::string> compare;
  std::string plan;
  bool replan = false;
  bool adapt = false;
  std::string trace;
  std::string report;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  std::string output;
  int warmup = 2;
  int runs = 10;
  SyncMechanism sync = SyncMechanism::kAuto;
  bool verify = false;
  bool check_numerics = false;
  int64_t deadline_ms = 10'000;
  bool fall_back = false;
  bool json = false;
};

std::vector<std::string> strategies(const Flags& flags) {
  if (!flags.compare.empty()) return flags.compare;
  if (flags.strategy) return {*flags.strategy};
  if (!flags.platform.use_gpu()) return {SessionOptions().strategy};
  return {*flags.platform.use_gpu() ? "gpu" : "cpu"};
}

SessionOptions session_options(const Flags& flags, std::shared_ptr<Tracer> tracer) {
  SessionOptions options;
  options.tracer = std::move(tracer);
  options.sync = flags.sync;
  options.deadline = std::chrono::milliseconds(flags.deadline_ms);
  options.fall_back = flags.fall_back;
  options.calibration_dir = flags.platform.calibration_dir();
  flags.costs.apply_to(&options);
  flags.search.apply_to(&options);
  options.keep_all = flags.verify;
  options.check_numerics = flags.check_numerics;
  options.adapt = flags.adapt;
  if (!flags.replan) options.plan = flags.plan;
  return options;
}

// A few runs more, recorded, so that recording does not disturb those that are timed.
Status record(Contender& contender, const std::vector<HostTensor>& inputs, Recorder& recorder) {
  constexpr int kRuns = 5;
  recorder.want(true);
  Status status;
  for (int run = 0; run < kRuns && status.ok(); ++run) {
    status = run_once(contender, inputs, /*timed=*/false);
  }
  recorder.want(false);
  return status;
}

Trace make_trace(const Contender& contender, const Model& model, const Platform& platform,
                 const Conditions& conditions, const Timeline& measured) {
  const Session& session = *contender.session;
  const std::vector<std::string> lanes = platform.lane_names();
  Trace trace;
  trace.model = model.name();
  trace.strategy = contender.strategy;
  trace.sync = to_string(session.sync());
  trace.conditions = conditions.to_json(platform).dump();
  trace.times = summary_json(contender.milliseconds.summary()).dump();
  trace.lanes = lanes;
  trace.measured = trace_timeline(model.graph(), session.schedule(), lanes, measured);
  trace.predicted = trace_timeline(model.graph(), session.schedule(), lanes, session.prediction());
  return trace;
}

// Records the only contender, writes what was asked for, and says if predictions are off.
Status look_closely(const Flags& flags, Contender& contender, const Model& model,
                    const Platform& platform, const std::vector<HostTensor>& inputs,
                    const Conditions& conditions, Recorder& recorder,
                    std::vector<LaneDrift>* lanes) {
  const bool wanted = !flags.trace.empty() || !flags.report.empty();
  const bool predicted = !contender.session->prediction().lanes.empty();
  if (!wanted && !predicted) return {};
  const Status recorded = record(contender, inputs, recorder);
  // Not every device can tell times; without one there is nothing to compare.
  if (!wanted && recorded.code() == StatusCode::kUnsupported) return {};
  TANDEM_RETURN_IF_ERROR(recorded);
  if (wanted) {
    TANDEM_RETURN_IF_ERROR(
        write_recording(make_trace(contender, model, platform, conditions, *recorder.typical()),
                        flags.trace, flags.report));
  }
  if (!predicted) return {};
  const Session& session = *contender.session;
  *lanes = drift(session.schedule(), session.prediction(), recorder.timelines());
  const std::string text = drift_text(model.graph(), platform.lane_names(), *lanes);
  if (text.empty()) return {};
  fmt::print(stderr, "warning: predictions are off:\n{}", text);
  // Predictors would predict the same again.
  if (!flags.adapt) {
    fmt::print(stderr, "use --adapt, or plan by what this model takes here: --costs calibrated{}\n",
               flags.plan.empty() ? "" : " --replan");
  }
  return {};
}

// --replan rewrites plans, damaged ones too, but nothing else.
Status check_may_be_plan(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return invalid_argument(path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  char first = 0;
  if (!file || !(file >> first) || first == '{') return {};
  return invalid_argument(path + " is no plan: --replan would overwrite it; give another file");
}

// Compares every operator's outputs with the reference's; the first that differ are the outcome, if
// nothing else is. Null without --verify.
StatusOr<nlohmann::json> verify_all(const Flags& flags, const std::vector<Contender>& contenders,
                                    const Model& model, const std::vector<HostTensor>& inputs,
                                    const std::vector<std::string>& lane_names, Status* outcome) {
  nlohmann::json verifications;
  if (!flags.verify) return verifications;
  for (const Contender& contender : contenders) {
    TANDEM_ASSIGN_OR_RETURN(const Verification verification,
                            verify(model, *contender.session, inputs, lane_names));
    verifications[contender.strategy] = verification_json(verification);
    if (verification.first && outcome->ok()) {
      *outcome = divergence_error(contender.strategy, *verification.first);
    }
    if (!flags.json) {
      fmt::print("verify {}: {} operators compared with the reference, worst error {:.2g} ({})\n",
                 contender.strategy, verification.checked, verification.worst_error,
                 verification.worst_op.empty() ? "all exact" : verification.worst_op);
    }
  }
  return verifications;
}

Status write_all_outputs(const Flags& flags, const std::vector<Contender>& contenders,
                         const Model& model) {
  if (flags.output.empty()) return {};
  for (const Contender& contender : contenders) {
    const std::string folder =
        flags.compare.empty() ? flags.output : flags.output + "/" + contender.strategy;
    TANDEM_RETURN_IF_ERROR(write_outputs(model, contender.outputs, folder));
  }
  return {};
}

// What all runs showed.
struct Outcome {
  const Conditions& conditions;
  const std::vector<Contender>& contenders;
  std::vector<LaneDrift> drifts;
  nlohmann::json verifications;
};

void print_json(const Flags& flags, const Model& model, const Platform& platform,
                const Outcome& outcome) {
  const std::vector<std::string> lane_names = platform.lane_names();
  const std::optional<Limit> limit = limit_of(outcome.contenders);
  nlohmann::json json = {{"model", model.name()},
                         {"operators", model.graph().operators().size()},
                         {"conditions", outcome.conditions.to_json(platform)},
                         {"load_ms", load_times_json(model.load_times())},
                         {"program_cache", program_cache_json(platform)},
                         {"strategies", nlohmann::json::array()}};
  for (const Contender& contender : outcome.contenders) {
    json["strategies"].push_back(contender_json(contender, model, lane_names, limit));
  }
  if (limit) json["limit"] = limit->speed_up;
  if (!outcome.drifts.empty()) json["drift"] = drift_json(outcome.drifts, lane_names);
  if (flags.adapt) {
    json["adaptation"] =
        adaptation_json(outcome.contenders.front().session->adaptation(), lane_names);
  }
  if (flags.verify) json["verify"] = outcome.verifications;
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Flags& flags, const Model& model, const Platform& platform,
                const Outcome& outcome) {
  const std::vector<std::string> lane_names = platform.lane_names();
  const std::optional<Limit> limit = limit_of(outcome.contenders);
  fmt::print("{}: {} operators; inputs {}; outputs {}\n", model.name(),
             model.graph().operators().size(), specs_text(model.inputs()),
             specs_text(model.outputs()));
  for (const Contender& contender : outcome.contenders) {
    print_contender(contender, model, lane_names, limit);
  }
  if (flags.adapt) {
    fmt::print("{}", adaptation_text(outcome.contenders.front().session->adaptation(), lane_names));
  }
  if (limit) {
    fmt::print("limit    {:.3f}x the best lane: 1 + t_fast / t_slow of cpu and gpu alone\n",
               limit->speed_up);
  }
  fmt::print("{}", outcome.conditions.to_text(platform));
}

Status run(const Flags& flags) {
  const Conditions conditions;
  const std::vector<std::string> names = strategies(flags);
  // Before anything slow.
  if (!flags.plan.empty() && flags.strategy && !flags.replan) {
    return invalid_argument(
        "--plan says how work is divided, too: leave out --strategy, or plan "
        "anew with --replan");
  }
  if (!flags.plan.empty() && !flags.replan && flags.search.divides()) {
    return invalid_argument(
        "--plan says how work is divided: leave out --pin, --evaluations and --budget-ms, or plan "
        "anew with --replan");
  }
  TANDEM_RETURN_IF_ERROR(check_distinct({{"the model", flags.model},
                                         {"--plan", flags.plan},
                                         {"--trace", flags.trace},
                                         {"--report", flags.report}}));
  if (flags.replan) TANDEM_RETURN_IF_ERROR(check_may_be_plan(flags.plan));
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--plan", flags.replan ? flags.plan : std::string()},
                                          {"--trace", flags.trace},
                                          {"--report", flags.report}}));
  TANDEM_RETURN_IF_ERROR(check_can_fill("--output", flags.output));
  for (const std::string& name : names) TANDEM_RETURN_IF_ERROR(make_scheduler(name).status());
  TANDEM_ASSIGN_OR_RETURN(const Model model, flags.load.load(flags.model));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs,
                          make_inputs(model, flags.inputs, flags.seed));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));

  const auto recorder = std::make_shared<Recorder>();
  std::vector<Contender> contenders;
  for (const std::string& name : names) {
    TANDEM_ASSIGN_OR_RETURN(Contender contender,
                            prepare(name, model, platform, session_options(flags, recorder)));
    if (!flags.plan.empty()) contender.strategy = contender.session->schedule().strategy;
    contenders.push_back(std::move(contender));
  }
  if (flags.replan) {
    TANDEM_RETURN_IF_ERROR(contenders.front().session->save_plan(flags.plan));
    if (!flags.json) fmt::print("planned with {}, written to {}\n", names.front(), flags.plan);
  }
  std::vector<Turn> turns;
  for (Contender& contender : contenders) {
    turns.emplace_back([&](bool timed) { return run_once(contender, inputs, timed); });
  }
  TANDEM_RETURN_IF_ERROR(take_turns(turns, flags.warmup, flags.runs, "running"));
  const int rounds = contenders.front().milliseconds.count();
  if (rounds == 0) return cancelled("interrupted before the first timed run");
  Status outcome;
  if (rounds < flags.runs) {
    outcome = cancelled(fmt::format("interrupted after {} of {} runs", rounds, flags.runs));
  }

  Outcome shown{conditions, contenders, {}, {}};
  if (contenders.size() == 1 && outcome.ok()) {
    TANDEM_RETURN_IF_ERROR(look_closely(flags, contenders.front(), model, *platform, inputs,
                                        conditions, *recorder, &shown.drifts));
  }
  TANDEM_ASSIGN_OR_RETURN(shown.verifications, verify_all(flags, contenders, model, inputs,
                                                          platform->lane_names(), &outcome));
  TANDEM_RETURN_IF_ERROR(write_all_outputs(flags, contenders, model));
  const auto print = flags.json ? print_json : print_text;
  print(flags, model, *platform, shown);
  return outcome;
}

}  // namespace

void add_run_command(CLI::App& app, Status* outcome) {
  CLI::App* command = app.add_subcommand("run", "Run a model, check it, time it");
  const auto flags = std::make_shared<Flags>();
  command->add_option("model", flags->model, "An ONNX file, or zoo:NAME (see 'tandem zoo list')")
      ->required();
  flags->load.add_to(*command);
  const std::string known = fmt::format("{}", fmt::join(scheduler_names(), ", "));
  CLI::Option* strategy =
      command->add_option("--strategy", flags->strategy,
                          fmt::format("How work is divided over lanes: {} (default: {})", known,
                                      SessionOptions().strategy));
  command
      ->add_option("--compare", flags->compare,
                   "Time these strategies interleaved, such as cpu,gpu,joint")
      ->delimiter(',')
      ->excludes(strategy);
  CLI::Option* plan =
      command
          ->add_option("--plan", flags->plan,
                       "Run the plan of this file (see 'tandem plan'); it is refused where it was "
                       "made for another model, platform or version")
          ->excludes("--compare");
  command
      ->add_option("--trace", flags->trace,
                   "Write what each lane did in a run after the timed ones, and what it was "
                   "predicted to do, to this file, for ui.perfetto.dev and 'tandem report'")
      ->excludes("--compare");
  command->add_option("--report", flags->report, "Write a page about the same to this HTML file")
      ->excludes("--compare");
  command
      ->add_flag("--adapt", flags->adapt,
                 "Watch how fast lanes are while runs are made, and plan again where one is not as "
                 "fast as predicted for some runs")
      ->excludes("--compare");
  command->add_flag("--replan", flags->replan, "Plan anew, and rewrite the file given by --plan")
      ->needs(plan);
  command
      ->add_option("--input", flags->inputs,
                   "NAME=FILE.npy, NAME=random, or without NAME if there is one input "
                   "(default: random)")
      ->allow_extra_args(false);
  command->add_option("--seed", flags->seed, "Seed of random inputs")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option(
      "--output", flags->output,
      "Write each output of the last run to this folder as NAME.npy, with --compare to "
      "STRATEGY/NAME.npy in it");
  command->add_option("--warmup,--warmup_runs", flags->warmup, "Runs before timing")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--runs,--num_runs", flags->runs, "Timed runs")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option(
          "--sync", flags->sync,
          "How lanes wait for each other: auto, svm, event, finish, or pinned, which OpenCL "
          "does not promise to work (default: auto, what costs least; see tandem devices)")
      ->transform(&parse_mechanism)
      ->type_name("MECHANISM");
  command->add_flag("--verify", flags->verify,
                    "Compare every operator with the reference interpreter (slow), and name the "
                    "first that diverges");
  command->add_flag("--check-numerics", flags->check_numerics,
                    "Look through every tensor after each run; fail at the first operator that "
                    "makes a NaN or an infinity, and name it");
  command->add_option("--deadline-ms", flags->deadline_ms, "A run that takes longer fails")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_flag("--fall-back", flags->fall_back,
                    "When a lane fails in mid-run, run once more on the best lane that is left");
  command->add_flag("--json", flags->json, "Print JSON");
  flags->costs.add_to(*command);
  flags->search.add_to(*command);
  flags->platform.add_to(*command);
  command->callback([flags, outcome] { *outcome = run(*flags); });
}

}  // namespace tandem::cli
