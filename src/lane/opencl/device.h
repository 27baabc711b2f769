// Finding the OpenCL device, and starting PoCL's worker threads on the right cores.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "lane/opencl/api.h"
#include "lane/opencl/opencl_lane.h"

namespace tandem::opencl {

struct Device {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  OpenClDeviceSummary summary;
  std::string vendor;
  size_t local_bytes = 0;       // of local memory that a group may have
  size_t cache_bytes = 0;       // of the cache before global memory; 0: none, or not told
  size_t max_work_group = 0;    // work-items
  size_t allocation_bytes = 0;  // that one allocation may have at most
  std::string language_option;  // the newest -cl-std= that the device compiles

  // What compiled programs and measured times depend on.
  std::string fingerprint() const;
};

// The device whose name, platform or version contains `name` (in any case), GPUs before CPUs. If it
// is the host CPU, its driver gets one worker thread per core of `cores`, on those cores alone. A
// driver starts its threads at the first OpenCL call of a process: if that was an earlier one,
// under other conditions, the threads are moved, and kFailedPrecondition if their number is
// another.
StatusOr<Device> open_device(const std::string& name, const std::vector<int>& cores);

std::vector<Device> all_devices();

// Of this process's threads that drivers made: one mask each ("0", "0-3"), as the kernel has it.
std::vector<std::string> worker_masks();

// Makes the calling thread run on `cores` only. kInvalidArgument if it may not.
Status pin_this_thread(const std::vector<int>& cores);

}  // namespace tandem::opencl
