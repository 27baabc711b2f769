#include "platform/platform_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "platform/embedded_platforms.h"
#include "support/digest.h"

namespace tandem {
namespace {

using nlohmann::json;
using sim::PlatformModel;

constexpr char kCalibration[] = "calibration.json";

// An object of the file, and its place in it for errors. Fields that nobody has asked for when
// done() is called are refused: they would be mistakes.
class Fields {
 public:
  Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) throw std::invalid_argument(path_ + " must be an object");
  }

  std::string path_of(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  bool has(const std::string& key) const { return object_.contains(key); }
  const json& at(const std::string& key) {
    known_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) throw std::invalid_argument(path_of(key) + " is missing");
    return *found;
  }
  Fields object(const std::string& key) { return Fields(at(key), path_of(key)); }
  const json& array(const std::string& key) {
    const json& value = at(key);
    if (!value.is_array() || value.empty()) {
      throw std::invalid_argument(path_of(key) + " must be a list that is not empty");
    }
    return value;
  }
  std::string text(const std::string& key) {
    const json& value = at(key);
    if (!value.is_string()) throw std::invalid_argument(path_of(key) + " must be a string");
    return value;
  }
  // A figure: {"value": ..., "source": ...}, and if it is an estimate, "estimate" and why.
  const json& figure(const std::string& key) {
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
  double number(const std::string& key, double least = 0) {
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
  double positive(const std::string& key) {
    const double value = number(key);
    if (value == 0) throw std::invalid_argument(path_of(key) + ".value must be more than 0");
    return value;
  }
  int count(const std::string& key) {
    const double value = number(key, 1);
    if (value != std::floor(value) || value > 1'000'000) {
      throw std::invalid_argument(path_of(key) + ".value must be an integer");
    }
    return static_cast<int>(value);
  }
  std::vector<double> steps(const std::string& key, double highest) {
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
  void done() const {
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) throw std::invalid_argument(path_of(key) + " is not known");
    }
  }

 private:
  const json& object_;
  std::string path_;
  std::set<std::string> known_;
};

template <typename T>
T one_of(const std::string& path, const std::string& text,
         const std::vector<std::pair<const char*, T>>& choices) {
  std::vector<const char*> names;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    names.push_back(name);
  }
  throw std::invalid_argument(
      fmt::format("{} is '{}', and must be one of {}", path, text, fmt::join(names, ", ")));
}

sim::Cluster parse_cluster(Fields f) {
  sim::Cluster c;
  c.name = f.text("name");
  c.core = f.text("core");
  c.cores = f.count("cores");
  c.mhz = f.positive("mhz");
  c.flops_per_cycle = f.positive("flops_per_cycle");
  c.f16_rate = f.number("f16_rate", 1);
  c.tile_rows = f.count("tile_rows");
  c.tile_columns = f.count("tile_columns");
  c.l1_kib = f.positive("l1_kib");
  c.l2_kib = f.number("l2_kib");
  c.active_mw = f.positive("active_mw");
  c.idle_mw = f.number("idle_mw");
  c.steps_mhz = f.steps("steps_mhz", c.mhz);
  f.done();
  return c;
}

sim::Gpu parse_gpu(Fields f) {
  sim::Gpu g;
  g.name = f.text("name");
  g.family = one_of<sim::GpuFamily>(f.path_of("family"), f.text("family"),
                                    {{"adreno", sim::GpuFamily::kAdreno},
                                     {"mali", sim::GpuFamily::kMali},
                                     {"powervr", sim::GpuFamily::kPowerVr},
                                     {"intel", sim::GpuFamily::kIntel}});
  g.generation = f.text("generation");
  g.compute_units = f.count("compute_units");
  g.mhz = f.positive("mhz");
  g.f32_flops_per_cycle = f.positive("f32_flops_per_cycle");
  g.f16_flops_per_cycle = f.positive("f16_flops_per_cycle");
  g.wave_f32 = f.count("wave_f32");
  g.wave_f16 = f.count("wave_f16");
  g.max_work_group = f.count("max_work_group");
  g.registers_kib = f.positive("registers_kib");
  g.l2_kib = f.positive("l2_kib");
  g.bandwidth_gbps = f.positive("bandwidth_gbps");
  g.launch_us = f.positive("launch_us");
  g.active_mw = f.positive("active_mw");
  g.idle_mw = f.number("idle_mw");
  g.steps_mhz = f.steps("steps_mhz", g.mhz);
  f.done();
  return g;
}

