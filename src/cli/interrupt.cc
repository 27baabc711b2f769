#include "cli/interrupt.h"

namespace tandem::cli {
namespace {

// Signals have no other way of telling.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) { interrupted = 1; }

}  // namespace

InterruptWatch::InterruptWatch() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = &note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (auto& [signal, before] : before_) {
    sigaction(signal, nullptr, &before);
    // Whoever started this process may want it to go on.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

bool InterruptWatch::seen() { return interrupted != 0; }

}  // namespace tandem::cli
