// What the host's processor looks like: cores by kind, caches, and which of them this process may
// use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/status.h"

namespace tandem {

// A group of equal cores: on big.LITTLE processors there are several, elsewhere one.
struct CoreKind {
  // One logical processor per core, ascending: hardware threads of one core share its arithmetic
  // units, so that a lane gains nothing from the second.
  std::vector<int> cores;
  int max_mhz = 0;  // 0: unknown
};

struct Cache {
  int level = 1;
  bool instructions = false;  // an instruction cache; others hold data
  size_t bytes = 0;
  std::vector<int> processors;  // logical processors that share it
};

struct Topology {
  std::string cpu_model;
  int processors = 0;           // logical processors of the machine
  std::vector<CoreKind> kinds;  // fastest first; only cores that this process may use
  std::vector<Cache> caches;    // of those cores, by level
};

// Reads the machine. The process's affinity mask is read at the first call and kept, because lanes
// pin threads afterwards.
StatusOr<Topology> detect_topology();

// All cores that the process may use, ascending.
std::vector<int> allowed_cores(const Topology& topology);
// Bytes of the largest data cache.
int64_t last_cache_bytes(const Topology& topology);

// A thread of this process and the processors that it may run on, as the kernel says.
struct ThreadMask {
  int id = 0;
  std::string name;
  std::string processors;  // "0", "0-3,8"
};
std::vector<ThreadMask> thread_masks();

// {0, 1, 2, 5} as "0-2,5", and back. Parsing refuses what is not such a list.
std::string to_processor_list(const std::vector<int>& processors);
StatusOr<std::vector<int>> parse_processor_list(const std::string& text);

}  // namespace tandem