sim::CrossingCost parse_crossing(Fields f) {
  const sim::CrossingCost cost{f.number("cpu_to_gpu"), f.number("gpu_to_cpu")};
  f.done();
  return cost;
}

sim::SyncCosts parse_sync(Fields f) {
  sim::SyncCosts s;
  const json& shared = f.figure("shared_memory");
  s.shared_memory = one_of<sim::SharedMemory>(
      f.path_of("shared_memory"), shared.is_string() ? shared.get<std::string>() : shared.dump(),
      {{"none", sim::SharedMemory::kNone},
       {"coarse", sim::SharedMemory::kCoarse},
       {"fine", sim::SharedMemory::kFine},
       {"fine_atomics", sim::SharedMemory::kFineAtomics}});
  s.svm = parse_crossing(f.object("svm"));
  s.event = parse_crossing(f.object("event"));
  s.finish = parse_crossing(f.object("finish"));
  s.map_us = f.number("map_us");
  s.enqueue_us = f.number("enqueue_us");
  s.core_crossing_us = f.number("core_crossing_us");
  f.done();
  return s;
}

sim::StartCosts parse_start(Fields f) {
  sim::StartCosts start;
  start.compile_ms = f.number("compile_ms");
  start.load_ms = f.number("load_ms");
  f.done();
  return start;
}

sim::Thermal parse_thermal(Fields f) {
  sim::Thermal t;
  t.ambient_c = f.number("ambient_c");
  t.limit_c = f.number("limit_c");
  t.resistance_c_per_w = f.positive("resistance_c_per_w");
  t.capacity_j_per_c = f.positive("capacity_j_per_c");
  f.done();
  return t;
}

sim::Noise parse_noise(Fields f) {
  sim::Noise n;
  n.cpu_cv = f.number("cpu_cv");
  n.little_cv = f.number("little_cv");
  n.gpu_cv = f.number("gpu_cv");
  n.jitter_us = f.number("jitter_us");
  f.done();
  return n;
}

sim::LaneSpec parse_lane(const PlatformModel& model, const std::string& name,
                         const std::string& cores, const std::string& where) {
  StatusOr<std::vector<sim::CoreGroup>> groups = parse_cores(model, cores);
  if (!groups.ok()) throw std::invalid_argument(where + ": " + groups.status().message());
  return {name, std::move(*groups)};
}

// Lanes are disjoint, and there is one GPU.
void check_lanes(const PlatformModel& model) {
  std::vector<int> left;
  for (const sim::Cluster& cluster : model.clusters) left.push_back(cluster.cores);
  int gpus = 0;
  std::set<std::string> names;
  for (const sim::LaneSpec& lane : model.lanes) {
    if (!names.insert(lane.name).second) {
      throw std::invalid_argument(fmt::format("two lanes are called '{}'", lane.name));
    }
    if (lane.cores.empty() && ++gpus > 1) throw std::invalid_argument("two lanes are the GPU");
    for (const sim::CoreGroup& group : lane.cores) {
      if ((left[group.cluster] -= group.cores) < 0) {
        throw std::invalid_argument(fmt::format("lanes have more cores of cluster '{}' than it has",
                                                model.clusters[group.cluster].name));
      }
    }
  }
}

