// The lanes of this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/status.h"

namespace tandem {

class Lane;

struct PlatformOptions {
  // Logical processors for the OpenCL lane where its device is the host CPU (PoCL), and for CPU
  // lanes. Empty: chosen here. Lanes are disjoint.
  std::vector<int> opencl_cores;
  std::vector<std::vector<int>> cpu_lanes;
  bool use_gpu = true;             // false: CPU lanes only
  std::string opencl_device;       // substring of platform or device name; empty: the best one
  bool opencl_own_memory = false;  // as if the device shared no memory while kernels run
  // Whether the OpenCL lane may compute 3x3 convolutions after Winograd: faster, with errors of at
  // most twice a direct sum's on most data (docs/kernels.md).
  bool winograd = true;
  std::string program_cache_dir;  // empty: $XDG_CACHE_HOME/tandem/programs; "none": no cache
};

// Creating one starts drivers and their threads; keep it for the life of the process. PoCL reads
// its thread count and affinity once per process, so that a second Platform with other OpenCL cores
// in the same process is refused.
class Platform {
 public:
  static StatusOr<std::shared_ptr<Platform>> create(const PlatformOptions& options = {});
  virtual ~Platform() = default;

  // CPU lanes first, then the OpenCL lane if there is one.
  virtual const std::vector<std::unique_ptr<Lane>>& lanes() const = 0;
  // Why there is no OpenCL lane, or what it does without; empty if nothing is amiss.
  virtual const std::vector<std::string>& warnings() const = 0;
  // Identifies hardware, drivers and libraries; measured times of one fingerprint are comparable.
  virtual std::string fingerprint() const = 0;
  // The names of lanes(), in order.
  std::vector<std::string> lane_names() const;
};

}  // namespace tandem
