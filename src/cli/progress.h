// A line on the terminal that says what is being done, for anything that takes long.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tandem::cli {

// Shows "label 3/10 (12 s)" on stderr once it has lived for a second, and removes it when it ends;
// or "label [####------] 40%, 18 s left" where the share that is done is told instead of steps.
// Does nothing where stderr is no terminal.
class Progress {
 public:
  // `total` 0: the number of steps is not known.
  explicit Progress(std::string label, int total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() { ++done_; }
  // From 0 to 1.
  void set_share(double share) { share_ = share; }

 private:
  void show();
  std::string text(double seconds) const;

  const std::string label_;
  const int total_;
  std::atomic<int> done_ = 0;
  std::atomic<double> share_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tandem::cli
