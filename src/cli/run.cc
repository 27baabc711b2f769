// `tandem run`: runs a model, checks it, times it.
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "cli/conditions.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "cli/verify.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "graph/graph.h"
#include "lane/lane.h"
#include "schedule/schedule.h"
#include "schedule/scheduler.h"
#include "support/clock.h"
#include "support/statistics.h"
#include "tandem/session.h"

namespace tandem::cli {
namespace {

struct Flags {
  ModelFlags model;
  PlatformFlags platform;
  std::string strategy;
  std::vector<std::string> compare;
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

const char* sync_name(SyncMechanism sync) {
  switch (sync) {
    case SyncMechanism::kAuto:
      return "auto";
    case SyncMechanism::kSvm:
      return "svm";
    case SyncMechanism::kEvent:
      return "event";
  }
  return "unknown";
}

// --- what a schedule looks like ---

struct Division {
  std::vector<int> slices;  // per lane
  int split = 0;            // operators on more than one lane
  int waits = 0;            // crossings between lanes
};

Division divide(const Graph& graph, const Schedule& schedule) {
  Division division;
  std::vector<std::set<size_t>> lanes(graph.operators().size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    division.slices.push_back(static_cast<int>(schedule.lanes[lane].size()));
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      lanes[scheduled.slice.op].insert(lane);
      division.waits += static_cast<int>(scheduled.waits.size());
    }
  }
  division.split = static_cast<int>(std::count_if(
      lanes.begin(), lanes.end(), [](const std::set<size_t>& set) { return set.size() > 1; }));
  return division;
}

// --- timing ---

// One strategy under measurement.
struct Contender {
  std::string strategy;
  std::unique_ptr<Session> session;
  std::vector<double> milliseconds;       // of inferences
  std::vector<double> call_milliseconds;  // of run(), copies of inputs and outputs included
  int preempted = 0;                      // runs in which a thread lost its core for a while
  std::vector<HostTensor> outputs;        // of the last run
};

StatusOr<Contender> prepare(const std::string& strategy, const Model& model,
                            const std::shared_ptr<Platform>& platform, const Flags& flags) {
  SessionOptions options;
  options.strategy = strategy;
  options.sync = flags.sync;
  options.deadline = std::chrono::milliseconds(flags.deadline_ms);
  options.fall_back = flags.fall_back;
  options.calibration_dir = flags.platform.calibration_dir();
  options.keep_all = flags.verify;
  options.check_numerics = flags.check_numerics;
  const Progress progress("preparing " + strategy);
  Contender contender;
  contender.strategy = strategy;
  TANDEM_ASSIGN_OR_RETURN(contender.session, Session::create(model, platform, options));
  return contender;
}

// Runs all contenders in turn, so that whatever disturbs the machine disturbs all alike; each round
// starts with the next one. Ends early, after a whole round, if the user interrupts it.
Status measure(std::vector<Contender>& contenders, const Flags& flags,
               const std::vector<HostTensor>& inputs) {
  const InterruptWatch interrupt;
  Progress progress("running", flags.warmup + flags.runs);
  for (int round = 0; round < flags.warmup + flags.runs; ++round, progress.step()) {
    if (InterruptWatch::seen()) return {};
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(round + i) % contenders.size()];
      const PreemptionWatch watch;
      const Clock::time_point begin = Clock::now();
      TANDEM_RETURN_IF_ERROR(contender.session->run(inputs, &contender.outputs)
                                 .with_context("strategy " + contender.strategy));
      const double call_us = microseconds(Clock::now() - begin);
      if (round < flags.warmup) continue;
      // Only counted, not left out: here the engine's own threads can get into each other's way,
      // and that is its time.
      if (watch.preempted()) ++contender.preempted;
      contender.milliseconds.push_back(contender.session->last_run_us() / 1000);
      contender.call_milliseconds.push_back(call_us / 1000);
    }
  }
  return {};
}

// The bound on what two lanes can reach together: each does its share at the speed it has alone.
struct Limit {
  double best_ms = 0;   // of the lanes alone
  double speed_up = 0;  // over the best: 1 + t_fast / t_slow
};

std::optional<Limit> limit_of(const std::vector<Contender>& contenders) {
  double cpu = 0;
  double gpu = 0;
  for (const Contender& contender : contenders) {
    const double median = summarize(contender.milliseconds).median;
    if (contender.strategy == "cpu") cpu = median;
    if (contender.strategy == "gpu") gpu = median;
  }
  if (cpu <= 0 || gpu <= 0) return std::nullopt;
  return Limit{std::min(cpu, gpu), 1 + std::min(cpu, gpu) / std::max(cpu, gpu)};
}

// --- reports ---

nlohmann::json summary_json(const Summary& summary) {
  return {{"median", summary.median},
          {"p90", summary.p90},
          {"min", summary.min},
          {"spread", summary.spread},
          {"runs", summary.count}};
}

