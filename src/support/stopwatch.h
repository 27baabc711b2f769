// Time since construction.
#pragma once

#include "support/clock.h"

namespace tandem {

class Stopwatch {
 public:
  double milliseconds() const { return microseconds(Clock::now() - start_) / 1000; }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace tandem
