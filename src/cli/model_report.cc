#include "cli/model_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/conditions.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "graph/graph.h"
#include "platform/topology.h"

namespace tandem::cli {
namespace {

// Outputs that are further apart than this, relative to the greatest magnitude, are not the same
// network's. tools/compare_zoo.py judges more finely.
constexpr double kSameOutputs = 1e-2;

// --- agreement ---

double element(const HostTensor& tensor, int64_t i) {
  return tensor.type == DataType::kFloat32 ? tensor.data<float>()[i]
                                           : static_cast<double>(tensor.data<int64_t>()[i]);
}

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

// --- reports ---

nlohmann::json times_json(const Samples& samples) {
  const Summary time = samples.summary();
  return {{"median_ms", time.median}, {"p90_ms", time.p90}, {"min_ms", time.min},
          {"spread", time.spread},    {"runs", time.count}, {"dropped_runs", samples.dropped()}};
}

nlohmann::json strategy_json(const ModelReport& report, size_t index,
                             const std::vector<std::string>& lane_names) {
  const Contender& contender = report.contenders[index];
  nlohmann::json json = times_json(contender.milliseconds);
  if (report.predicted_ms[index] > 0) json["predicted_ms"] = report.predicted_ms[index];
  json.update(session_json(contender, *report.model, lane_names));
  for (const Rival& rival : report.rivals) {
    if (const auto ratio = rival.ratio(contender)) {
      json[fmt::format("over_{}", rival.kind->key)] = *ratio;
    }
  }
  if (const auto off = difference_of(contender, report.rivals.front())) {
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

// Of all strategies' outputs from this engine's, relative to the greatest output.
std::optional<double> greatest_difference(const ModelReport& report, const Rival& rival) {
  std::optional<double> greatest;
  for (const Contender& contender : report.contenders) {
    const auto off = difference_of(contender, rival);
    if (off) greatest = std::max(greatest.value_or(0), off->relative);
  }
  return greatest;
}

nlohmann::json rival_json(const ModelReport& report, const Rival& rival) {
  nlohmann::json json = times_json(rival.milliseconds);
  json["preempted_runs"] = rival.milliseconds.disturbed();
  json.update(rival.facts);
  if (const auto off = greatest_difference(report, rival)) json["max_relative_difference"] = *off;
  json["version"] = rival.version;
  json["cores"] = rival.cores;
  json["load_ms"] = rival.load_ms;
  if (rival.memory) {
    json["memory"] = {{"arena_bytes", rival.memory->arena_bytes},
                      {"planned_bytes", rival.memory->planned_bytes}};
  }
  return json;
}

}  // namespace

std::optional<Difference> difference_of(const Contender& contender, const Rival& rival) {
  if (rival.outputs.empty()) return std::nullopt;
  return difference(contender.outputs, rival.outputs);
}

nlohmann::json report_json(const ModelReport& report, const std::vector<std::string>& lane_names) {
  nlohmann::json json = {{"model", report.name},
                         {"operators", report.model->graph().operators().size()},
                         {"load_ms", load_times_json(report.model->load_times())},
                         {"strategies", nlohmann::json::object()},
                         {"probe_before", to_json(report.before)},
                         {"probe_after", to_json(report.after)},
                         {"conditions", report.conditions}};
  for (size_t i = 0; i < report.contenders.size(); ++i) {
    json["strategies"][report.contenders[i].strategy] = strategy_json(report, i, lane_names);
  }
  if (report.initialization) json.update(to_json(*report.initialization));
  for (const Rival& rival : report.rivals) {
    const std::string key = rival.kind->key;
    json[key + "_ms"] = nullptr;
    if (rival.has_time()) json[key + "_ms"] = rival.milliseconds.summary().median;
    json[key + "_threads"] = rival.threads;
    if (!rival.version.empty()) {
      json[key] = rival_json(report, rival);
      json[key + "_init_ms"] = rival.load_ms;
    }
    if (!rival.error.empty()) json[key + "_error"] = rival.error;
  }
  const auto limit = report.limit();
  if (limit) json["limit"] = limit->speed_up;
  if (const Contender* joint = report.joint()) {
    if (limit) {
      const double speed_up = limit->best_ms / joint->milliseconds.summary().median;
      json["speedup_joint"] = speed_up;
      json["of_limit"] = speed_up / limit->speed_up;
    }
  }
  return json;
}

void print_report(const ModelReport& report, const std::vector<std::string>& lane_names) {
  const auto line = [](const std::string& name, const Samples& samples) {
    const Summary time = samples.summary();
    std::string text =
        fmt::format("  {:12} median {:9.3f} ms   p90 {:9.3f}   min {:9.3f}   spread {:4.1f}%", name,
                    time.median, time.p90, time.min, 100 * time.spread);
    if (samples.dropped() > 0) text += fmt::format("   ({} runs left out)", samples.dropped());
    return text;
  };
  fmt::print("{}: {} operators\n", report.name, report.model->graph().operators().size());
  const std::optional<Limit> limit = report.limit();
  for (size_t i = 0; i < report.contenders.size(); ++i) {
    const Contender& contender = report.contenders[i];
    std::string text = line(contender.strategy, contender.milliseconds);
    if (const double predicted = report.predicted_ms[i]; predicted > 0) {
      text += fmt::format("   predicted {:.3f} ({:+.0f}%)", predicted,
                          100 * (predicted / contender.milliseconds.summary().median - 1));
    }
    std::vector<std::string> notes;
    for (const Rival& rival : report.rivals) {
      if (const auto ratio = rival.ratio(contender)) {
        notes.push_back(fmt::format("{:.2f}x {}'s time", *ratio, rival.kind->name));
      }
    }
    if (limit) {
      notes.push_back(
          fmt::format("{:.2f} of the limit",
                      limit->best_ms / contender.milliseconds.summary().median / limit->speed_up));
    }
    for (const Rival& rival : report.rivals) {
      if (const auto off = difference_of(contender, rival)) {
        notes.push_back(fmt::format("outputs differ from {}'s by {:.1e} of the greatest",
                                    rival.kind->name, off->relative));
      }
    }
    if (!notes.empty()) text += fmt::format("   {}", fmt::join(notes, ", "));
    fmt::print("{}\n{}", text, session_text(contender, *report.model, lane_names, "    "));
  }
  if (report.initialization) {
    fmt::print("  joint in a process of its own: {}\n", to_text(*report.initialization, ""));
  }
  for (const Rival& rival : report.rivals) {
    if (rival.has_time()) {
      fmt::print("{}   version {}, {} threads on cores {}, ready after {:.0f} ms\n",
                 line(rival.kind->key, rival.milliseconds), rival.version, rival.threads,
                 to_processor_list(rival.cores), rival.load_ms);
    }
    for (const auto& [name, value] : rival.facts.items()) {
      fmt::print("    {}: {}\n", name, value.dump());
    }
    if (rival.memory) {
      fmt::print("    memory: arena {:.1f} MB, activations as planned {:.1f} MB\n",
                 static_cast<double>(rival.memory->arena_bytes) / 1e6,
                 static_cast<double>(rival.memory->planned_bytes) / 1e6);
    }
  }
  // Simulated lanes have no cores of this machine.
  if (report.before.cores.empty()) return;
  fmt::print("  probe before: {}\n  probe after:  {}\n", to_text(report.before),
             to_text(report.after));
}

void print_table(const std::vector<nlohmann::json>& models, const BenchModelFlags& flags) {
  const auto number = [](const nlohmann::json& model, const std::string& name, int digits = 2) {
    const auto found = model.find(name);
    const bool known = found != model.end() && !found->is_null();
    return known ? fmt::format("{:.{}f}", found->get<double>(), digits) : std::string("-");
  };
  std::string header = fmt::format("\n{:22}", "ms (predicted)");
  for (const std::string& strategy : flags.strategies) header += fmt::format(" {:>17}", strategy);
  for (const EngineKind* kind : kEngines) {
    header += fmt::format(" {:>12} {:>8}", kind->key, fmt::format("/{}", kind->label));
  }
  fmt::print("{} {:>9} {:>6} {:>9} {:>8} {:>8} {:>12}\n", header, "joint", "limit", "of limit",
             "init ms", "ORT init", "search ms");
  for (const nlohmann::json& model : models) {
    if (!model.contains("strategies")) continue;
    std::string row = fmt::format("{:22}", model["model"].get<std::string>());
    for (const std::string& strategy : flags.strategies) {
      const nlohmann::json& times = model["strategies"][strategy];
      row += fmt::format(" {:>17}", fmt::format("{} ({})", number(times, "median_ms"),
                                                number(times, "predicted_ms")));
    }
    const bool joint = model["strategies"].contains("joint");
    for (const EngineKind* kind : kEngines) {
      const std::string key = kind->key;
      const std::string ratio =
          joint ? number(model["strategies"]["joint"], "over_" + key) : std::string("-");
      row += fmt::format(" {:>12} {:>8}", number(model, key + "_ms"), ratio);
    }
    const std::string search =
        model.contains("search_ms")
            ? fmt::format("{:.0f} ({:.1f}%)", model["search_ms"].get<double>(),
                          100 * model["search_share"].get<double>())
            : std::string("-");
    fmt::print("{} {:>8}x {:>6} {:>9} {:>8} {:>8} {:>12}\n", row, number(model, "speedup_joint"),
               number(model, "limit"), number(model, "of_limit"), number(model, "init_ms", 0),
               number(model, "onnxruntime_init_ms", 0), search);
  }
  fmt::print(
      "/ORT, /LiteRT: joint's time over ONNX Runtime's and LiteRT's; joint: times as fast as the "
      "best lane alone; init: "
      "from the model's file to a session that is ready, of joint in a process of its own, and of "
      "ONNX Runtime; search: what of it joint took to plan, and the share\n");
}

std::vector<Status> judge(const ModelReport& report) {
  std::vector<Status> failures;
  for (const Rival& rival : report.rivals) {
    if (!rival.error.empty() && !rival.missing) {
      failures.push_back(failed_precondition(
          fmt::format("{}: {}: {}", report.name, rival.kind->name, rival.error)));
      continue;
    }
    for (const Contender& contender : report.contenders) {
      const auto off = difference_of(contender, rival);
      if (!off || off->relative <= kSameOutputs) continue;
      failures.push_back(internal_error(fmt::format(
          "{}: the outputs of strategy {} differ from {}'s by {:.2g}, {:.2g} of the greatest; "
          "'tandem run --verify' looks for the operator",
          report.name, contender.strategy, rival.kind->name, off->absolute, off->relative)));
      break;
    }
  }
  return failures;
}

}  // namespace tandem::cli
