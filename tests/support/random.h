// Seeded numbers for tests: the same on every machine (unlike the standard's distributions).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace tandem::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  // In [low, high).
  double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1.0p-53);
  }
  bool coin() { return (engine_() >> 32 & 1) != 0; }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + integer(0, static_cast<int64_t>(choices.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tandem::testing
