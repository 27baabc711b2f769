// The one clock of the engine.
#pragma once

#include <chrono>

namespace tandem {

using Clock = std::chrono::steady_clock;

inline double microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace tandem
