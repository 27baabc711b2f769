// Notices that lanes are not as fast as they were predicted to be.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem {

struct SpeedWatchOptions {
  int period = 8;           // while all is well, one run of so many is to be recorded
  double threshold = 0.25;  // how far off its predicted time a lane's time has to be
  int patience = 3;         // ... in so many recorded runs in a row
  double weight = 0.5;      // of the latest run in a lane's exponential average
  // What is known of a lane that is given no work any more is half forgotten after so many recorded
  // runs, so that it gets another try; after a try in vain, twice as many.
  int forget_after = 64;
};

// Per lane, how many times as long its slices take as the cost model says, averaged over runs. What
// predictions assume is a factor of its own: it changes only where settle() is called, after the
// schedule has been thought over.
class SpeedWatch {
 public:
  explicit SpeedWatch(size_t lanes, const SpeedWatchOptions& options = {});

  // Asked before every run: whether it should be recorded. Not the first one, which finds caches
  // cold; then a few; then one of every `period`; while a lane is off, every one.
  bool wants_next();
  // A recorded run: by lane, measured over predicted time of its slices; 0 if it had none.
  void observe(const std::vector<double>& ratios);
  // Whether to think the schedule over.
  bool has_drifted() const;
  // By lane, what to multiply the cost model's times by.
  std::vector<double> factors() const;
  // Predictions assume factors() from now on.
  void settle();
  // What has been seen of drift so far is no reason to act on it: it has to last once more.
  void calm_down();

 private:
  struct Lane {
    double estimate = 0;  // logarithm of the factor
    double assumed = 0;   // logarithm of the factor that predictions assume
    int streak = 0;       // recorded runs in a row that were off; negative: too fast
    int unseen = 0;       // recorded runs without work for the lane
    int forget_after = 0;
  };

  SpeedWatchOptions options_;
  double threshold_;  // logarithm
  std::vector<Lane> lanes_;
  int runs_ = 0;      // since the last one that was recorded
  int recorded_ = 0;  // at most as many as matter
  bool forgotten_ = false;
};

}  // namespace tandem
