#include "platform/assign_cores.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "fmt/format.h"

namespace tandem {
namespace {

// Marks `cores` as taken by `owner`, if the process may use them and no other lane has them.
Status claim(const std::vector<int>& cores, const std::string& owner, const Topology& topology,
             const std::vector<int>& allowed, std::set<int>* taken) {
  for (const int core : cores) {
    if (core < 0 || core >= topology.processors) {
      return invalid_argument(
          fmt::format("{} is to run on core {}, but this machine has cores 0-{}", owner, core,
                      topology.processors - 1));
    }
    if (!std::binary_search(allowed.begin(), allowed.end(), core)) {
      return invalid_argument(
          fmt::format("{} is to run on core {}, but this process may use one processor each of "
                      "cores {} only (affinity mask, container limits, hardware threads)",
                      owner, core, to_processor_list(allowed)));
    }
    if (!taken->insert(core).second) {
      return invalid_argument(fmt::format(
          "{} is to run on core {}, which another lane has: lanes must be disjoint", owner, core));
    }
  }
  return {};
}

std::vector<int> without(const std::vector<int>& cores, const std::set<int>& taken) {
  std::vector<int> left;
  std::copy_if(cores.begin(), cores.end(), std::back_inserter(left),
               [&taken](int core) { return !taken.contains(core); });
  return left;
}

// Names of `count` CPU lanes, fastest first.
std::string cpu_lane_name(size_t index, size_t count) {
  if (count == 1) return "cpu";
  if (count == 2) return index == 0 ? "cpu.big" : "cpu.little";
  return fmt::format("cpu.{}", index);
}

}  // namespace

StatusOr<CoreAssignment> assign_cores(const Topology& topology, const PlatformOptions& options,
                                      bool opencl_on_host) {
  const std::vector<int> allowed = allowed_cores(topology);
  CoreAssignment result;
  std::set<int> taken;

  for (size_t i = 0; i < options.cpu_lanes.size(); ++i) {
    const std::string name = cpu_lane_name(i, options.cpu_lanes.size());
    if (options.cpu_lanes[i].empty()) {
      return invalid_argument("lane " + name + " was given no cores");
    }
    TANDEM_RETURN_IF_ERROR(claim(options.cpu_lanes[i], "lane " + name, topology, allowed, &taken));
    result.cpu_lanes.push_back({name, options.cpu_lanes[i]});
  }

  if (opencl_on_host && options.use_gpu) {
    result.opencl_cores = options.opencl_cores;
    if (result.opencl_cores.empty()) {
      result.opencl_cores = without(allowed, taken);
      // Given CPU lanes, the rest is for OpenCL; otherwise half, and CPU lanes take the rest.
      if (options.cpu_lanes.empty()) result.opencl_cores.resize(result.opencl_cores.size() / 2);
    }
    TANDEM_RETURN_IF_ERROR(
        claim(result.opencl_cores, "the OpenCL lane", topology, allowed, &taken));
  }

  if (options.cpu_lanes.empty()) {
    std::vector<std::vector<int>> groups;
    for (const CoreKind& kind : topology.kinds) {
      std::vector<int> left = without(kind.cores, taken);
      if (!left.empty()) groups.push_back(std::move(left));
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      result.cpu_lanes.push_back({cpu_lane_name(i, groups.size()), std::move(groups[i])});
    }
  }
  return result;
}

}  // namespace tandem
