// What random searches throw: the same on every machine, unlike the standard's distributions.
#pragma once

#include <cstdint>
#include <random>

namespace tandem {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int below(int count) { return static_cast<int>(engine_() % static_cast<uint64_t>(count)); }
  double real() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tandem