PlatformModel parse_platform(const json& document, const PlatformFileOptions& options) {
  Fields f(document, "");
  PlatformModel model;
  model.name = f.text("name");
  model.description = f.text("description");
  Fields cpu = f.object("cpu");
  const json& clusters = cpu.array("clusters");
  for (size_t i = 0; i < clusters.size(); ++i) {
    model.clusters.push_back(
        parse_cluster(Fields(clusters[i], fmt::format("cpu.clusters[{}]", i))));
  }
  model.l3_kib = cpu.number("l3_kib");
  model.slc_kib = cpu.number("slc_kib");
  cpu.done();
  Fields memory = f.object("memory");
  model.dram_gbps = memory.positive("dram_gbps");
  memory.done();
  model.has_gpu = f.has("gpu");
  if (model.has_gpu) model.gpu = parse_gpu(f.object("gpu"));
  model.sync = parse_sync(f.object("sync"));
  model.start = parse_start(f.object("start"));
  model.thermal = parse_thermal(f.object("thermal"));
  model.noise = parse_noise(f.object("noise"));
  const json& lanes = f.array("lanes");
  for (size_t i = 0; i < lanes.size(); ++i) {
    const std::string path = fmt::format("lanes[{}]", i);
    Fields lane(lanes[i], path);
    model.lanes.push_back(parse_lane(model, lane.text("name"), lane.text("cores"), path));
    lane.done();
  }
  f.object("sources");
  f.done();
  if (!options.lanes.empty()) model.lanes.clear();
  for (const std::string& lane : options.lanes) {
    const size_t equals = lane.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw std::invalid_argument(
          fmt::format("'{}' is no lane: give NAME=CLUSTER:CORES+..., or NAME=gpu", lane));
    }
    model.lanes.push_back(
        parse_lane(model, lane.substr(0, equals), lane.substr(equals + 1), "lane " + lane));
  }
  check_lanes(model);
  return model;
}

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
    if (found == embedded_platforms().end() || found->first == kCalibration) {
      return not_found(fmt::format("no platform called '{}': there are {}; or give a file",
                                   platform, fmt::join(platform_names(), ", ")));
    }
    return Source{"platform " + platform, std::string(found->second)};
  }
  std::error_code error;
  if (std::filesystem::is_directory(platform, error)) {
    return invalid_argument(platform + " is a folder, and no platform file");
  }
  std::ifstream file(platform, std::ios::binary);
  if (!file) return not_found("cannot read the platform file " + platform);
  return Source{platform, std::string(std::istreambuf_iterator<char>(file), {})};
}

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

std::vector<std::string> platform_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded_platforms()) {
    if (name != kCalibration) names.push_back(name.substr(0, name.size() - 5));
  }
  return names;
}

StatusOr<std::vector<sim::CoreGroup>> parse_cores(const PlatformModel& model,
                                                  const std::string& text) {
  std::vector<sim::CoreGroup> groups;
  if (text == "gpu" || text.empty()) {
    if (!model.has_gpu) return invalid_argument(model.name + " has no GPU");
    return groups;
  }
  for (size_t at = 0; at <= text.size();) {
    const size_t plus = std::min(text.find('+', at), text.size());
    const std::string part = text.substr(at, plus - at);
    at = plus + 1;
    const size_t colon = part.find(':');
    const std::string name = part.substr(0, colon);
    const auto found = std::find_if(model.clusters.begin(), model.clusters.end(),
                                    [&](const sim::Cluster& c) { return c.name == name; });
    std::vector<std::string> names;
    for (const sim::Cluster& cluster : model.clusters) names.push_back(cluster.name);
    if (found == model.clusters.end()) {
      return invalid_argument(fmt::format("'{}' is no cluster of {}: there are {}", name,
                                          model.name, fmt::join(names, ", ")));
    }
    int cores = found->cores;
    if (colon != std::string::npos) {
      char* end = nullptr;
      const std::string digits = part.substr(colon + 1);
      const long number = std::strtol(digits.c_str(), &end, 10);
      if (digits.empty() || *end != 0 || number < 1 || number > found->cores) {
        return invalid_argument(
            fmt::format("'{}': cluster {} has 1 to {} cores to give", part, name, found->cores));
      }
      cores = static_cast<int>(number);
    }
    groups.push_back({static_cast<int>(found - model.clusters.begin()), cores});
  }
  const auto faster = [](const sim::CoreGroup& a, const sim::CoreGroup& b) {
    return a.cluster < b.cluster;
  };
  std::sort(groups.begin(), groups.end(), faster);
  return groups;
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
    model = parse_platform(document, options);
    check_sources(document, "", document.at("sources"));
  } catch (const json::exception& error) {
    return corrupt(fmt::format("{} is not valid JSON: {}", source.label, error.what()));
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

StatusOr<sim::Coefficients> load_coefficients(const std::string& path) {
  std::string text;
  if (path.empty()) {
    text = embedded_platforms().at(kCalibration);
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) return not_found("cannot read the coefficients " + path);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string label = path.empty() ? kCalibration : path;
  try {
    return parse_coefficients(json::parse(text));
  } catch (const json::exception& error) {
    return corrupt(fmt::format("{}: {}", label, error.what()));
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
