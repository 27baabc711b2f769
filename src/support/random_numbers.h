// Seeded numbers that are the same on every machine: the standard fixes this engine, but not what
// its distributions make of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace tandem {

class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : engine_(seed) {}

  // In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  // In [low, high).
  double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1.0p-53);
  }
  // In [low, high), as often in each equal ratio.
  double ratio(double low, double high) { return low * std::pow(high / low, real(0, 1)); }
  bool coin() { return (engine_() >> 32 & 1) != 0; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tandem
