// How fast the cores are at this moment, independent of any kernel under measurement: tells a
// disturbed machine from a slow kernel.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::cli {

struct CoreSpeed {
  double gflops = 0;                // of f32 multiply-adds held in registers
  double gigabytes_per_second = 0;  // read from memory that no cache holds
};

struct Probe {
  std::vector<int> cores;
  std::vector<CoreSpeed> alone;     // each core while the others rest
  std::vector<CoreSpeed> together;  // all at once
};

// Takes some 200 ms a core.
Probe probe(const std::vector<int>& cores);

nlohmann::json to_json(const Probe& probe);
std::string to_text(const Probe& probe);

}  // namespace tandem::cli
