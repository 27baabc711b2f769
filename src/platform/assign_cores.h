// Which lane computes on which cores.
#pragma once

#include <string>
#include <vector>

#include "platform/topology.h"
#include "tandem/platform.h"

namespace tandem {

struct CpuLaneCores {
  std::string name;
  std::vector<int> cores;

  bool operator==(const CpuLaneCores&) const = default;
};

struct CoreAssignment {
  std::vector<int> opencl_cores;        // empty: no OpenCL lane on this host's cores
  std::vector<CpuLaneCores> cpu_lanes;  // fastest first
};

// Lanes get what the options say; what they leave open is divided like this: an OpenCL device that
// is the host CPU gets the first half of the cores that no CPU lane has claimed (the lower half,
// rounded down), and each kind of the remaining cores is a CPU lane. `opencl_on_host` says whether
// there is such a device. Fails on cores that the process may not use, and on lanes that overlap.
StatusOr<CoreAssignment> assign_cores(const Topology& topology, const PlatformOptions& options,
                                      bool opencl_on_host);

}  // namespace tandem
