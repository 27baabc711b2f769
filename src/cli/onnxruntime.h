// ONNX Runtime beside Tandem: in a process of its own, which a Python script serves, so that Tandem
// does not depend on it.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/line_process.h"
#include "tandem/model.h"
#include "tandem/status.h"

namespace tandem::cli {

struct OnnxRuntimeOptions {
  std::string python;  // with the package onnxruntime; empty: of the .venv beside the script
  int threads = 1;
  std::vector<int> cores;                      // that the process may use
  std::chrono::milliseconds patience{60'000};  // for any one answer
};

class OnnxRuntime {
 public:
  struct Run {
    double milliseconds = 0;
    bool preempted = false;
  };
  struct Memory {
    // That an arena takes for activations and scratch, if it grows by what it is asked for, and the
    // one block for activations in it (see the script).
    size_t arena_bytes = 0;
    size_t planned_bytes = 0;
  };

  // A session for `model`, an ONNX file, with these inputs; runs it once. Files that are needed on
  // the way lie in `folder`. Every error says what of ONNX Runtime failed; none is Tandem's.
  static StatusOr<OnnxRuntime> start(const OnnxRuntimeOptions& options, const std::string& model,
                                     const std::vector<TensorSpec>& specs,
                                     const std::vector<HostTensor>& inputs,
                                     const std::string& folder);

  StatusOr<Run> run();
  // Makes a second session for a moment.
  StatusOr<Memory> measure_memory();

  const std::string& version() const { return version_; }
  double load_ms() const { return load_ms_; }
  // Of the first run, in the model's order.
  const std::vector<HostTensor>& outputs() const { return outputs_; }

 private:
  OnnxRuntime(LineProcess process, std::chrono::milliseconds patience)
      : process_(std::move(process)), patience_(patience) {}
  StatusOr<nlohmann::json> ask(const nlohmann::json& request);

  LineProcess process_;
  std::chrono::milliseconds patience_;
  std::string version_;
  double load_ms_ = 0;
  std::vector<HostTensor> outputs_;
};

}  // namespace tandem::cli
