#include "support/backoff.h"

#include <algorithm>
#include <thread>

#include "support/cpu_relax.h"

namespace tandem {
namespace {

using std::chrono::microseconds;

// A nap takes some 50 us more than it should. Shorter waits would end late by more than a few
// percent.
constexpr microseconds kYielding{1600};
constexpr int kSpinsPerYield = 32;
constexpr Clock::duration kShortestNap = microseconds(100);
constexpr Clock::duration kLongestNap = microseconds(1000);

}  // namespace

void Backoff::pause() {
  if (spins_ < kSpins) {
    if (++spins_ == kSpins) since_ = Clock::now();
    cpu_relax();
    return;
  }
  const Clock::duration waited = Clock::now() - since_;
  if (waited < kYielding) {
    for (int i = 0; i < kSpinsPerYield; ++i) cpu_relax();
    std::this_thread::yield();
    return;
  }
  std::this_thread::sleep_for(std::clamp(waited / 32, kShortestNap, kLongestNap));
}

}  // namespace tandem
