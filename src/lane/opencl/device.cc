#include "lane/opencl/device.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "support/log.h"

namespace tandem::opencl {
namespace {

// What drivers did in this process. They are started once, by its first OpenCL call.
struct DriverThreads {
  std::mutex mutex;
  bool started = false;
  std::vector<pid_t> workers;
};

DriverThreads& driver_threads() {
  static DriverThreads threads;
  return threads;
}

std::set<pid_t> this_process_threads() {
  std::set<pid_t> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    ids.insert(static_cast<pid_t>(std::atoi(entry.path().filename().c_str())));
  }
  return ids;
}

cpu_set_t mask_of(const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) CPU_SET(core, &mask);
  return mask;
}

// "0-2,5".
std::string to_string(const cpu_set_t& mask) {
  std::vector<std::string> parts;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &mask)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &mask)) ++last;
    parts.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
    first = last;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

Status set_mask(pid_t thread, const std::vector<int>& cores) {
  const cpu_set_t mask = mask_of(cores);
  if (sched_setaffinity(thread, sizeof(mask), &mask) == 0) return {};
  return invalid_argument(
      fmt::format("cannot run a thread on cores {}: {}; see which cores this "
                  "process may use with `taskset -p {}`",
                  to_string(mask), std::strerror(errno), getpid()));
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(count);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
  return devices;
}

std::vector<cl_platform_id> platforms() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> result(count);
  clGetPlatformIDs(count, result.data(), nullptr);
  return result;
}

// PoCL finds no device where it cannot create its kernel cache, in a container under a user without
// a home, say. Then, unless the user has chosen one, it gets a folder among temporary files.
void give_pocl_a_cache() {
  if (getenv("POCL_CACHE_DIR")) return;
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (!cache && !home) return;  // PoCL itself takes a temporary folder
  namespace fs = std::filesystem;
  const fs::path usual = (cache ? fs::path(cache) : fs::path(home) / ".cache") / "pocl" / "kcache";
  std::error_code error;
  fs::create_directories(usual, error);
  if (!error && access(usual.c_str(), W_OK) == 0) return;
  const fs::path instead =
      fs::temp_directory_path(error) / fmt::format("tandem-pocl-{}", geteuid());
  mkdir(instead.c_str(), S_IRWXU);
  struct stat status;
  const bool ours =
      lstat(instead.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  if (!ours) return;
  log().warn("PoCL cannot keep kernels in {}; they go to {}", usual.string(), instead.string());
  setenv("POCL_CACHE_DIR", instead.c_str(), 1);
}

// The process's first OpenCL call, made so that the threads that drivers start inherit `cores` and
// are as many. `cores` may be empty: as drivers please.
Status start_drivers(const std::vector<int>& cores) {
  DriverThreads& threads = driver_threads();
  const std::lock_guard<std::mutex> lock(threads.mutex);
  if (threads.started) return {};
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof(before), &before) != 0) {
    return internal_error(fmt::format("sched_getaffinity: {}", std::strerror(errno)));
  }
  if (!cores.empty()) {
    TANDEM_RETURN_IF_ERROR(set_mask(0, cores));
    // PoCL has no other way of being told.
    setenv("POCL_MAX_PTHREAD_COUNT", fmt::format("{}", cores.size()).c_str(), 1);
  }
  give_pocl_a_cache();
  const std::set<pid_t> old_threads = this_process_threads();
  for (const cl_platform_id platform : platforms()) devices_of(platform);
  for (const pid_t id : this_process_threads()) {
    if (!old_threads.contains(id)) threads.workers.push_back(id);
  }
  threads.started = true;
  sched_setaffinity(0, sizeof(before), &before);
  return {};
}

std::string text(cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  if (clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string value(size, '\0');
  clGetPlatformInfo(platform, what, size, value.data(), nullptr);
  return value.c_str();
}

std::string text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string value(size, '\0');
  clGetDeviceInfo(device, what, size, value.data(), nullptr);
  return value.c_str();
}

template <typename T>
T number(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof(value), &value, nullptr);
  return value;
}

SharedMemoryKind shared_memory_of(cl_device_id device) {
  const auto capabilities = number<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES);
  if (capabilities & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) {
    return capabilities & CL_DEVICE_SVM_ATOMICS ? SharedMemoryKind::kFineAtomics
                                                : SharedMemoryKind::kFine;
  }
  return capabilities & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER ? SharedMemoryKind::kCoarse
                                                          : SharedMemoryKind::kNone;
}

// OpenCL 3.0 devices list the versions that they compile; older ones name the highest.
std::string language_option_of(cl_device_id device) {
  size_t bytes = 0;
  if (clGetDeviceInfo(device, CL_DEVICE_OPENCL_C_ALL_VERSIONS, 0, nullptr, &bytes) == CL_SUCCESS) {
    std::vector<cl_name_version> versions(bytes / sizeof(cl_name_version));
    clGetDeviceInfo(device, CL_DEVICE_OPENCL_C_ALL_VERSIONS, bytes, versions.data(), nullptr);
    for (const cl_name_version& version : versions) {
      if (CL_VERSION_MAJOR(version.version) >= 3) return "-cl-std=CL3.0";
    }
  }
  return text(device, CL_DEVICE_OPENCL_C_VERSION).find("OpenCL C 2") == std::string::npos
             ? "-cl-std=CL1.2"
             : "-cl-std=CL2.0";
}

