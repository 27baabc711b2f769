#include "cli/engine_process.h"

#include <filesystem>
#include <utility>

#include "cli/python_script.h"
#include "fmt/format.h"
#include "support/npy.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

StatusOr<nlohmann::json> parse_answer(const std::string& line) {
  nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
  if (!answer.is_object()) return internal_error("an answer that is no JSON object: " + line);
  if (answer.contains("error")) {
    const std::string error = answer["error"].dump();
    return answer.value("missing", false) ? not_found(error) : failed_precondition(error);
  }
  return answer;
}

}  // namespace

StatusOr<nlohmann::json> EngineProcess::ask(const nlohmann::json& request) {
  TANDEM_ASSIGN_OR_RETURN(const std::string line, process_.ask(request.dump(), patience_));
  return parse_answer(line);
}

StatusOr<EngineProcess> EngineProcess::start(const EngineKind& kind, const EngineFlags& flags,
                                             const std::vector<int>& cores,
                                             const std::string& model,
                                             const std::vector<TensorSpec>& specs,
                                             const std::vector<HostTensor>& inputs,
                                             const std::string& folder) {
  TANDEM_ASSIGN_OR_RETURN(const PythonScript script,
                          find_python_script(kind.script, flags.python, kind.package,
                                             fmt::format("--{} PYTHON", kind.key)));
  TANDEM_ASSIGN_OR_RETURN(LineProcess process,
                          LineProcess::start({script.python.string(), script.path.string()}));
  EngineProcess engine(std::move(process), std::chrono::seconds(flags.seconds));
  nlohmann::json request = {
      {"do", "load"},   {"model", fs::absolute(model).string()}, {"threads", flags.threads},
      {"cores", cores}, {"inputs", nlohmann::json::object()},    {"outputs", folder}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = fmt::format("{}/input{}.npy", folder, i);
    TANDEM_RETURN_IF_ERROR(write_npy(path, inputs[i]));
    request["inputs"][specs[i].name] = path;
  }
  TANDEM_ASSIGN_OR_RETURN(const nlohmann::json answer, engine.ask(request));
  try {
    engine.version_ = answer.at("version").get<std::string>();
    engine.load_ms_ = answer.at("load_ms").get<double>();
    engine.facts_ = answer.value("facts", nlohmann::json::object());
    for (const auto& path : answer.at("outputs")) {
      TANDEM_ASSIGN_OR_RETURN(HostTensor output, read_npy(path.get<std::string>()));
      engine.outputs_.push_back(std::move(output));
    }
  } catch (const nlohmann::json::exception& error) {
    return internal_error(fmt::format("an answer that lacks something: {}", error.what()));
  }
  return engine;
}

StatusOr<EngineProcess::Run> EngineProcess::run() {
  TANDEM_ASSIGN_OR_RETURN(const nlohmann::json answer, ask({{"do", "run"}}));
  const double ms = answer.value("ms", 0.0);
  if (ms <= 0) return internal_error("an answer without a time");
  return Run{ms, answer.value("preempted", true)};
}

StatusOr<EngineProcess::Memory> EngineProcess::measure_memory() {
  TANDEM_ASSIGN_OR_RETURN(const nlohmann::json answer, ask({{"do", "memory"}}));
  return Memory{answer.value("arena_bytes", size_t{0}), answer.value("planned_bytes", size_t{0})};
}

}  // namespace tandem::cli
