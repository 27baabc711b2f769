// How a thread waits for another to get on without burning its core.
#pragma once

#include "support/clock.h"

namespace tandem {

// Spins for some tens of microseconds, as long as another lane about to signal takes; then lets
// others have the core now and then; after 1.6 ms sleeps, for a thirty-second of the time already
// waited: so that a wait takes a few percent longer than it must, and of the core what 0.1 to 1 ms
// of sleep leave.
class Backoff {
 public:
  // Call it each time that what is waited for has not come.
  void pause();
  // What is waited for has got on.
  void reset() { spins_ = 0; }
  // True once a pause is long enough for a look at the clock not to matter.
  bool is_patient() const { return spins_ >= kSpins; }

 private:
  static constexpr int kSpins = 2000;

  int spins_ = 0;
  Clock::time_point since_;  // when the spins ended
};

}  // namespace tandem
