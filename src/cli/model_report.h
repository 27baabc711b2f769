// What `tandem bench model` measures of one network, and how it says so.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/contest.h"
#include "cli/engine_process.h"
#include "cli/probe.h"
#include "cli/samples.h"

namespace tandem::cli {

// Another engine's part.
struct Rival {
  const EngineKind* kind = nullptr;
  std::optional<EngineProcess> process;  // until it fails
  std::string version;
  std::vector<int> cores;
  int threads = 1;
  double load_ms = 0;
  nlohmann::json facts = nlohmann::json::object();  // what else the engine says of its session
  std::vector<HostTensor> outputs;
  std::optional<EngineProcess::Memory> memory;
  Samples milliseconds{kLeastCleanShare};
  std::string error;  // why there are no figures, or not all
  // Not installed, or without a way to run this model, and not asked for.
  bool missing = false;

  void fail(const Status& status) {
    process.reset();
    error = status.message();
  }
  bool has_time() const { return error.empty() && milliseconds.summary().median > 0; }
  // Of the strategy's time to this engine's.
  std::optional<double> ratio(const Contender& contender) const {
    if (!has_time()) return std::nullopt;
    return contender.milliseconds.summary().median / milliseconds.summary().median;
  }
};

struct Difference {
  double absolute = 0;
  double relative = 0;  // to the output's greatest magnitude
};
// Of the last outputs; none if the engine has not got to its own.
std::optional<Difference> difference_of(const Contender& contender, const Rival& rival);

// One network.
struct ModelReport {
  std::string name;
  std::optional<Model> model;
  std::vector<Contender> contenders;
  std::vector<double> predicted_ms;              // by contender; 0: unknown
  std::optional<Initialization> initialization;  // of joint, if it is there
  std::vector<Rival> rivals;                     // as kEngines has them
  Probe before;
  Probe after;
  nlohmann::json conditions;

  std::optional<Limit> limit() const { return limit_of(contenders); }
  // The strategy that the summary is about, if it is there.
  const Contender* joint() const {
    for (const Contender& contender : contenders) {
      if (contender.strategy == "joint") return &contender;
    }
    return nullptr;
  }
};

nlohmann::json report_json(const ModelReport& report, const std::vector<std::string>& lane_names);
void print_report(const ModelReport& report, const std::vector<std::string>& lane_names);
// The table at the end, of report_json()s: times, in brackets as predicted, and what became of
// `joint`.
void print_table(const std::vector<nlohmann::json>& models, const BenchModelFlags& flags);
// What is wrong with a report.
std::vector<Status> judge(const ModelReport& report);

}  // namespace tandem::cli
