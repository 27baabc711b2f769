#include "platform/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace tandem {

using nlohmann::json;

Fields::Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) throw std::invalid_argument(path_ + " must be an object");
}

std::string Fields::path_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

const json& Fields::at(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  if (found == object_.end()) throw std::invalid_argument(path_of(key) + " is missing");
  return *found;
}

const json& Fields::array(const std::string& key) {
  const json& value = at(key);
  if (!value.is_array() || value.empty()) {
    throw std::invalid_argument(path_of(key) + " must be a list that is not empty");
  }
  return value;
}

std::string Fields::text(const std::string& key) {
  const json& value = at(key);
  if (!value.is_string()) throw std::invalid_argument(path_of(key) + " must be a string");
  return value;
}

const json& Fields::figure(const std::string& key) {
  Fields figure = object(key);
  if (figure.text("source").empty()) {
    throw std::invalid_argument(figure.path_of("source") + " must not be empty");
  }
  const bool estimate = figure.has("estimate") && figure.at("estimate") == json(true);
  if (estimate != (figure.text("source") == "estimate")) {
    throw std::invalid_argument(figure.path_of("estimate") +
                                " must be true where the source is 'estimate', and only there");
  }
  if (estimate || figure.has("why")) {
    if (figure.text("why").empty()) {
      throw std::invalid_argument(figure.path_of("why") + " must not be empty");
    }
  }
  const json& value = figure.at("value");
  figure.done();
  return value;
}

double Fields::number(const std::string& key, double least) {
  const json& value = figure(key);
  if (!value.is_number()) {
    throw std::invalid_argument(path_of(key) + ".value must be a number");
  }
  const double number = value;
  if (!std::isfinite(number) || number < least) {
    throw std::invalid_argument(
        fmt::format("{}.value is {}, and must be at least {}", path_of(key), number, least));
  }
  return number;
}

double Fields::positive(const std::string& key) {
  const double value = number(key);
  if (value == 0) throw std::invalid_argument(path_of(key) + ".value must be more than 0");
  return value;
}

int Fields::count(const std::string& key) {
  const double value = number(key, 1);
  if (value != std::floor(value) || value > 1'000'000) {
    throw std::invalid_argument(path_of(key) + ".value must be an integer");
  }
  return static_cast<int>(value);
}

std::vector<double> Fields::steps(const std::string& key, double highest) {
  const json& value = figure(key);
  std::vector<double> steps;
  if (value.is_array()) {
    for (const json& step : value) {
      if (!step.is_number() || step <= 0 || (!steps.empty() && step <= steps.back())) {
        throw std::invalid_argument(path_of(key) + ".value must list ascending clocks");
      }
      steps.push_back(step);
    }
  }
  // What-ifs change the clock alone: steps scale with it.
  if (steps.empty()) throw std::invalid_argument(path_of(key) + ".value must list clocks");
  const double scale = highest / steps.back();
  for (double& step : steps) step *= scale;
  return steps;
}

void Fields::done() const {
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) throw std::invalid_argument(path_of(key) + " is not known");
  }
}

}  // namespace tandem
