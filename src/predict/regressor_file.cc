// Predictors as JSON text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include "predict/regressor.h"
#include "support/json_error.h"
#include "support/log.h"

namespace tandem::predict {
namespace {

using nlohmann::json;

// Not negative, finite and as many as there are terms.
CostLine line_from(const json& value, size_t terms) {
  auto weights = value.get<std::vector<double>>();
  bool good = weights.size() == terms + 1;
  for (const double weight : weights) good = good && std::isfinite(weight) && weight >= 0;
  if (!good) throw std::invalid_argument("its cost lines are damaged");
  return CostLine(std::move(weights));
}

json to_json(const TrainingStatistics& s) {
  return {{"rows", s.rows},
          {"groups", s.groups},
          {"trees", s.trees},
          {"validation_error", s.validation_error},
          {"fastest_us", s.fastest_us},
          {"slowest_us", s.slowest_us}};
}

TrainingStatistics statistics_from(const json& value) {
  return {value.at("rows"),       value.at("groups"),
          value.at("trees"),      value.at("validation_error"),
          value.at("fastest_us"), value.at("slowest_us")};
}

Status check_fingerprint(const char* what, const std::string& found, const std::string& expected,
                         bool allow_others) {
  if (found == expected) return {};
  const std::string message = fmt::format(
      "the predictor was trained for the {} '{}', and this is '{}'", what, found, expected);
  if (!allow_others) return failed_precondition(message + ": train again");
  log().warn("{}: its times may be wrong", message);
  return {};
}

}  // namespace

json Regressor::describe(const Fingerprints& made_for) const {
  json lines = json::object();
  for (const auto& [name, line] : lines_) lines[fmt::to_string(name)] = line.weights();
  return {{"schema_version", kSchemaVersion},  {"platform", made_for.platform},
          {"engine", made_for.engine},         {"features", names_},
          {"cost_terms", cost_terms_},         {"class_column", class_column_},
          {"line", all_classes_.weights()},    {"lines", lines},
          {"statistics", to_json(statistics_)}};
}

std::string Regressor::to_text(const Fingerprints& made_for) const {
  json document = describe(made_for);
  document["trees"] = trees_.to_json();
  return document.dump();
}

std::string Regressor::to_packed(const Fingerprints& made_for) const {
  json document = describe(made_for);
  document["schema_version"] = kPackedVersion;
  document["features"] = fmt::format("{}", fmt::join(names_, ","));
  document["trees"] = trees_.shape();
  return document.dump() + '\n' + trees_.numbers();
}

Status Regressor::read_description(const json& document, const Expectation& expected) {
  const std::string wanted = fmt::format("{}", fmt::join(expected.feature_names, ","));
  const json& features = document.at("features");
  const std::string found =
      features.is_string()
          ? features.get<std::string>()
          : fmt::format("{}", fmt::join(features.get<std::vector<std::string>>(), ","));
  if (found != wanted) {
    return failed_precondition(
        fmt::format("the predictor was trained with the features {}, and this Tandem makes {}: "
                    "train again",
                    found, wanted));
  }
  names_ = expected.feature_names;
  for (const auto& [what, found_one, wanted_one] :
       {std::tuple{"platform", document.at("platform"), expected.fingerprints.platform},
        std::tuple{"engine", document.at("engine"), expected.fingerprints.engine}}) {
    TANDEM_RETURN_IF_ERROR(check_fingerprint(what, found_one.get<std::string>(), wanted_one,
                                             expected.allow_other_fingerprints));
  }
  document.at("cost_terms").get_to(cost_terms_);
  document.at("class_column").get_to(class_column_);
  TANDEM_RETURN_IF_ERROR(find_columns());
  all_classes_ = line_from(document.at("line"), cost_terms_.size());
  for (const auto& [name, line] : document.at("lines").items()) {
    lines_[std::stoi(name)] = line_from(line, cost_terms_.size());
  }
  statistics_ = statistics_from(document.at("statistics"));
  return {};
}

StatusOr<Regressor> Regressor::parse(std::string_view text, const Expectation& expected) {
  // JSON that is written without indentation has no ends of lines.
  const size_t end = std::min(text.find('\n'), text.size());
  const bool packed = end < text.size();
  const int known = packed ? kPackedVersion : kSchemaVersion;
  try {
    const json document = json::parse(text.substr(0, end));
    const int version = document.at("schema_version");
    if (version != known) {
      return failed_precondition(
          fmt::format("the predictor's file has version {}, and this Tandem reads {}: train again",
                      version, known));
    }
    Regressor regressor;
    TANDEM_RETURN_IF_ERROR(regressor.read_description(document, expected));
    const json& trees = document.at("trees");
    TANDEM_ASSIGN_OR_RETURN(regressor.trees_, packed
                                                  ? TreeEnsemble::parse(trees, text.substr(end + 1))
                                                  : TreeEnsemble::parse(trees));
    if (regressor.trees_.features() != regressor.names_.size()) {
      return corrupt("the predictor's trees are of other features");
    }
    return regressor;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory left for a predictor");
  } catch (const std::exception& e) {
    return corrupt(fmt::format("the predictor's file is damaged: {}", json_problem(e.what())));
  }
}

}  // namespace tandem::predict