nlohmann::json contender_json(const Contender& contender, const Model& model,
                              const std::vector<std::string>& lane_names,
                              const std::optional<Limit>& limit) {
  const Session& session = *contender.session;
  const Division division = divide(model.graph(), session.schedule());
  nlohmann::json slices;
  for (size_t lane = 0; lane < division.slices.size(); ++lane) {
    slices[lane_names[lane]] = division.slices[lane];
  }
  const Summary time = summarize(contender.milliseconds);
  nlohmann::json json = {{"strategy", contender.strategy},
                         {"sync", sync_name(session.sync())},
                         {"time_ms", summary_json(time)},
                         {"call_ms", summary_json(summarize(contender.call_milliseconds))},
                         {"slices", slices},
                         {"preempted_runs", contender.preempted},
                         {"split_operators", division.split},
                         {"waits", division.waits},
                         {"arena_bytes", session.arena_bytes()},
                         {"arena_bytes_without_reuse", session.arena_bytes_without_reuse()},
                         {"fall_back_reason", session.fall_back_reason()},
                         {"initialization_ms",
                          {{"calibrate", session.times().calibrate_ms},
                           {"schedule", session.times().schedule_ms},
                           {"memory", session.times().memory_ms},
                           {"bind", session.times().bind_ms}}}};
  if (limit && time.median > 0) {
    json["speed_up_over_best_lane"] = limit->best_ms / time.median;
    json["share_of_limit"] = limit->best_ms / time.median / limit->speed_up;
  }
  return json;
}

void print_contender(const Contender& contender, const Model& model,
                     const std::vector<std::string>& lane_names,
                     const std::optional<Limit>& limit) {
  const Summary time = summarize(contender.milliseconds);
  const Division division = divide(model.graph(), contender.session->schedule());
  std::string line =
      fmt::format("{:8} median {:9.3f} ms   p90 {:9.3f}   min {:9.3f}   spread {:4.1f}%",
                  contender.strategy, time.median, time.p90, time.min, 100 * time.spread);
  if (limit && time.median > 0) {
    const double speed_up = limit->best_ms / time.median;
    line += fmt::format("   {:.3f}x the best lane, {:.2f} of the limit", speed_up,
                        speed_up / limit->speed_up);
  }
  if (contender.preempted > 0) {
    line += fmt::format("   ({} runs were preempted)", contender.preempted);
  }
  fmt::print("{}\n", line);
  std::vector<std::string> slices;
  for (size_t lane = 0; lane < division.slices.size(); ++lane) {
    slices.push_back(fmt::format("{} {}", lane_names[lane], division.slices[lane]));
  }
  const SessionTimes& times = contender.session->times();
  fmt::print(
      "         slices: {}; {} operators split, {} waits (sync {}); arena {:.1f} MB; ready after "
      "{:.0f} ms (calibrating {:.0f}, scheduling {:.0f}, memory {:.0f}, binding {:.0f})\n",
      fmt::join(slices, ", "), division.split, division.waits, sync_name(contender.session->sync()),
      static_cast<double>(contender.session->arena_bytes()) / 1e6,
      times.calibrate_ms + times.schedule_ms + times.memory_ms + times.bind_ms, times.calibrate_ms,
      times.schedule_ms, times.memory_ms, times.bind_ms);
  if (!contender.session->fall_back_reason().empty()) {
    fmt::print(stderr, "warning: {} fell back: {}\n", contender.strategy,
               contender.session->fall_back_reason());
  }
}

nlohmann::json verification_json(const Verification& verification) {
  nlohmann::json json = {{"checked", verification.checked},
                         {"tolerance", kVerifyTolerance},
                         {"worst_error", verification.worst_error},
                         {"worst_operator", verification.worst_op},
                         {"agrees", !verification.first.has_value()}};
  if (verification.first) {
    const Divergence& first = *verification.first;
    json["first_divergence"] = {{"operator", first.op},         {"kind", first.kind},
                                {"lanes", first.lanes},         {"error", first.error},
                                {"tolerance", first.tolerance}, {"element", first.element},
                                {"value", first.value},         {"expected", first.expected}};
  }
  return json;
}

Status divergence_error(const std::string& strategy, const Divergence& first) {
  return internal_error(fmt::format(
      "strategy {}: {} {} is the first operator that diverges from the reference: element {} is "
      "{:.9g}, not {:.9g} (off by {:.3g}, allowed {:.3g}); it ran on {}",
      strategy, first.kind, first.op, first.element, first.value, first.expected, first.error,
      first.tolerance, first.lanes));
}

std::string specs_text(const std::vector<TensorSpec>& specs) {
  std::string text;
  for (const TensorSpec& spec : specs) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", spec.name, to_string(spec.type),
                        to_string(spec.dims));
  }
  return text;
}

// --- the command ---

std::vector<std::string> strategies(const Flags& flags) {
  if (!flags.compare.empty()) return flags.compare;
  if (!flags.strategy.empty()) return {flags.strategy};
  if (!flags.platform.use_gpu()) return {"intra"};
  return {*flags.platform.use_gpu() ? "gpu" : "cpu"};
}

