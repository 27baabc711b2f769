// Other engines beside Tandem: each in a process of its own, which a Python script serves, so that
// Tandem does not depend on them.
#pragma once

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line_process.h"
#include "tandem/model.h"
#include "tandem/status.h"

namespace tandem::cli {

struct EngineKind {
  const char* key;      // in names of flags and of JSON's fields
  const char* name;     // for people
  const char* label;    // where there is little room
  const char* script;   // in the folder tools
  const char* package;  // that a Python must have
};

inline constexpr EngineKind kOnnxRuntime{"onnxruntime", "ONNX Runtime", "ORT",
                                         "onnxruntime_worker.py", "onnxruntime"};
inline constexpr EngineKind kLiteRt{"litert", "LiteRT", "LiteRT", "litert_worker.py",
                                    "ai-edge-litert"};
inline constexpr std::array<const EngineKind*, 2> kEngines{&kOnnxRuntime, &kLiteRt};

// What a user says of an engine.
struct EngineFlags {
  std::string python;  // with the package; empty: the one of the source tree; "none": no engine
  int threads = 1;
  int seconds = 60;  // for any one answer

  bool wanted() const { return python != "none"; }
  // Whether it may be missing without that being an error.
  bool by_default() const { return python.empty(); }
};

class EngineProcess {
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

  // A session of `kind` for `model`, an ONNX file, with these inputs, on `cores`; runs it once.
  // Files that are needed on the way lie in `folder`. Every error says what of the engine failed;
  // none is Tandem's. kNotFound: the engine is not there, or has no way to run this model.
  static StatusOr<EngineProcess> start(const EngineKind& kind, const EngineFlags& flags,
                                       const std::vector<int>& cores, const std::string& model,
                                       const std::vector<TensorSpec>& specs,
                                       const std::vector<HostTensor>& inputs,
                                       const std::string& folder);

  StatusOr<Run> run();
  // Makes a second session for a moment. Not every engine tells.
  StatusOr<Memory> measure_memory();

  const std::string& version() const { return version_; }
  double load_ms() const { return load_ms_; }
  // An object with what else the script says of the session.
  const nlohmann::json& facts() const { return facts_; }
  // Of the first run, in the model's order.
  const std::vector<HostTensor>& outputs() const { return outputs_; }

 private:
  EngineProcess(LineProcess process, std::chrono::milliseconds patience)
      : process_(std::move(process)), patience_(patience) {}
  StatusOr<nlohmann::json> ask(const nlohmann::json& request);

  LineProcess process_;
  std::chrono::milliseconds patience_;
  std::string version_;
  double load_ms_ = 0;
  nlohmann::json facts_;
  std::vector<HostTensor> outputs_;
};

}  // namespace tandem::cli
