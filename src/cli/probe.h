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

// Gigabytes a second that the cores read together, again and again, from memory of `bytes`, an
// equal part each: from whatever cache holds it. Takes some milliseconds.
double read_speed_together(const std::vector<int>& cores, size_t bytes);

// Tells when cores are slower than they have been: others compute on the machine, or a hypervisor
// has put several cores on one.
class SpeedWatch {
 public:
  explicit SpeedWatch(std::vector<int> cores) : cores_(std::move(cores)) {}
  // Whether all of the cores, at once, reach most of the multiply-adds a second that the slowest of
  // them had at its best. Takes a fraction of a millisecond.
  bool disturbed();

 private:
  const std::vector<int> cores_;
  double best_gflops_ = 0;
};

nlohmann::json to_json(const Probe& probe);
std::string to_text(const Probe& probe);

}  // namespace tandem::cli