Status run(const Flags& flags) {
  const Conditions conditions;
  const std::vector<std::string> names = strategies(flags);
  // Before anything slow.
  for (const std::string& name : names) TANDEM_RETURN_IF_ERROR(make_scheduler(name).status());
  TANDEM_ASSIGN_OR_RETURN(const Model model, flags.model.load());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs,
                          make_inputs(model, flags.inputs, flags.seed));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  const std::vector<std::string> lane_names = platform->lane_names();

  std::vector<Contender> contenders;
  for (const std::string& name : names) {
    TANDEM_ASSIGN_OR_RETURN(Contender contender, prepare(name, model, platform, flags));
    contenders.push_back(std::move(contender));
  }
  TANDEM_RETURN_IF_ERROR(measure(contenders, flags, inputs));
  const size_t rounds = contenders.front().milliseconds.size();
  if (rounds == 0) return cancelled("interrupted before the first timed run");
  Status outcome;
  if (rounds < static_cast<size_t>(flags.runs)) {
    outcome = cancelled(fmt::format("interrupted after {} of {} runs", rounds, flags.runs));
  }

  nlohmann::json verifications;
  if (flags.verify) {
    for (const Contender& contender : contenders) {
      TANDEM_ASSIGN_OR_RETURN(const Verification verification,
                              verify(model, *contender.session, inputs, lane_names));
      verifications[contender.strategy] = verification_json(verification);
      if (verification.first && outcome.ok()) {
        outcome = divergence_error(contender.strategy, *verification.first);
      }
      if (!flags.json) {
        fmt::print("verify {}: {} operators compared with the reference, worst error {:.2g} ({})\n",
                   contender.strategy, verification.checked, verification.worst_error,
                   verification.worst_op.empty() ? "all exact" : verification.worst_op);
      }
    }
  }
  if (!flags.output.empty()) {
    for (const Contender& contender : contenders) {
      const std::string folder =
          flags.compare.empty() ? flags.output : flags.output + "/" + contender.strategy;
      TANDEM_RETURN_IF_ERROR(write_outputs(model, contender.outputs, folder));
    }
  }

  const std::optional<Limit> limit = limit_of(contenders);
  if (flags.json) {
    nlohmann::json json = {{"model", model.name()},
                           {"operators", model.graph().operators().size()},
                           {"conditions", conditions.to_json(*platform)},
                           {"strategies", nlohmann::json::array()}};
    for (const Contender& contender : contenders) {
      json["strategies"].push_back(contender_json(contender, model, lane_names, limit));
    }
    if (limit) json["limit"] = limit->speed_up;
    if (flags.verify) json["verify"] = verifications;
    fmt::print("{}\n", json.dump(2));
    return outcome;
  }
  fmt::print("{}: {} operators; inputs {}; outputs {}\n", model.name(),
             model.graph().operators().size(), specs_text(model.inputs()),
             specs_text(model.outputs()));
  for (const Contender& contender : contenders) {
    print_contender(contender, model, lane_names, limit);
  }
  if (limit) {
    fmt::print("limit    {:.3f}x the best lane: 1 + t_fast / t_slow of cpu and gpu alone\n",
               limit->speed_up);
  }
  fmt::print("{}", conditions.to_text(*platform));
  return outcome;
}

}  // namespace

void add_run_command(CLI::App& app, Status* outcome) {
  CLI::App* command = app.add_subcommand("run", "Run a model, check it, time it");
  const auto flags = std::make_shared<Flags>();
  flags->model.add_to(*command);
  const std::string known = fmt::format("{}", fmt::join(scheduler_names(), ", "));
  CLI::Option* strategy = command->add_option(
      "--strategy", flags->strategy,
      fmt::format("How work is divided over lanes: {} (default: intra)", known));
  command
      ->add_option("--compare", flags->compare,
                   "Time these strategies interleaved, such as cpu,gpu,intra")
      ->delimiter(',')
      ->excludes(strategy);
  command
      ->add_option("--input", flags->inputs,
                   "NAME=FILE.npy, NAME=random, or without NAME if there is one input "
                   "(default: random)")
      ->allow_extra_args(false);
  command->add_option("--seed", flags->seed, "Seed of random inputs")->capture_default_str();
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
  const std::map<std::string, SyncMechanism> mechanisms = {{"auto", SyncMechanism::kAuto},
                                                           {"svm", SyncMechanism::kSvm},
                                                           {"event", SyncMechanism::kEvent}};
  command
      ->add_option("--sync", flags->sync,
                   "How lanes wait for each other: auto, svm or event (default: auto)")
      ->transform(CLI::CheckedTransformer(mechanisms))
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
  flags->platform.add_to(*command);
  command->callback([flags, outcome] { *outcome = run(*flags); });
}

}  // namespace tandem::cli
