// The OpenCL lane: our own kernels on one device with one in-order queue.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lane/lane.h"

namespace tandem {

// Which of a device's kinds of memory the lane uses.
enum class OpenClMemory : uint8_t {
  kAuto,    // the strongest that the device has
  kCoarse,  // coarse-grained, whatever it has: for tests of what other devices need
};

struct OpenClLaneOptions {
  std::string name = "gpu";
  std::string device;             // substring of name, platform or version; empty: the best
  std::vector<int> cores;         // for a device that is the host CPU: the cores of its workers
  bool winograd = true;           // 3x3 convolutions after Winograd where the rule picks them
  std::string program_cache_dir;  // "none": no cache
  OpenClMemory memory = OpenClMemory::kAuto;
};

struct ProgramCacheStats {
  int hits = 0;
  int misses = 0;  // programs compiled from source
};

class OpenClLane : public QueueLane {
 public:
  // What is amiss but not fatal (an unwritable cache, a failed self-test); empty if nothing.
  virtual const std::vector<std::string>& warnings() const = 0;
  virtual ProgramCacheStats cache_stats() const = 0;
  // Masks read back from the kernel for the device's worker threads, one per thread ("0", "0-3");
  // empty where the device is not the host CPU.
  virtual std::vector<std::string> worker_masks() const = 0;
};

// kNotFound if there is no OpenCL platform or no matching device: the message says where was looked
// and what to install.
StatusOr<std::unique_ptr<OpenClLane>> make_opencl_lane(const OpenClLaneOptions& options);

// One line per device found, for `tandem devices`.
struct OpenClDeviceSummary {
  std::string platform;
  std::string device;
  std::string version;
  std::string driver;
  bool is_host_cpu = false;
  SharedMemoryKind shared_memory = SharedMemoryKind::kNone;
  int compute_units = 0;
};
std::vector<OpenClDeviceSummary> list_opencl_devices();

}  // namespace tandem
