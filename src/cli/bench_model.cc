// `tandem bench model`: whole networks, strategies in turn, beside other engines in processes of
// their own.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/bench.h"
#include "cli/conditions.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/model_report.h"
#include "cli/network_file.h"
#include "cli/probe.h"
#include "cli/progress.h"
#include "cli/temporary_folder.h"
#include "fmt/format.h"
#include "graph/graph.h"
#include "lane/lane.h"
#include "platform/simulated_platform.h"
#include "runtime/planner.h"
#include "schedule/scheduler.h"
#include "support/clock.h"
#include "zoo/zoo.h"

namespace tandem::cli {
namespace {

// --- which models ---

struct Candidate {
  std::string name;  // as in `tandem zoo list`, or the file's path
  bool built_in = false;
};

StatusOr<std::vector<Candidate>> candidates_of(const BenchModelFlags& flags) {
  constexpr std::string_view kZooPrefix = "zoo:";
  constexpr std::string_view kTinyPrefix = "tiny_";
  std::set<std::string> built_in;
  std::vector<Candidate> candidates;
  for (const zoo::Entry& entry : zoo::list()) {
    built_in.insert(entry.name);
    if (flags.all && !entry.name.starts_with(kTinyPrefix)) candidates.push_back({entry.name, true});
  }
  for (std::string name : flags.models) {
    const bool prefixed = name.starts_with(kZooPrefix);
    if (prefixed) name.erase(0, kZooPrefix.size());
    const bool known = built_in.contains(name);
    std::error_code error;
    if (!known && (prefixed || !std::filesystem::exists(name, error))) {
      return not_found(
          fmt::format("{} is neither an ONNX file nor a network of 'tandem zoo list'", name));
    }
    candidates.push_back({name, known});
  }
  if (candidates.empty()) {
    return invalid_argument("give models, or --all for the networks of 'tandem zoo list'");
  }
  return candidates;
}

// --- the other engines' part ---

// The first CPU lane's cores come first: with one thread an engine has the core of that lane.
std::vector<int> cores_for(const Platform& platform, int threads) {
  std::vector<int> cores;
  for (const auto& lane : platform.lanes()) {
    cores.insert(cores.end(), lane->info().cores.begin(), lane->info().cores.end());
  }
  if (static_cast<int>(cores.size()) > threads) cores.resize(threads);
  return cores;
}

Rival start_rival(const EngineKind& kind, const EngineFlags& flags, const Platform& platform,
                  const Model& model, const std::string& file,
                  const std::vector<HostTensor>& inputs, const std::string& folder) {
  Rival rival;
  rival.kind = &kind;
  rival.threads = flags.threads;
  rival.cores = cores_for(platform, rival.threads);
  if (!flags.wanted()) {
    rival.error = "not asked for";
    rival.missing = true;
    return rival;
  }
  if (dynamic_cast<const SimulatedPlatform*>(&platform) != nullptr) {
    rival.error = fmt::format("{} is of this machine, and the lanes are simulated", kind.name);
    rival.missing = flags.by_default();
    return rival;
  }
  const Progress progress(fmt::format("{}: preparing {}", model.name(), kind.name));
  StatusOr<EngineProcess> process =
      EngineProcess::start(kind, flags, rival.cores, file, model.inputs(), inputs, folder);
  if (!process.ok()) {
    rival.fail(process.status());
    rival.missing = flags.by_default() && process.status().code() == StatusCode::kNotFound;
    return rival;
  }
  rival.version = process->version();
  rival.load_ms = process->load_ms();
  rival.facts = process->facts();
  rival.outputs = process->outputs();
  rival.process.emplace(*std::move(process));
  // Not all engines and versions tell of their memory. If it was more than that, runs fail, too.
  const StatusOr<EngineProcess::Memory> memory = rival.process->measure_memory();
  if (memory.ok()) rival.memory = *memory;
  return rival;
}

// A failure of another engine's ends its part only.
void run_once(Rival& rival, bool timed) {
  if (!rival.process) return;
  const StatusOr<EngineProcess::Run> run = rival.process->run();
  if (!run.ok()) {
    rival.fail(run.status());
  } else if (timed) {
    rival.milliseconds.add(run->milliseconds, run->preempted);
  }
}

// --- one model ---

// Loads the model, for the other engines, too: all that takes a folder of files.
StatusOr<std::vector<HostTensor>> load_for_all(const BenchModelFlags& flags,
                                               const Candidate& candidate, const Platform& platform,
                                               ModelReport& report) {
  // An end at once would leave the folder behind, with hundreds of megabytes in it.
  const InterruptWatch interrupt;
  TANDEM_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  std::string file = candidate.name;
  if (candidate.built_in) {
    file = folder.path() + "/model.onnx";
    TANDEM_RETURN_IF_ERROR(write_network(candidate.name, 1, file));
  }
  TANDEM_ASSIGN_OR_RETURN(report.model, flags.load.load(file));
  TANDEM_ASSIGN_OR_RETURN(std::vector<HostTensor> inputs, make_inputs(*report.model, {}, 1));
  if (std::find(flags.strategies.begin(), flags.strategies.end(), "joint") !=
      flags.strategies.end()) {
    const Progress progress(report.model->name() + ": getting ready in a process of its own");
    const StatusOr<Initialization> initialization =
        measure_initialization(file, flags.shared_arguments, folder.path());
    if (InterruptWatch::seen()) return cancelled("interrupted while it was loaded");
    TANDEM_RETURN_IF_ERROR(initialization.status());
    report.initialization = *initialization;
  }
  for (size_t i = 0; i < kEngines.size(); ++i) {
    report.rivals.push_back(start_rival(*kEngines[i], flags.engines[i], platform, *report.model,
                                        file, inputs, folder.path()));
    if (InterruptWatch::seen()) return cancelled("interrupted while it was loaded");
  }
  return inputs;
}

// What the contenders were predicted to take. Sessions on a single lane look at no costs: theirs
// are predicted afterwards, if the others' are.
StatusOr<std::vector<double>> predict(const std::vector<Contender>& contenders, const Model& model,
                                      const std::shared_ptr<Platform>& platform,
                                      const SessionOptions& options) {
  std::vector<double> predicted_ms;
  bool known = false;
  for (const Contender& contender : contenders) {
    predicted_ms.push_back(contender.session->prediction().makespan_us / 1000);
    known = known || predicted_ms.back() > 0;
  }
  if (!known || std::find(predicted_ms.begin(), predicted_ms.end(), 0) == predicted_ms.end()) {
    return predicted_ms;
  }
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + options.deadline));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Planner> planner,
                          Planner::create(model.shared_graph(), platform, crew, options));
  TANDEM_RETURN_IF_ERROR(planner->prepare_costs());
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (predicted_ms[i] > 0) continue;
    TANDEM_ASSIGN_OR_RETURN(const Timeline timeline,
                            planner->predict(contenders[i].session->schedule()));
    predicted_ms[i] = timeline.makespan_us / 1000;
  }
  return predicted_ms;
}

