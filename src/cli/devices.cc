// `tandem devices`: a doctor. Says which lanes there are and why not more, and what is really in
// force: masks, caches, devices, memory kinds, costs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/command.h"
#include "cli/conditions.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/shapes.h"
#include "cli/single_operator.h"
#include "cli/sync_report.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lane/opencl/opencl_lane.h"
#include "platform/topology.h"
#include "profile/lane_crew.h"
#include "runtime/sync_bench.h"

namespace tandem::cli {
namespace {

struct Flags {
  PlatformFlags platform;
  bool json = false;
};

// --- where things come from ---

// Files of this process's libraries whose names contain one of `parts`.
std::vector<std::string> loaded_libraries(const std::vector<std::string>& parts) {
  std::set<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const std::string path = line.substr(at);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (std::any_of(parts.begin(), parts.end(), [&name](const std::string& part) {
          return name.find(part) != std::string::npos;
        })) {
      paths.insert(path);
    }
  }
  return {paths.begin(), paths.end()};
}

struct IcdSearch {
  std::string folder;
  std::string reason;  // "OCL_ICD_VENDORS" or "default"
  bool exists = false;
  std::vector<std::string> entries;  // "pocl.icd -> libpocl.so.2"
};

IcdSearch search_icds() {
  IcdSearch search;
  const char* vendors = std::getenv("OCL_ICD_VENDORS");
  search.folder = vendors != nullptr ? vendors : "/etc/OpenCL/vendors";
  search.reason = vendors != nullptr ? "OCL_ICD_VENDORS" : "default";
  std::error_code error;
  search.exists = std::filesystem::is_directory(search.folder, error);
  for (const auto& file : std::filesystem::directory_iterator(search.folder, error)) {
    if (file.path().extension() != ".icd") continue;
    std::ifstream content(file.path());
    std::string library;
    std::getline(content, library);
    search.entries.push_back(file.path().filename().string() + " -> " + library);
  }
  std::sort(search.entries.begin(), search.entries.end());
  return search;
}

// --- what is in force ---

// Runs `work` on a thread that has entered the lane.
Status on_lane(Lane& lane, const std::function<Status()>& work) {
  Status outcome;
  WorkerThread thread;
  thread.run([&] {
    outcome = lane.enter();
    if (outcome.ok()) outcome = work();
  });
  return outcome;
}

// Masks of the threads that compute for a CPU lane: the controlling one, and the team that a first
// operator on all cores creates.
StatusOr<std::vector<std::string>> cpu_lane_masks(Lane& lane) {
  std::set<int> before;
  for (const ThreadMask& thread : thread_masks()) before.insert(thread.id);
  OperatorShape shape;
  shape.family = Family::kLinear;
  shape.n = shape.c = shape.m = 64 * lane.info().max_threads;
  TANDEM_ASSIGN_OR_RETURN(const Graph graph, graph_of(shape));
  std::vector<std::string> masks;
  TANDEM_RETURN_IF_ERROR(on_lane(lane, [&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(const auto op, SingleOperator::create(graph, lane));
    TANDEM_RETURN_IF_ERROR(op->run(1));
    for (const ThreadMask& mask : thread_masks()) {
      if (!before.contains(mask.id)) masks.push_back(mask.processors);
    }
    return {};
  }));
  return masks;
}

nlohmann::json lane_json(Lane& lane) {
  const LaneInfo& info = lane.info();
  nlohmann::json json = {{"name", info.name},
                         {"description", info.description},
                         {"cores", info.cores},
                         {"max_threads", info.max_threads},
                         {"asynchronous", info.asynchronous},
                         {"fingerprint", info.fingerprint}};
  if (auto* opencl = dynamic_cast<OpenClLane*>(&lane)) {
    json["shared_memory"] = to_string(opencl->shared_memory());
    json["thread_masks"] = opencl->worker_masks();
    json["program_cache"] = {{"hits", opencl->cache_stats().hits},
                             {"misses", opencl->cache_stats().misses}};
    const Status outcome = on_lane(lane, [opencl] { return opencl->self_test(); });
    json["self_test"] = outcome.ok() ? "passed" : outcome.to_string();
    return json;
  }
  const StatusOr<std::vector<std::string>> masks = cpu_lane_masks(lane);
  if (masks.ok()) {
    json["thread_masks"] = *masks;
  } else {
    json["self_test"] = masks.status().to_string();
  }
  return json;
}

nlohmann::json cache_json(const Cache& cache) {
  return {{"level", cache.level},
          {"kind", cache.instructions ? "instructions" : "data"},
          {"bytes", cache.bytes},
          {"processors", to_processor_list(cache.processors)}};
}

nlohmann::json device_json(const OpenClDeviceSummary& device) {
  return {{"platform", device.platform},
          {"device", device.device},
          {"version", device.version},
          {"driver", device.driver},
          {"is_host_cpu", device.is_host_cpu},
          {"shared_memory", to_string(device.shared_memory)},
          {"compute_units", device.compute_units}};
}

// Everything but synchronisation costs.
nlohmann::json examine(Platform& platform) {
  nlohmann::json json;
  json["lanes"] = nlohmann::json::array();
  for (const auto& lane : platform.lanes()) json["lanes"].push_back(lane_json(*lane));
  json["warnings"] = platform.warnings();
  json["fingerprint"] = platform.fingerprint();

  if (const StatusOr<Topology> topology = detect_topology(); topology.ok()) {
    json["cpu"] = topology->cpu_model;
    json["processors"] = topology->processors;
    json["allowed_cores"] = allowed_cores(*topology);
    json["core_kinds"] = nlohmann::json::array();
    for (const CoreKind& kind : topology->kinds) {
      json["core_kinds"].push_back(
          {{"cores", to_processor_list(kind.cores)}, {"max_mhz", kind.max_mhz}});
    }
    json["caches"] = nlohmann::json::array();
    for (const Cache& cache : topology->caches) json["caches"].push_back(cache_json(cache));
  }

  const IcdSearch icds = search_icds();
  json["opencl"] = {{"icd_folder", icds.folder},
                    {"icd_folder_from", icds.reason},
                    {"icd_folder_exists", icds.exists},
                    {"icds", icds.entries},
                    {"devices", nlohmann::json::array()}};
  for (const OpenClDeviceSummary& device : list_opencl_devices()) {
    json["opencl"]["devices"].push_back(device_json(device));
  }
  json["libraries"] = loaded_libraries({"libOpenCL", "libpocl", "libdnnl", "libXNNPACK"});
  json["versions"] = library_versions();
  return json;
}

// --- for people ---

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_report(const nlohmann::json& report, const std::vector<LanePairTimes>& crossings,
                  const std::optional<MechanismChoice>& choice) {
  fmt::print("Processor: {}, {} logical processors, cores {} may be used\n", text_of(report["cpu"]),
             report["processors"].dump(),
             to_processor_list(report["allowed_cores"].get<std::vector<int>>()));
  for (const auto& kind : report["core_kinds"]) {
    fmt::print("  kind of cores {}: {}\n", text_of(kind["cores"]),
               kind["max_mhz"] == 0 ? "clock not visible"
                                    : fmt::format("up to {} MHz", kind["max_mhz"].get<int>()));
  }
  for (const auto& cache : report["caches"]) {
    fmt::print("  L{} {}: {} KiB, processors {}\n", cache["level"].get<int>(),
               text_of(cache["kind"]), cache["bytes"].get<size_t>() / 1024,
               text_of(cache["processors"]));
  }

  fmt::print("\nLanes:\n");
  for (const auto& lane : report["lanes"]) {
    const auto cores = lane["cores"].get<std::vector<int>>();
    fmt::print("  {}: {}\n", text_of(lane["name"]), text_of(lane["description"]));
    fmt::print("    cores {}, up to {} threads a slice\n",
               cores.empty() ? "of its own" : to_processor_list(cores),
               lane["max_threads"].get<int>());
    if (lane.contains("thread_masks")) {
      fmt::print("    masks in force, a thread each: {}\n",
                 fmt::join(lane["thread_masks"].get<std::vector<std::string>>(), " "));
    }
    if (lane.contains("shared_memory")) {
      fmt::print("    memory shared with the host: {}\n", text_of(lane["shared_memory"]));
      fmt::print("    program cache so far: {} hits, {} misses\n",
                 lane["program_cache"]["hits"].get<int>(),
                 lane["program_cache"]["misses"].get<int>());
    }
    if (lane.contains("self_test")) fmt::print("    self-test: {}\n", text_of(lane["self_test"]));
  }

  const auto& opencl = report["opencl"];
  fmt::print(
      "\nOpenCL drivers are looked for in {} ({}): {}\n", text_of(opencl["icd_folder"]),
      text_of(opencl["icd_folder_from"]),
      !opencl["icd_folder_exists"].get<bool>() ? "no such folder"
      : opencl["icds"].empty()
          ? "it has no .icd file"
          : fmt::format("{}", fmt::join(opencl["icds"].get<std::vector<std::string>>(), ", ")));
  for (const auto& device : opencl["devices"]) {
    fmt::print("  {} / {}: {}, driver {}, {} compute units, {}{}\n", text_of(device["platform"]),
               text_of(device["device"]), text_of(device["version"]), text_of(device["driver"]),
               device["compute_units"].get<int>(), text_of(device["shared_memory"]),
               device["is_host_cpu"].get<bool>() ? ", is the host CPU" : "");
  }

  fmt::print("\nSynchronisation: ");
  print_mechanisms(crossings);
  if (choice) print_choice(*choice);

  fmt::print("\nLibraries:\n");
  for (const auto& path : report["libraries"]) fmt::print("  {}\n", text_of(path));
  for (const auto& [library, version] : report["versions"].items()) {
    fmt::print("  {} {}\n", library, text_of(version));
  }
}

// As a session would choose it.
StatusOr<std::optional<MechanismChoice>> chosen_mechanism(const std::shared_ptr<Platform>& platform,
                                                          const PlatformFlags& flags) {
  constexpr std::chrono::seconds kPatience{20};
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + kPatience));
  MechanismChoiceOptions options;
  options.calibration_dir = flags.calibration_dir();
  options.fingerprint = platform->fingerprint();
  TANDEM_ASSIGN_OR_RETURN(MechanismChoice choice, choose_mechanism(*crew, options));
  return std::optional(std::move(choice));
}

