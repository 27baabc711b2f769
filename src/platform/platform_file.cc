#include "platform/platform_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "platform/coefficients_file.h"
#include "platform/embedded_platforms.h"
#include "platform/parse_platform.h"
#include "support/digest.h"
#include "support/json_error.h"
#include "support/read_file.h"

namespace tandem {
namespace {

using nlohmann::json;
using sim::PlatformModel;

// Every source that figures name must be explained.
void check_sources(const json& node, const std::string& path, const json& sources) {
  if (node.is_object() && node.contains("value") && node.contains("source")) {
    const json& source = node["source"];
    if (source.is_string() && source != "estimate" && source != "--set" &&
        !sources.contains(source.get<std::string>())) {
      throw std::invalid_argument(fmt::format("{}.source names '{}', which is not among sources",
                                              path, source.get<std::string>()));
    }
    return;
  }
  if (node.is_array()) {
    for (size_t i = 0; i < node.size(); ++i) {
      check_sources(node[i], fmt::format("{}[{}]", path, i), sources);
    }
  } else if (node.is_object()) {
    for (const auto& [key, value] : node.items()) {
      if (path.empty() && key == "sources") continue;
      check_sources(value, path.empty() ? key : path + "." + key, sources);
    }
  }
}

// "gpu.compute_units=6".
void set_figure(const std::string& assignment, json* document) {
  const auto wrong = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("--set {}: {}", assignment, why));
  };
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) wrong("give FIELD=VALUE");
  json* node = document;
  std::string path = assignment.substr(0, equals);
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    const std::string key = path.substr(at, dot - at);
    at = dot + 1;
    if (node->is_array()) {
      const auto found = std::find_if(node->begin(), node->end(), [&](const json& member) {
        return member.is_object() && member.value("name", "") == key;
      });
      if (found == node->end()) wrong("there is no '" + key + "'");
      node = &*found;
    } else {
      if (!node->is_object() || !node->contains(key)) wrong("there is no '" + key + "'");
      node = &(*node)[key];
    }
  }
  if (!node->is_object() || !node->contains("value")) wrong(path + " is not a figure");
  const std::string text = assignment.substr(equals + 1);
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  *node = {{"value", value}, {"source", "--set"}};
}

struct Source {
  std::string label;  // for errors
  std::string text;
};

StatusOr<Source> read_source(const std::string& platform) {
  const bool path = platform.find('/') != std::string::npos || platform.ends_with(".json");
  if (!path) {
    const auto found = embedded_platforms().find(platform + ".json");
    if (found == embedded_platforms().end() || found->first == kCalibrationFile) {
      return not_found(fmt::format("no platform called '{}': there are {}; or give a file",
                                   platform, fmt::join(platform_names(), ", ")));
    }
    return Source{"platform " + platform, std::string(found->second)};
  }
  StatusOr<std::string> text = read_file(platform);
  if (!text.ok()) return text.status().with_context("--platform");
  return Source{platform, *std::move(text)};
}

}  // namespace

std::vector<std::string> platform_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded_platforms()) {
    if (name != kCalibrationFile) names.push_back(name.substr(0, name.size() - 5));
  }
  return names;
}

StatusOr<PlatformModel> load_platform(const std::string& platform,
                                      const PlatformFileOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const Source source, read_source(platform));
  TANDEM_ASSIGN_OR_RETURN(const sim::Coefficients coefficients,
                          load_coefficients(options.calibration));
  PlatformModel model;
  try {
    json document = json::parse(source.text);
    for (const std::string& assignment : options.set) set_figure(assignment, &document);
    model = parse_platform(document, options.lanes);
    check_sources(document, "", document.at("sources"));
  } catch (const json::exception& error) {
    return corrupt(fmt::format("{}: {}", source.label, json_problem(error.what())));
  } catch (const std::invalid_argument& error) {
    return invalid_argument(fmt::format("{}: {}", source.label, error.what()));
  }
  const Status resolved = sim::resolve(coefficients, options.runtime, &model);
  if (!resolved.ok()) return resolved.with_context(source.label);
  model.digest =
      digest(fmt::format("{} {} {} {} {}", source.text, to_text(coefficients), options.runtime,
                         fmt::join(options.set, " "), fmt::join(options.lanes, " ")));
  return model;
}

}  // namespace tandem
