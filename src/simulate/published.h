// Published measurements (data/published) that the simulator is compared with and fitted to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lane/sim/workload.h"

namespace tandem::simulate {

enum class EntryKind : uint8_t { kNetwork, kOperator, kSync, kSpeedUp };
const char* to_string(EntryKind kind);

struct Entry {
  std::string id;
  EntryKind kind = EntryKind::kNetwork;
  std::string platform;
  std::string runtime;
  std::string lanes;     // "gpu", "prime:1+big:3", "cpu>gpu"
  std::string workload;  // a network, an operator, a mechanism
  double value = 0;      // microseconds, or a ratio
  std::string source;
  std::string note;
  bool held_out = false;
};

// Operators of a network, equal ones counted.
struct CountedWorkload {
  sim::Workload work;
  int count = 1;
};
using Network = std::vector<CountedWorkload>;

struct Published {
  std::vector<Entry> entries;
  std::map<std::string, Network> networks;
};

// Reads phones_*.csv, literature*.csv and held_out.txt of a folder. Errors name
// file and line. A name in held_out.txt that no entry has is an error: nothing would be held out.
StatusOr<Published> load_published(const std::string& folder);

}  // namespace tandem::simulate