StatusOr<ModelReport> measure_model(const BenchModelFlags& flags, const Candidate& candidate,
                                    const std::shared_ptr<Platform>& platform) {
  const Conditions conditions;
  ModelReport report;
  report.name = candidate.name;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs,
                          load_for_all(flags, candidate, *platform, report));
  const Model& model = *report.model;
  SessionOptions options;
  options.calibration_dir = flags.platform.calibration_dir();
  flags.costs.apply_to(&options);
  flags.search.apply_to(&options);
  options.deadline = std::chrono::milliseconds(flags.deadline_ms);
  for (const std::string& strategy : flags.strategies) {
    TANDEM_ASSIGN_OR_RETURN(Contender contender, prepare(strategy, model, platform, options));
    report.contenders.push_back(std::move(contender));
  }
  TANDEM_ASSIGN_OR_RETURN(report.predicted_ms,
                          predict(report.contenders, model, platform, options));

  std::vector<Turn> turns;
  for (Contender& contender : report.contenders) {
    turns.emplace_back([&](bool timed) { return run_once(contender, inputs, timed); });
  }
  for (Rival& rival : report.rivals) {
    turns.emplace_back([&](bool timed) {
      run_once(rival, timed);
      return Status();
    });
  }
  std::vector<int> cores;
  for (const auto& lane : platform->lanes()) {
    cores.insert(cores.end(), lane->info().cores.begin(), lane->info().cores.end());
  }
  report.before = probe(cores);
  TANDEM_RETURN_IF_ERROR(take_turns(turns, flags.warmup, flags.runs, candidate.name + ": running"));
  if (report.contenders.front().milliseconds.count() < flags.runs) {
    return cancelled("interrupted before all runs were made");
  }
  report.after = probe(cores);
  for (Rival& rival : report.rivals) rival.process.reset();
  report.conditions = conditions.to_json(*platform);
  return report;
}

