#include "platform/coefficients_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "platform/embedded_platforms.h"
#include "support/json_error.h"
#include "support/read_file.h"

namespace tandem {
namespace {

using nlohmann::json;

sim::Coefficients parse_coefficients(const json& document) {
  sim::Coefficients c;
  for (const auto& [name, value] : document.at("like").items()) c.like[name] = value;
  for (const auto& [name, value] : document.at("cores").items()) c.cores[name] = {};
  for (const auto& [name, value] : document.at("gpus").items()) c.gpus[name] = {};
  for (const auto& [name, value] : document.at("interference").items()) c.interference[name] = 0;
  for (const auto& [name, value] : document.at("runtimes").items()) {
    c.runtimes[name].cpu_f16 = value.at("cpu_f16");
    c.runtimes[name].gpu_f16 = value.at("gpu_f16");
  }
  sim::visit_numbers(c, [&](const std::string& path, double& number) {
    // Names of generations hold no dots.
    const json* node = &document;
    for (size_t at = 0; at <= path.size();) {
      const size_t dot = std::min(path.find('.', at), path.size());
      const std::string key = path.substr(at, dot - at);
      if (!node->contains(key)) throw std::invalid_argument(path + " is missing");
      node = &node->at(key);
      at = dot + 1;
    }
    if (!node->is_number() || *node < 0) {
      throw std::invalid_argument(path + " must be a number of at least 0");
    }
    number = *node;
  });
  return c;
}

}  // namespace

StatusOr<sim::Coefficients> load_coefficients(const std::string& path) {
  std::string text;
  if (path.empty()) {
    text = embedded_platforms().at(kCalibrationFile);
  } else {
    StatusOr<std::string> content = read_file(path);
    if (!content.ok()) return content.status().with_context("the coefficients");
    text = *std::move(content);
  }
  const std::string label = path.empty() ? kCalibrationFile : path;
  try {
    return parse_coefficients(json::parse(text));
  } catch (const json::exception& error) {
    return corrupt(fmt::format("{}: {}", label, json_problem(error.what())));
  } catch (const std::invalid_argument& error) {
    return invalid_argument(fmt::format("{}: {}", label, error.what()));
  }
}

std::string to_text(sim::Coefficients coefficients) {
  json document = {{"cores", json::object()},
                   {"gpus", json::object()},
                   {"interference", json::object()},
                   {"like", coefficients.like},
                   {"runtimes", json::object()}};
  for (const auto& [name, runtime] : coefficients.runtimes) {
    document["runtimes"][name] = {{"cpu_f16", runtime.cpu_f16}, {"gpu_f16", runtime.gpu_f16}};
  }
  sim::visit_numbers(coefficients, [&](const std::string& path, double& number) {
    std::string pointer = "/" + path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    // Four digits are more than a fit knows.
    document[json::json_pointer(pointer)] = std::stod(fmt::format("{:.4g}", number));
  });
  return document.dump(2) + "\n";
}

}  // namespace tandem
