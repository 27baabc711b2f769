// Ctrl-C at a time when there is something to show for the work done so far.
#pragma once

#include <array>
#include <csignal>

namespace tandem::cli {

// While it lives, a first SIGINT or SIGTERM only makes seen() true; a second one ends the process,
// as any does at other times. One at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static bool seen();

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  std::array<Before, 2> before_ = {Before{SIGINT, {}}, Before{SIGTERM, {}}};
};

}  // namespace tandem::cli