Device describe(cl_platform_id platform, cl_device_id id) {
  Device device;
  device.platform = platform;
  device.id = id;
  device.summary.platform = text(platform, CL_PLATFORM_NAME);
  device.summary.device = text(id, CL_DEVICE_NAME);
  device.summary.version = text(id, CL_DEVICE_VERSION);
  device.summary.driver = text(id, CL_DRIVER_VERSION);
  device.summary.is_host_cpu =
      (number<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  device.summary.shared_memory = shared_memory_of(id);
  device.vendor = text(id, CL_DEVICE_VENDOR);
  device.local_bytes = number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  device.cache_bytes = number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  device.max_work_group = number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  device.allocation_bytes = number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device.summary.compute_units = static_cast<int>(number<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  device.language_option = language_option_of(id);
  return device;
}

bool matches(const Device& device, const std::string& name) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  const OpenClDeviceSummary& summary = device.summary;
  const std::vector<std::string> texts{summary.platform, summary.device, summary.version};
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return std::search(text.begin(), text.end(), name.begin(), name.end(), same) != text.end();
  });
}

// Drivers that were started before may have their threads on other cores.
Status place_workers(const Device& device, const std::vector<int>& cores) {
  DriverThreads& threads = driver_threads();
  const std::lock_guard<std::mutex> lock(threads.mutex);
  if (device.summary.compute_units > static_cast<int>(cores.size())) {
    return failed_precondition(fmt::format(
        "{} was started with {} worker threads earlier in this process, and cannot be limited to "
        "{} cores now: create the OpenCL lane before any other use of OpenCL",
        device.summary.device, device.summary.compute_units, cores.size()));
  }
  for (const pid_t worker : threads.workers) TANDEM_RETURN_IF_ERROR(set_mask(worker, cores));
  return {};
}

}  // namespace

std::string Device::fingerprint() const {
  return fmt::format("{}; {}; {}; {}; {} compute units", summary.platform, summary.device,
                     summary.version, summary.driver, summary.compute_units);
}

std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const cl_platform_id platform : platforms()) {
    for (const cl_device_id id : devices_of(platform)) devices.push_back(describe(platform, id));
  }
  return devices;
}

StatusOr<Device> open_device(const std::string& name, const std::vector<int>& cores) {
  TANDEM_RETURN_IF_ERROR(start_drivers(cores));
  const std::vector<Device> devices = all_devices();
  if (devices.empty()) {
    const char* vendors = std::getenv("OCL_ICD_VENDORS");
    return not_found(fmt::format(
        "no OpenCL device{}: drivers are looked for in {}; install the GPU's driver, or PoCL "
        "(package pocl-opencl-icd)",
        name.empty() ? "" : fmt::format(", and so none called \"{}\"", name),
        vendors != nullptr ? fmt::format("{} (set by OCL_ICD_VENDORS)", vendors)
                           : "/etc/OpenCL/vendors"));
  }
  const Device* best = nullptr;
  for (const Device& device : devices) {
    if (!matches(device, name)) continue;
    if (!best || (best->summary.is_host_cpu && !device.summary.is_host_cpu)) best = &device;
  }
  if (!best) {
    std::vector<std::string> names;
    for (const Device& device : devices) names.push_back(device.summary.device);
    return not_found(
        fmt::format("no OpenCL device has \"{}\" in its name, platform or version; there are: "
                    "{}",
                    name, fmt::join(names, ", ")));
  }
  if (best->summary.is_host_cpu && !cores.empty()) {
    TANDEM_RETURN_IF_ERROR(place_workers(*best, cores));
  }
  return *best;
}

std::vector<std::string> worker_masks() {
  DriverThreads& threads = driver_threads();
  const std::lock_guard<std::mutex> lock(threads.mutex);
  std::vector<std::string> masks;
  for (const pid_t worker : threads.workers) {
    cpu_set_t mask;
    if (sched_getaffinity(worker, sizeof(mask), &mask) == 0) masks.push_back(to_string(mask));
  }
  return masks;
}

Status pin_this_thread(const std::vector<int>& cores) { return set_mask(0, cores); }

}  // namespace tandem::opencl

namespace tandem {

std::vector<OpenClDeviceSummary> list_opencl_devices() {
  std::vector<OpenClDeviceSummary> summaries;
  if (!opencl::start_drivers({}).ok()) return summaries;
  for (const opencl::Device& device : opencl::all_devices()) summaries.push_back(device.summary);
  return summaries;
}

}  // namespace tandem
