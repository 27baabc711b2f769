#include "platform/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>

#include "fmt/format.h"

namespace tandem {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

std::vector<int> to_vector(hwloc_const_bitmap_t bitmap) {
  std::vector<int> processors;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) {
    processors.push_back(i);
  }
  return processors;
}

// The main thread's mask at the first call: what `taskset` or a container gave the process.
const std::vector<int>& process_mask() {
  static const std::vector<int> mask = [] {
    std::vector<int> processors;
    // The kernel refuses a set smaller than its own; this one holds as many as any kernel has.
    constexpr int kMost = 8192;
    cpu_set_t* set = CPU_ALLOC(kMost);
    const size_t bytes = CPU_ALLOC_SIZE(kMost);
    CPU_ZERO_S(bytes, set);
    if (sched_getaffinity(getpid(), bytes, set) == 0) {
      for (int i = 0; i < kMost; ++i) {
        if (CPU_ISSET_S(i, bytes, set)) processors.push_back(i);
      }
    }
    CPU_FREE(set);
    return processors;
  }();
  return mask;
}

// The first allowed processor of every core that meets `within`.
std::vector<int> first_processors(hwloc_topology_t topology, hwloc_const_bitmap_t within) {
  std::vector<int> cores;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr) {
    const Bitmap usable(hwloc_bitmap_alloc());
    hwloc_bitmap_and(usable.get(), core->cpuset, within);
    const int first = hwloc_bitmap_first(usable.get());
    if (first >= 0) cores.push_back(first);
  }
  // Some virtual machines describe processors without cores.
  if (cores.empty()) cores = to_vector(within);
  std::sort(cores.begin(), cores.end());
  return cores;
}

int read_max_mhz(int processor) {
  std::ifstream file(
      fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/cpuinfo_max_freq", processor));
  int khz = 0;
  return file >> khz ? khz / 1000 : 0;
}

std::vector<CoreKind> read_kinds(hwloc_topology_t topology, hwloc_const_bitmap_t allowed) {
  std::vector<CoreKind> kinds;
  const auto add = [&](hwloc_const_bitmap_t within) {
    CoreKind kind;
    kind.cores = first_processors(topology, within);
    kind.max_mhz = read_max_mhz(kind.cores.front());
    kinds.push_back(std::move(kind));
  };
  // hwloc ranks kinds from the most efficient to the fastest.
  const int count = std::max(0, hwloc_cpukinds_get_nr(topology, 0));
  for (int i = count - 1; i >= 0; --i) {
    const Bitmap within(hwloc_bitmap_alloc());
    int efficiency = 0;
    if (hwloc_cpukinds_get_info(topology, i, within.get(), &efficiency, nullptr, nullptr, 0) != 0) {
      continue;
    }
    // Kinds that hwloc could not rank may differ in nothing but a label.
    if (efficiency < 0) break;
    hwloc_bitmap_and(within.get(), within.get(), allowed);
    if (!hwloc_bitmap_iszero(within.get())) add(within.get());
  }
  if (kinds.empty()) add(allowed);
  return kinds;
}

std::vector<Cache> read_caches(hwloc_topology_t topology, hwloc_const_bitmap_t allowed) {
  constexpr hwloc_obj_type_t kTypes[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE,
                                         HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE};
  std::vector<Cache> caches;
  for (const hwloc_obj_type_t type : kTypes) {
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
      if (!hwloc_bitmap_intersects(object->cpuset, allowed)) continue;
      Cache cache;
      cache.level = static_cast<int>(object->attr->cache.depth);
      cache.instructions = object->attr->cache.type == HWLOC_OBJ_CACHE_INSTRUCTION;
      cache.bytes = object->attr->cache.size;
      cache.processors = to_vector(object->cpuset);
      caches.push_back(std::move(cache));
    }
  }
  return caches;
}

