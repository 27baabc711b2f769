#include "platform/parse_platform.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <utility>

#include "platform/json_fields.h"
#include "platform/platform_file.h"

namespace tandem {
namespace {

using nlohmann::json;
using sim::PlatformModel;

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

void parse_lanes(Fields* f, PlatformModel* model) {
  const json& lanes = f->array("lanes");
  for (size_t i = 0; i < lanes.size(); ++i) {
    const std::string path = fmt::format("lanes[{}]", i);
    Fields lane(lanes[i], path);
    model->lanes.push_back(parse_lane(*model, lane.text("name"), lane.text("cores"), path));
    lane.done();
  }
}

void replace_lanes(const std::vector<std::string>& lane_options, PlatformModel* model) {
  model->lanes.clear();
  for (const std::string& lane : lane_options) {
    const size_t equals = lane.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw std::invalid_argument(
          fmt::format("'{}' is no lane: give NAME=CLUSTER:CORES+..., or NAME=gpu", lane));
    }
    model->lanes.push_back(
        parse_lane(*model, lane.substr(0, equals), lane.substr(equals + 1), "lane " + lane));
  }
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

}  // namespace

PlatformModel parse_platform(const json& document, const std::vector<std::string>& lane_options) {
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
  parse_lanes(&f, &model);
  f.object("sources");
  f.done();
  if (!lane_options.empty()) replace_lanes(lane_options, &model);
  check_lanes(model);
  return model;
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

}  // namespace tandem
