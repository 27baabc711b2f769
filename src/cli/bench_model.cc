// `tandem bench model`: whole networks, strategies in turn, beside ONNX Runtime in a process of its
// own.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/bench.h"
#include "cli/conditions.h"
#include "cli/contest.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/network_file.h"
#include "cli/onnxruntime.h"
#include "cli/probe.h"
#include "cli/progress.h"
#include "cli/temporary_folder.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "graph/graph.h"
#include "lane/lane.h"
#include "platform/topology.h"
#include "schedule/scheduler.h"
#include "zoo/zoo.h"

namespace tandem::cli {
namespace {

// Outputs that are further apart than this, relative to the greatest magnitude, are not the same
// network's. tools/compare_zoo.py judges more finely.
constexpr double kSameOutputs = 1e-2;

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

// --- ONNX Runtime's part ---

// The first CPU lane's cores come first: with one thread ONNX Runtime has the core of that lane.
std::vector<int> cores_for(const Platform& platform, int threads) {
  std::vector<int> cores;
  for (const auto& lane : platform.lanes()) {
    cores.insert(cores.end(), lane->info().cores.begin(), lane->info().cores.end());
  }
  if (static_cast<int>(cores.size()) > threads) cores.resize(threads);
  return cores;
}

struct Rival {
  std::optional<OnnxRuntime> runtime;  // until it fails
  std::string version;
  std::vector<int> cores;
  int threads = 1;
  double load_ms = 0;
  std::vector<HostTensor> outputs;
  std::optional<OnnxRuntime::Memory> memory;
  Samples milliseconds{kLeastCleanShare};
  std::string error;     // why there are no figures, or not all
  bool missing = false;  // not installed, and not asked for

  void fail(const Status& status) {
    runtime.reset();
    error = status.message();
  }
  bool has_time() const { return error.empty() && milliseconds.summary().median > 0; }
};

Rival start_rival(const BenchModelFlags& flags, const Platform& platform, const Model& model,
                  const std::string& file, const std::vector<HostTensor>& inputs,
                  const std::string& folder) {
  Rival rival;
  rival.threads = flags.onnxruntime_threads;
  rival.cores = cores_for(platform, rival.threads);
  const Progress progress(model.name() + ": preparing ONNX Runtime");
  OnnxRuntimeOptions options;
  options.python = flags.onnxruntime;
  options.threads = rival.threads;
  options.cores = rival.cores;
  options.patience = std::chrono::seconds(flags.onnxruntime_seconds);
  StatusOr<OnnxRuntime> runtime = OnnxRuntime::start(options, file, model.inputs(), inputs, folder);
  if (!runtime.ok()) {
    rival.fail(runtime.status());
    rival.missing = flags.onnxruntime.empty() && runtime.status().code() == StatusCode::kNotFound;
    return rival;
  }
  rival.version = runtime->version();
  rival.load_ms = runtime->load_ms();
  rival.outputs = runtime->outputs();
  rival.runtime.emplace(*std::move(runtime));
  const StatusOr<OnnxRuntime::Memory> memory = rival.runtime->measure_memory();
  if (memory.ok()) {
    rival.memory = *memory;
  } else {
    rival.fail(memory.status());
  }
  return rival;
}

// A failure of ONNX Runtime's ends its part only.
void run_once(Rival& rival, bool timed) {
  if (!rival.runtime) return;
  const StatusOr<OnnxRuntime::Run> run = rival.runtime->run();
  if (!run.ok()) {
    rival.fail(run.status());
  } else if (timed) {
    rival.milliseconds.add(run->milliseconds, run->preempted);
  }
}

// --- agreement ---

double element(const HostTensor& tensor, int64_t i) {
  return tensor.type == DataType::kFloat32 ? tensor.data<float>()[i]
                                           : static_cast<double>(tensor.data<int64_t>()[i]);
}

struct Difference {
  double absolute = 0;
  double relative = 0;  // to the output's greatest magnitude
};

// Of all outputs, the greatest; infinite where shapes differ, or either has a NaN.
Difference difference(const std::vector<HostTensor>& outputs,
                      const std::vector<HostTensor>& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Difference worst;
  if (outputs.size() != expected.size()) return {kInfinity, kInfinity};
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].dims != expected[o].dims) return {kInfinity, kInfinity};
    double greatest = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < outputs[o].size(); ++i) {
      const double off = std::abs(element(outputs[o], i) - element(expected[o], i));
      greatest = std::isnan(off) ? kInfinity : std::max(greatest, off);
      magnitude = std::max(magnitude, std::abs(element(expected[o], i)));
    }
    worst.absolute = std::max(worst.absolute, greatest);
    if (greatest > 0) worst.relative = std::max(worst.relative, greatest / magnitude);
  }
  return worst;
}

// --- one model ---