std::string read_cpu_model(hwloc_topology_t topology) {
  hwloc_obj_t root = hwloc_get_root_obj(topology);
  for (hwloc_obj_t object = root; object != nullptr;
       object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE,
                                           object == root ? nullptr : object)) {
    if (const char* model = hwloc_obj_get_info_by_name(object, "CPUModel")) return model;
  }
  return "unknown processor";
}

}  // namespace

StatusOr<Topology> detect_topology() {
  const std::vector<int>& mask = process_mask();
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return internal_error("hwloc_topology_init failed");
  const HwlocTopology topology(raw);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0) {
    return internal_error("hwloc cannot read this machine's topology (is /sys mounted?)");
  }

  const Bitmap allowed(hwloc_bitmap_alloc());
  for (const int processor : mask) hwloc_bitmap_set(allowed.get(), processor);
  hwloc_bitmap_and(allowed.get(), allowed.get(), hwloc_topology_get_allowed_cpuset(raw));
  if (hwloc_bitmap_iszero(allowed.get())) {
    return internal_error("the kernel names no processor that this process may use");
  }

  Topology result;
  result.cpu_model = read_cpu_model(raw);
  result.processors = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU);
  result.kinds = read_kinds(raw, allowed.get());
  result.caches = read_caches(raw, allowed.get());
  return result;
}

std::vector<int> allowed_cores(const Topology& topology) {
  std::vector<int> cores;
  for (const CoreKind& kind : topology.kinds) {
    cores.insert(cores.end(), kind.cores.begin(), kind.cores.end());
  }
  std::sort(cores.begin(), cores.end());
  return cores;
}

int64_t last_cache_bytes(const Topology& topology) {
  size_t bytes = 0;
  for (const Cache& cache : topology.caches) {
    if (!cache.instructions) bytes = std::max(bytes, cache.bytes);
  }
  return static_cast<int64_t>(bytes);
}

std::vector<ThreadMask> thread_masks() {
  std::vector<ThreadMask> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    ThreadMask thread;
    thread.id = std::atoi(entry.path().filename().c_str());
    std::ifstream status(entry.path() / "status");
    // A thread that ended meanwhile leaves the fields empty.
    for (std::string line; std::getline(status, line);) {
      const auto value_of = [&line](std::string_view key) {
        const size_t at = line.find_first_not_of(" \t", key.size());
        return at == std::string::npos ? std::string() : line.substr(at);
      };
      if (line.starts_with("Name:")) thread.name = value_of("Name:");
      if (line.starts_with("Cpus_allowed_list:")) {
        thread.processors = value_of("Cpus_allowed_list:");
      }
    }
    if (!thread.processors.empty()) threads.push_back(std::move(thread));
  }
  std::sort(threads.begin(), threads.end(),
            [](const ThreadMask& a, const ThreadMask& b) { return a.id < b.id; });
  return threads;
}

std::string to_processor_list(const std::vector<int>& processors) {
  std::vector<int> sorted = processors;
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text +=
        last == i ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[last]);
    i = last + 1;
  }
  return text;
}

StatusOr<std::vector<int>> parse_processor_list(const std::string& text) {
  const auto malformed = [&text] {
    return invalid_argument(fmt::format("'{}' is not a list of processors such as 0-2,5", text));
  };
  constexpr int kMost = 1 << 16;  // so that 0-2000000000 is a typing error, not a gigabyte
  std::vector<int> processors;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int first = 0;
    auto [after, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first < 0) return malformed();
    int last = first;
    if (after != end && *after == '-') {
      const std::from_chars_result result = std::from_chars(after + 1, end, last);
      if (result.ec != std::errc() || last < first) return malformed();
      after = result.ptr;
    }
    if (last >= kMost) return malformed();
    for (int processor = first; processor <= last; ++processor) processors.push_back(processor);
    if (after == end) break;
    if (*after != ',') return malformed();
    at = after + 1;
  }
  std::sort(processors.begin(), processors.end());
  processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
  return processors;
}

}  // namespace tandem
