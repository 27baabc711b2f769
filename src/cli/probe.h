// How fast the cores are at this moment, independent of any kernel under measurement: tells a
// disturbed machine from a slow kernel.
#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

// GFLOPS of f32 multiply-adds held in registers.
struct Probe {
  std::vector<int> cores;
  std::vector<double> alone;     // each core while the others rest
  std::vector<double> together;  // all at once
};

// Takes some ten milliseconds a core.
Probe probe(const std::vector<int>& cores);

std::string to_text(const Probe& probe);

}  // namespace tandem::cli