// `inter` is the better of its two kinds, and `exact` is for small problems.
std::vector<std::string> usual_strategies(const Platform& platform) {
  const bool any_queue = std::any_of(platform.lanes().begin(), platform.lanes().end(),
                                     [](const auto& lane) { return lane->info().asynchronous; });
  if (!any_queue) return {"cpu", "inter", "intra", "chain", "joint"};
  return {"cpu", "gpu", "inter", "intra", "chain", "joint"};
}

}  // namespace

Status bench_model(const BenchModelFlags& given) {
  for (const std::string& name : given.strategies) {
    TANDEM_RETURN_IF_ERROR(make_scheduler(name).status());
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, candidates_of(given));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(given.platform));
  BenchModelFlags flags = given;
  if (flags.strategies.empty()) flags.strategies = usual_strategies(*platform);
  const Conditions conditions;
  const std::vector<std::string> lane_names = platform->lane_names();
  std::vector<nlohmann::json> models;
  // A model that fails does not take the others' figures with it.
  std::vector<Status> failures;
  std::set<std::string> notes;
  for (const Candidate& candidate : candidates) {
    const StatusOr<ModelReport> report = measure_model(flags, candidate, platform);
    if (!report.ok()) {
      // Errors of a file begin with its name.
      const Status failure = report.status();
      failures.push_back(failure.message().starts_with(candidate.name)
                             ? failure
                             : failure.with_context(candidate.name));
      models.push_back({{"model", candidate.name}, {"error", report.status().to_string()}});
      if (report.status().code() == StatusCode::kCancelled) break;
      continue;
    }
    models.push_back(report_json(*report, lane_names));
    if (!flags.json) print_report(*report, lane_names);
    const std::vector<Status> verdicts = judge(*report);
    failures.insert(failures.end(), verdicts.begin(), verdicts.end());
    for (size_t i = 0; i < report->rivals.size(); ++i) {
      const Rival& rival = report->rivals[i];
      if (!rival.missing || !flags.engines[i].wanted()) continue;
      const std::string note = fmt::format("no figures of {}: {}", rival.kind->name, rival.error);
      if (notes.insert(note).second) fmt::print(stderr, "warning: {}\n", note);
    }
  }
  if (flags.json) {
    const nlohmann::json report = {{"models", models},
                                   {"program_cache", program_cache_json(*platform)},
                                   {"conditions", conditions.to_json(*platform)}};
    fmt::print("{}\n", report.dump(2));
  } else {
    print_table(models, flags);
    fmt::print("{}", conditions.to_text(*platform));
  }
  if (failures.empty()) return {};
  for (size_t i = 1; i < failures.size(); ++i) {
    fmt::print(stderr, "tandem: {}\n", failures[i].to_string());
  }
  return failures.front();
}

}  // namespace tandem::cli
