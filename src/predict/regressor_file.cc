// Predictors as JSON text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include "predict/regressor.h"
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

std::string Regressor::to_text(const Fingerprints& made_for) const {
  json lines = json::object();
  for (const auto& [name, line] : lines_) lines[fmt::to_string(name)] = line.weights();
  return json{{"schema_version", kSchemaVersion},   {"platform", made_for.platform},
              {"engine", made_for.engine},          {"features", names_},
              {"cost_terms", cost_terms_},          {"class_column", class_column_},
              {"line", all_classes_.weights()},     {"lines", lines},
              {"statistics", to_json(statistics_)}, {"trees", trees_.to_json()}}
      .dump();
}

StatusOr<Regressor> Regressor::parse(const std::string& text, const Expectation& expected) {
  try {
    const json document = json::parse(text);
    const int version = document.at("schema_version");
    if (version != kSchemaVersion) {
      return failed_precondition(
          fmt::format("the predictor's file has version {}, and this Tandem reads {}: train again",
                      version, kSchemaVersion));
    }
    Regressor regressor;
    document.at("features").get_to(regressor.names_);
    if (regressor.names_ != expected.feature_names) {
      return failed_precondition(
          fmt::format("the predictor was trained with the features {}, and this Tandem makes {}: "
                      "train again",
                      fmt::join(regressor.names_, ","), fmt::join(expected.feature_names, ",")));
    }
    for (const auto& [what, found, wanted] :
         {std::tuple{"platform", document.at("platform"), expected.fingerprints.platform},
          std::tuple{"engine", document.at("engine"), expected.fingerprints.engine}}) {
      TANDEM_RETURN_IF_ERROR(check_fingerprint(what, found.get<std::string>(), wanted,
                                               expected.allow_other_fingerprints));
    }
    document.at("cost_terms").get_to(regressor.cost_terms_);
    document.at("class_column").get_to(regressor.class_column_);
    regressor.all_classes_ = line_from(document.at("line"), regressor.cost_terms_.size());
    for (const auto& [name, line] : document.at("lines").items()) {
      regressor.lines_[std::stoi(name)] = line_from(line, regressor.cost_terms_.size());
    }
    regressor.statistics_ = statistics_from(document.at("statistics"));
    TANDEM_ASSIGN_OR_RETURN(regressor.trees_, TreeEnsemble::parse(document.at("trees")));
    if (regressor.trees_.features() != regressor.names_.size()) {
      return corrupt("the predictor's trees are of other features");
    }
    return regressor;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory left for a predictor");
  } catch (const std::exception& e) {
    return corrupt(fmt::format("the predictor's file is damaged: {}", e.what()));
  }
}

}  // namespace tandem::predict
