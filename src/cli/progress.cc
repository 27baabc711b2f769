#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "fmt/format.h"
#include "support/clock.h"

namespace tandem::cli {

Progress::Progress(std::string label, int total) : label_(std::move(label)), total_(total) {
  if (isatty(STDERR_FILENO) != 0) thread_ = std::thread(&Progress::show, this);
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

std::string Progress::text(double seconds) const {
  constexpr int kWidth = 30;
  const double share = std::clamp(share_.load(), 0.0, 1.0);
  if (share > 0) {
    const int filled = static_cast<int>(share * kWidth);
    return fmt::format(" [{}{}] {:.0f}%, {:.0f} s left", std::string(filled, '#'),
                       std::string(kWidth - filled, '-'), 100 * share,
                       seconds * (1 - share) / share);
  }
  const std::string steps = total_ > 0 ? fmt::format(" {}/{}", done_.load(), total_) : "";
  return fmt::format("{} ({:.0f} s)", steps, seconds);
}

void Progress::show() {
  const Clock::time_point begin = Clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  // Twice a second is enough for people, and too little to disturb what is measured.
  while (!ended_changed_.wait_for(lock, std::chrono::milliseconds(shown ? 500 : 1000),
                                  [this] { return ended_; })) {
    shown = true;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    fmt::print(stderr, "\r\x1b[K{}{}", label_, text(static_cast<double>(seconds)));
    std::fflush(stderr);
  }
  if (shown) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }
}

}  // namespace tandem::cli
