#include "predict/predictor_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/cache_folder.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/write_file.h"

namespace tandem::predict {
namespace {

using nlohmann::json;

Status check_made_for(const char* what, const std::string& found, const std::string& expected,
                      bool allow_others) {
  if (found == expected) return {};
  const std::string message = fmt::format(
      "these predictors were trained for the {} '{}', and this is '{}'", what, found, expected);
  if (!allow_others) {
    return failed_precondition(message + ": run `tandem profile` and `tandem train`");
  }
  log().warn("{}: their times may be wrong", message);
  return {};
}

}  // namespace

std::string PredictorFile::to_text() const {
  json all = json::object();
  for (const auto& [name, lane] : lanes) {
    all[name] = {
        {"facts", to_json(lane.facts)}, {"memory_gbps", lane.memory_gbps}, {"models", lane.models}};
  }
  return json{{"schema_version", kSchemaVersion},
              {"slice_version", kSliceCaseVersion},
              {"platform", made_for.platform},
              {"engine", made_for.engine},
              {"trained", trained},
              {"errors", errors},
              {"lanes", all}}
      .dump(1);
}

StatusOr<PredictorFile> PredictorFile::parse(const std::string& text, const Fingerprints& expected,
                                             bool allow_other_fingerprints) {
  try {
    const json document = json::parse(text);
    for (const auto& [name, known] : {std::pair{"schema_version", kSchemaVersion},
                                      std::pair{"slice_version", kSliceCaseVersion}}) {
      const int version = document.at(name);
      if (version == known) continue;
      return failed_precondition(
          fmt::format("the predictors' {} is {}, and this Tandem reads {}: run `tandem train`",
                      name, version, known));
    }
    PredictorFile file;
    file.made_for = {document.at("platform"), document.at("engine")};
    TANDEM_RETURN_IF_ERROR(check_made_for("platform", file.made_for.platform, expected.platform,
                                          allow_other_fingerprints));
    TANDEM_RETURN_IF_ERROR(
        check_made_for("engine", file.made_for.engine, expected.engine, allow_other_fingerprints));
    document.at("trained").get_to(file.trained);
    document.at("errors").get_to(file.errors);
    for (const auto& [name, value] : document.at("lanes").items()) {
      LanePredictorTexts& lane = file.lanes[name];
      TANDEM_ASSIGN_OR_RETURN(lane.facts, parse_lane_facts(value.at("facts")));
      value.at("memory_gbps").get_to(lane.memory_gbps);
      if (!(lane.memory_gbps >= 0) || !std::isfinite(lane.memory_gbps)) {
        return corrupt("the predictors' file is damaged: memory_gbps of lane " + name);
      }
      value.at("models").get_to(lane.models);
    }
    return file;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory left for the predictors");
  } catch (const std::exception& e) {
    // What the parser says ends with all that it has read.
    constexpr size_t kMostOfIt = 120;
    return corrupt(fmt::format("the predictors' file is damaged: {}",
                               std::string(e.what()).substr(0, kMostOfIt)));
  }
}

StatusOr<PredictorFile> PredictorFile::load(const std::string& path, const Fingerprints& expected,
                                            bool allow_other_fingerprints) {
  std::ifstream file(path);
  if (!file) {
    return not_found(fmt::format(
        "there are no predictors in {}: run `tandem profile` and `tandem train`", path));
  }
  std::ostringstream text;
  text << file.rdbuf();
  StatusOr<PredictorFile> parsed = parse(text.str(), expected, allow_other_fingerprints);
  if (!parsed.ok()) return parsed.status().with_context(path);
  return parsed;
}

Status PredictorFile::save(const std::string& path) const {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    return invalid_argument(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  return write_file(path, to_text());
}

std::string default_predictor_path(const std::string& platform) {
  const std::string folder = default_data_folder("predictors");
  return folder == "none" ? folder : fmt::format("{}/{:016x}.json", folder, hash_of(platform));
}

}  // namespace tandem::predict