Status devices(const Flags& flags) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  nlohmann::json report;
  std::vector<LanePairTimes> crossings;
  std::optional<MechanismChoice> choice;
  {
    const Progress progress("examining lanes");
    report = examine(*platform);
    TANDEM_ASSIGN_OR_RETURN(crossings, bench_sync(platform));
    if (!crossings.empty()) {
      TANDEM_ASSIGN_OR_RETURN(choice, chosen_mechanism(platform, flags.platform));
    }
  }
  if (!flags.json) {
    print_report(report, crossings, choice);
    return {};
  }
  if (choice) report["synchronization_choice"] = choice_json(*choice);
  report["synchronization"] = nlohmann::json::array();
  for (const LanePairTimes& pair : crossings) {
    report["synchronization"].push_back({{"cpu_lane", pair.cpu_lane},
                                         {"queue_lane", pair.queue_lane},
                                         {"mechanisms", mechanisms_json(pair)}});
  }
  fmt::print("{}\n", report.dump(2));
  return {};
}

}  // namespace

void add_devices_command(CLI::App& app, Status* outcome) {
  CLI::App* command = app.add_subcommand(
      "devices", "A doctor: lanes and what is really in force, OpenCL devices, costs, versions");
  const auto flags = std::make_shared<Flags>();
  command->add_flag("--json", flags->json, "Print JSON");
  flags->platform.add_to(*command);
  command->callback([flags, outcome] { *outcome = devices(*flags); });
}

}  // namespace tandem::cli
