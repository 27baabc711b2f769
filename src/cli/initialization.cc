#include "cli/initialization.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cli/line_process.h"
#include "fmt/format.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

constexpr size_t kStarts = 3;
// What that many starts may take, or there is one.
constexpr double kStartsMs = 3000;
// With what nobody has measured before: calibration is among it.
constexpr std::chrono::minutes kPatience{5};

struct NamedPart {
  const char* key;
  const char* text;
  double Initialization::*ms;
};
constexpr std::array<NamedPart, 9> kParts = {{
    {"read", "reading", &Initialization::read},
    {"import", "importing", &Initialization::import},
    {"passes", "passes", &Initialization::passes},
    {"predictors", "reading predictors", &Initialization::predictors},
    {"calibrate", "calibrating", &Initialization::calibrate},
    {"search", "scheduling", &Initialization::search},
    {"memory", "memory", &Initialization::memory},
    {"lanes", "lanes", &Initialization::lanes},
    {"other", "other", &Initialization::other},
}};

// The last line of a file, where commands say what is wrong.
std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

StatusOr<Initialization> start_once(const std::vector<std::string>& command,
                                    const std::string& folder) {
  const std::string errors = folder + "/start.txt";
  TANDEM_ASSIGN_OR_RETURN(LineProcess process, LineProcess::start(command, errors));
  const StatusOr<std::string> output = process.read_to_end(kPatience);
  if (!output.ok()) {
    return output.status().with_context("measuring the initialization: " + last_line(errors));
  }
  const nlohmann::json report = nlohmann::json::parse(*output, nullptr, false);
  if (!report.is_object() || !report.contains("strategies") || report["strategies"].size() != 1) {
    return corrupt("measuring the initialization: 'tandem run' printed no report");
  }
  return initialization_from_json(report["strategies"].front());
}

}  // namespace

Initialization initialization_of(const LoadTimes& load, const SessionTimes& session,
                                 double create_ms) {
  Initialization all;
  all.read = load.parse_ms;
  all.import = load.import_ms;
  all.passes = load.pass_ms;
  all.predictors = session.predictors_ms;
  all.calibrate = session.calibrate_ms;
  all.search = session.schedule_ms;
  all.memory = session.memory_ms;
  all.lanes = session.bind_ms;
  all.other = create_ms - (all.predictors + all.calibrate + all.search + all.memory + all.lanes);
  all.whole = all.read + all.import + all.passes + create_ms;
  return all;
}

nlohmann::json to_json(const Initialization& initialization) {
  nlohmann::json parts = nlohmann::json::object();
  for (const NamedPart& part : kParts) parts[part.key] = initialization.*part.ms;
  return {{"init_ms", initialization.whole},
          {"init_parts", std::move(parts)},
          {"search_ms", initialization.search},
          {"search_share", initialization.search_share()}};
}

StatusOr<Initialization> initialization_from_json(const nlohmann::json& json) {
  Initialization read;
  const auto number = [](const nlohmann::json& of, const char* key, double* value) {
    const auto found = of.is_object() ? of.find(key) : of.end();
    if (found == of.end() || !found->is_number()) return false;
    *value = found->get<double>();
    return true;
  };
  bool complete = number(json, "init_ms", &read.whole) && json.contains("init_parts");
  for (const NamedPart& part : kParts) {
    complete = complete && number(json["init_parts"], part.key, &(read.*part.ms));
  }
  if (!complete) return corrupt("a report without init_ms, or without some of init_parts");
  return read;
}

std::string to_text(const Initialization& initialization, const std::string& lanes) {
  std::string text = fmt::format("ready after {:.0f} ms:", initialization.whole);
  for (const NamedPart& part : kParts) {
    text += fmt::format("{} {} {:.0f}", &part == kParts.data() ? "" : ",", part.text,
                        initialization.*part.ms);
    if (part.ms == &Initialization::lanes && !lanes.empty()) text += " (" + lanes + ")";
  }
  return text;
}

StatusOr<Initialization> measure_initialization(const std::string& file,
                                                const std::vector<std::string>& arguments,
                                                const std::string& folder) {
  std::error_code error;
  std::vector<std::string> command = {
      std::filesystem::read_symlink("/proc/self/exe", error).string(),
      "run",
      file,
      "--strategy=joint",
      "--warmup=0",
      "--runs=1",
      "--json"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  TANDEM_RETURN_IF_ERROR(start_once(command, folder).status());
  std::vector<Initialization> starts;
  const Stopwatch stopwatch;
  do {
    TANDEM_ASSIGN_OR_RETURN(const Initialization start, start_once(command, folder));
    starts.push_back(start);
  } while (starts.size() < kStarts &&
           stopwatch.milliseconds() / static_cast<double>(starts.size()) * kStarts < kStartsMs);
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
  std::nth_element(starts.begin(), middle, starts.end(),
                   [](const auto& a, const auto& b) { return a.whole < b.whole; });
  return *middle;
}

}  // namespace tandem::cli
