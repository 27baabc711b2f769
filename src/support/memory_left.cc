#include "support/memory_left.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "fmt/format.h"

namespace tandem {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The number in a file that holds nothing else.
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

uint64_t left_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::optional<uint64_t> available;
  uint64_t swap = 0;
  std::string key;
  for (uint64_t kilobytes = 0; file >> key >> kilobytes; file.ignore(256, '\n')) {
    if (key == "MemAvailable:") available = kilobytes * 1024;
    if (key == "SwapFree:") swap = kilobytes * 1024;
  }
  return available ? *available + swap : kUnlimited;
}

uint64_t left_of_address_space() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const uint64_t used = number_in("/proc/self/statm").value_or(0) *  // pages come first
                        static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

// Version 2 of control groups: "0::/path" names this process's group. A limit may also be that of
// a parent; inside a container, the group's files are at the root.
uint64_t left_in_control_group() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  uint64_t left = kUnlimited;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::")) continue;
    for (std::string group = line.substr(3);; group.resize(group.rfind('/'))) {
      const std::string folder = "/sys/fs/cgroup" + group;
      const auto limit = number_in(folder + "/memory.max");
      const auto used = number_in(folder + "/memory.current");
      if (limit && used) {
        // Cached files count as used, but make room.
        uint64_t cached = 0;
        std::ifstream details(folder + "/memory.stat");
        std::string key;
        for (uint64_t value = 0; details >> key >> value;) {
          if (key == "inactive_file") cached = value;
        }
        left = std::min(left, *limit - std::min(*limit, *used - std::min(*used, cached)));
      }
      if (group.empty() || group == "/") break;
    }
  }
  return left;
}

}  // namespace

uint64_t memory_left() {
  return std::min({left_on_machine(), left_of_address_space(), left_in_control_group()});
}

Status check_memory(uint64_t bytes, std::string_view what) {
  // Reading what is left takes a while, and next to nothing always fits.
  constexpr uint64_t kLarge = uint64_t{64} << 20;
  if (bytes < kLarge) return {};
  const uint64_t left = memory_left();
  if (bytes <= left) return {};
  return resource_exhausted(fmt::format("{} {} MB, and {} MB of memory are left to this process",
                                        what, bytes >> 20, left >> 20));
}

}  // namespace tandem
