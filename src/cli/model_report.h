// What `tandem bench model` measures of one network, and how it says so.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/contest.h"
#include "cli/onnxruntime.h"
#include "cli/probe.h"
#include "cli/samples.h"

namespace tandem::cli {

// ONNX Runtime's part.
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

struct Difference {
  double absolute = 0;
  double relative = 0;  // to the output's greatest magnitude
};

// One network.
struct ModelReport {
  std::string name;
  std::optional<Model> model;
  std::vector<Contender> contenders;
  std::vector<double> predicted_ms;              // by contender; 0: unknown
  std::optional<Initialization> initialization;  // of joint, if it is there
  Rival rival;
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
  // Of the strategy's time to ONNX Runtime's.
  std::optional<double> ratio(const Contender& contender) const {
    if (!rival.has_time()) return std::nullopt;
    return contender.milliseconds.summary().median / rival.milliseconds.summary().median;
  }
  std::optional<Difference> difference_of(const Contender& contender) const;
};

nlohmann::json report_json(const ModelReport& report, const std::vector<std::string>& lane_names);
void print_report(const ModelReport& report, const std::vector<std::string>& lane_names);
// The table at the end, of report_json()s: times, in brackets as predicted, and what became of
// `joint`.
void print_table(const std::vector<nlohmann::json>& models, const BenchModelFlags& flags);
// What is wrong with a report, if anything.
Status judge(const ModelReport& report);

}  // namespace tandem::cli
