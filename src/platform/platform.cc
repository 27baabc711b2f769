#include "tandem/platform.h"

#include <mutex>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lane/cpu/cpu_lane.h"
#include "lane/opencl/opencl_lane.h"
#include "platform/assign_cores.h"
#include "platform/topology.h"
#include "support/cache_folder.h"
#include "support/guarded.h"
#include "tandem/version.h"

namespace tandem {
namespace {

class HostPlatform final : public Platform {
 public:
  HostPlatform(std::vector<std::unique_ptr<Lane>> lanes, std::vector<std::string> warnings,
               std::string fingerprint)
      : lanes_(std::move(lanes)),
        warnings_(std::move(warnings)),
        fingerprint_(std::move(fingerprint)) {}

  const std::vector<std::unique_ptr<Lane>>& lanes() const override { return lanes_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::string> warnings_;
  std::string fingerprint_;
};

// The cores that a device on the host was started with in this process: such drivers read their
// thread count and affinity once.
Status check_same_opencl_cores(const std::vector<int>& cores) {
  static std::mutex mutex;
  static std::optional<std::vector<int>> first;
  const std::lock_guard lock(mutex);
  if (!first) first = cores;
  if (*first == cores) return {};
  return failed_precondition(
      fmt::format("this process already runs an OpenCL device on cores {}; it cannot move to {}: "
                  "start a new process for that",
                  to_processor_list(*first), to_processor_list(cores)));
}

std::string make_fingerprint(const Topology& topology,
                             const std::vector<std::unique_ptr<Lane>>& lanes) {
  std::string text = fmt::format("tandem {}; {}", kVersion, topology.cpu_model);
  for (const auto& lane : lanes) {
    text += fmt::format("; {}", lane->info().name);
    if (!lane->info().cores.empty()) text += "@" + to_processor_list(lane->info().cores);
    text += ": " + lane->info().fingerprint;
  }
  return text;
}

// The OpenCL lane, or null where there can be none: then a warning says why. An error only if the
// caller asked for a device that cannot be had.
StatusOr<std::unique_ptr<OpenClLane>> start_opencl_lane(const PlatformOptions& options,
                                                        std::vector<int> cores,
                                                        std::vector<std::string>* warnings) {
  const bool asked = !options.opencl_device.empty() || !options.opencl_cores.empty();
  OpenClLaneOptions lane_options;
  lane_options.device = options.opencl_device;
  lane_options.winograd = options.winograd;
  lane_options.cores = std::move(cores);
  if (options.opencl_own_memory) lane_options.memory = OpenClMemory::kCoarse;
  lane_options.program_cache_dir = options.program_cache_dir.empty()
                                       ? default_cache_folder("programs")
                                       : options.program_cache_dir;
  StatusOr<std::unique_ptr<OpenClLane>> lane = make_opencl_lane(lane_options);
  if (!lane.ok()) {
    if (asked) return lane.status();
    warnings->push_back("no OpenCL lane: " + lane.status().message());
    return std::unique_ptr<OpenClLane>();
  }
  for (const std::string& warning : (*lane)->warnings()) {
    warnings->push_back(fmt::format("lane {}: {}", (*lane)->info().name, warning));
  }
  if (!(*lane)->info().cores.empty()) {
    TANDEM_RETURN_IF_ERROR(check_same_opencl_cores((*lane)->info().cores));
  }
  return lane;
}

StatusOr<std::shared_ptr<Platform>> create_platform(const PlatformOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const Topology topology, detect_topology());
  std::vector<std::string> warnings;

  // Whether the device is the host CPU is known only once its driver has started, and the driver
  // takes its cores when it starts: so it gets the cores that it would have to share, and gives
  // them back to the CPU lanes if it turns out to be a device of its own.
  TANDEM_ASSIGN_OR_RETURN(CoreAssignment assignment, assign_cores(topology, options, true));
  std::unique_ptr<OpenClLane> opencl_lane;
  if (options.use_gpu) {
    const std::vector<int>& cores = assignment.opencl_cores;
    TANDEM_ASSIGN_OR_RETURN(
        opencl_lane,
        start_opencl_lane(options, cores.empty() ? allowed_cores(topology) : cores, &warnings));
  }
  bool opencl_on_host = opencl_lane && !opencl_lane->info().cores.empty();
  if (opencl_on_host && assignment.opencl_cores.empty()) {
    warnings.push_back(fmt::format(
        "no OpenCL lane: {} is the host CPU, whose cores all belong to CPU lanes, and lanes do not "
        "share cores",
        opencl_lane->info().description));
    opencl_lane.reset();
    opencl_on_host = false;
  }
  if (opencl_lane && !opencl_on_host && !options.opencl_cores.empty()) {
    warnings.push_back(fmt::format("{} is not the host CPU: the cores given for it are not used",
                                   opencl_lane->info().description));
  }
  TANDEM_ASSIGN_OR_RETURN(assignment, assign_cores(topology, options, opencl_on_host));

  std::vector<std::unique_ptr<Lane>> lanes;
  for (const CpuLaneCores& cores : assignment.cpu_lanes) {
    TANDEM_ASSIGN_OR_RETURN(auto lane, make_cpu_lane({cores.name, cores.cores}));
    lanes.push_back(std::move(lane));
  }
  if (opencl_lane) lanes.push_back(std::move(opencl_lane));
  if (lanes.empty()) {
    return invalid_argument("the options leave no core for any lane");
  }
  std::string fingerprint = make_fingerprint(topology, lanes);
  return std::shared_ptr<Platform>(std::make_shared<HostPlatform>(
      std::move(lanes), std::move(warnings), std::move(fingerprint)));
}

}  // namespace

StatusOr<std::shared_ptr<Platform>> Platform::create(const PlatformOptions& options) {
  return guarded([&] { return create_platform(options); });
}

std::vector<std::string> Platform::lane_names() const {
  std::vector<std::string> names;
  for (const auto& lane : lanes()) names.push_back(lane->info().name);
  return names;
}

}  // namespace tandem