struct Report {
  std::string name;
  std::optional<Model> model;
  std::vector<Contender> contenders;
  Rival rival;
  Probe before;
  Probe after;
  nlohmann::json conditions;

  std::optional<Limit> limit() const { return limit_of(contenders); }
  // Of the strategy's time to ONNX Runtime's.
  std::optional<double> ratio(const Contender& contender) const {
    if (!rival.has_time()) return std::nullopt;
    return contender.milliseconds.summary().median / rival.milliseconds.summary().median;
  }
  std::optional<Difference> difference_of(const Contender& contender) const {
    if (rival.outputs.empty()) return std::nullopt;
    return difference(contender.outputs, rival.outputs);
  }
};

// Loads the model, for ONNX Runtime, too: all that takes a folder of files.
StatusOr<std::vector<HostTensor>> load_for_both(const BenchModelFlags& flags,
                                                const Candidate& candidate,
                                                const Platform& platform, Report& report) {
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
  if (flags.onnxruntime != "none") {
    report.rival = start_rival(flags, platform, *report.model, file, inputs, folder.path());
  } else {
    report.rival.error = "not asked for";
    report.rival.missing = true;
  }
  if (InterruptWatch::seen()) return cancelled("interrupted while it was loaded");
  return inputs;
}

StatusOr<Report> measure_model(const BenchModelFlags& flags, const Candidate& candidate,
                               const std::shared_ptr<Platform>& platform) {
  const Conditions conditions;
  Report report;
  report.name = candidate.name;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs,
                          load_for_both(flags, candidate, *platform, report));
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

  std::vector<Turn> turns;
  for (Contender& contender : report.contenders) {
    turns.emplace_back([&](bool timed) { return run_once(contender, inputs, timed); });
  }
  turns.emplace_back([&](bool timed) {
    run_once(report.rival, timed);
    return Status();
  });
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
  report.rival.runtime.reset();
  report.conditions = conditions.to_json(*platform);
  return report;
}

// --- reports ---

nlohmann::json times_json(const Samples& samples) {
  const Summary time = samples.summary();
  return {{"median_ms", time.median}, {"p90_ms", time.p90}, {"min_ms", time.min},
          {"spread", time.spread},    {"runs", time.count}, {"dropped_runs", samples.dropped()}};
}

nlohmann::json strategy_json(const Report& report, const Contender& contender,
                             const std::vector<std::string>& lane_names) {
  nlohmann::json json = times_json(contender.milliseconds);
  json.update(session_json(contender, *report.model, lane_names));
  if (const auto ratio = report.ratio(contender)) json["over_onnxruntime"] = *ratio;
  if (const auto off = report.difference_of(contender)) {
    json["max_difference"] = off->absolute;
    json["max_relative_difference"] = off->relative;
  }
  if (const auto limit = report.limit()) {
    const double speed_up = limit->best_ms / contender.milliseconds.summary().median;
    json["speed_up_over_best_lane"] = speed_up;
    json["share_of_limit"] = speed_up / limit->speed_up;
  }
  return json;
}

nlohmann::json rival_json(const Rival& rival) {
  nlohmann::json json = times_json(rival.milliseconds);
  json["version"] = rival.version;
  json["cores"] = rival.cores;
  json["load_ms"] = rival.load_ms;
  if (rival.memory) {
    json["memory"] = {{"arena_bytes", rival.memory->arena_bytes},
                      {"planned_bytes", rival.memory->planned_bytes}};
  }
  return json;
}

nlohmann::json report_json(const Report& report, const std::vector<std::string>& lane_names) {
  nlohmann::json json = {{"model", report.name},
                         {"operators", report.model->graph().operators().size()},
                         {"load_ms", load_times_json(report.model->load_times())},
                         {"strategies", nlohmann::json::object()},
                         {"onnxruntime_ms", nullptr},
                         {"onnxruntime_threads", report.rival.threads},
                         {"probe_before", to_json(report.before)},
                         {"probe_after", to_json(report.after)},
                         {"conditions", report.conditions}};
  for (const Contender& contender : report.contenders) {
    json["strategies"][contender.strategy] = strategy_json(report, contender, lane_names);
  }
  if (report.rival.has_time()) {
    json["onnxruntime_ms"] = report.rival.milliseconds.summary().median;
  }
  if (!report.rival.version.empty()) json["onnxruntime"] = rival_json(report.rival);
  if (!report.rival.error.empty()) json["onnxruntime_error"] = report.rival.error;
  if (const auto limit = report.limit()) json["limit"] = limit->speed_up;
  return json;
}

void print_report(const Report& report, const std::vector<std::string>& lane_names) {
  const auto line = [](const std::string& name, const Samples& samples) {
    const Summary time = samples.summary();
    std::string text =
        fmt::format("  {:12} median {:9.3f} ms   p90 {:9.3f}   min {:9.3f}   spread {:4.1f}%", name,
                    time.median, time.p90, time.min, 100 * time.spread);
    if (samples.dropped() > 0) text += fmt::format("   ({} runs left out)", samples.dropped());
    return text;
  };
  const LoadTimes& load = report.model->load_times();
  fmt::print("{}: {} operators; read in {:.0f} ms, imported in {:.0f}, passes {:.0f}\n",
             report.name, report.model->graph().operators().size(), load.parse_ms, load.import_ms,
             load.pass_ms);
  const std::optional<Limit> limit = report.limit();
  for (const Contender& contender : report.contenders) {
    std::string text = line(contender.strategy, contender.milliseconds);
    if (const auto ratio = report.ratio(contender)) {
      text += fmt::format("   {:.2f}x ONNX Runtime's time", *ratio);
    }
    if (limit) {
      text +=
          fmt::format(", {:.2f} of the limit",
                      limit->best_ms / contender.milliseconds.summary().median / limit->speed_up);
    }
    if (const auto off = report.difference_of(contender)) {
      text += fmt::format(", outputs differ by {:.1e}", off->absolute);
    }
    fmt::print("{}\n{}", text, session_text(contender, *report.model, lane_names, "    "));
  }
  if (report.rival.has_time()) {
    fmt::print("{}   version {}, {} threads on cores {}, loaded in {:.0f} ms\n",
               line("onnxruntime", report.rival.milliseconds), report.rival.version,
               report.rival.threads, to_processor_list(report.rival.cores), report.rival.load_ms);
  }
  if (report.rival.memory) {
    fmt::print("    memory: arena {:.1f} MB, activations as planned {:.1f} MB\n",
               static_cast<double>(report.rival.memory->arena_bytes) / 1e6,
               static_cast<double>(report.rival.memory->planned_bytes) / 1e6);
  }
  fmt::print("  probe before: {}\n  probe after:  {}\n", to_text(report.before),
             to_text(report.after));
}

// The table at the end: times, and for single lanes their ratio to ONNX Runtime's.
void print_table(const std::vector<nlohmann::json>& models, const BenchModelFlags& flags) {
  std::string header = fmt::format("\n{:22}", "milliseconds");
  for (const std::string& strategy : flags.strategies) {
    header += fmt::format(" {:>10} {:>6}", strategy, "/ORT");
  }
  fmt::print("{} {:>12} {:>8}\n", header, "onnxruntime", "limit");
  for (const nlohmann::json& model : models) {
    if (!model.contains("strategies")) continue;
    std::string row = fmt::format("{:22}", model["model"].get<std::string>());
    for (const std::string& strategy : flags.strategies) {
      const nlohmann::json& times = model["strategies"][strategy];
      row += fmt::format(" {:10.2f} {:>6}", times["median_ms"].get<double>(),
                         times.contains("over_onnxruntime")
                             ? fmt::format("{:.2f}", times["over_onnxruntime"].get<double>())
                             : "-");
    }
    fmt::print("{} {:>12} {:>8}\n", row,
               model["onnxruntime_ms"].is_null()
                   ? "-"
                   : fmt::format("{:.2f}", model["onnxruntime_ms"].get<double>()),
               model.contains("limit") ? fmt::format("{:.2f}", model["limit"].get<double>()) : "-");
  }
}

// What is wrong with a report, if anything.
Status judge(const Report& report) {
  if (!report.rival.error.empty() && !report.rival.missing) {
    return failed_precondition(
        fmt::format("{}: ONNX Runtime: {}", report.name, report.rival.error));
  }
  for (const Contender& contender : report.contenders) {
    const auto off = report.difference_of(contender);
    if (off && !(off->relative <= kSameOutputs)) {
      return internal_error(fmt::format(
          "{}: the outputs of strategy {} differ from ONNX Runtime's by {:.2g}, {:.2g} of the "
          "greatest; 'tandem run --verify' looks for the operator",
          report.name, contender.strategy, off->absolute, off->relative));
    }
  }
  return {};
}

}  // namespace

Status bench_model(const BenchModelFlags& flags) {
  for (const std::string& name : flags.strategies) {
    TANDEM_RETURN_IF_ERROR(make_scheduler(name).status());
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, candidates_of(flags));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  const Conditions conditions;
  const std::vector<std::string> lane_names = platform->lane_names();
  std::vector<nlohmann::json> models;
  // A model that fails does not take the others' figures with it.
  std::vector<Status> failures;
  std::set<std::string> missing;
  for (const Candidate& candidate : candidates) {
    const StatusOr<Report> report = measure_model(flags, candidate, platform);
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
    if (const Status verdict = judge(*report); !verdict.ok()) failures.push_back(verdict);
    if (report->rival.missing && flags.onnxruntime != "none" &&
        missing.insert(report->rival.error).second) {
      fmt::print(stderr, "warning: no figures of ONNX Runtime: {}\n", report->rival.error);
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
