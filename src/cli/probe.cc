#include "cli/probe.h"

#include <sched.h>

#include <atomic>
#include <thread>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lane/cpu/multiversion.h"
#include "platform/topology.h"
#include "support/clock.h"

namespace tandem::cli {
namespace {

// As many independent sums as hide the latency of a multiply-add on current cores, each as wide as
// the widest vectors.
constexpr int kSums = 8;
constexpr int kWidth = 16;
constexpr int kSteps = 200'000;
constexpr int kRounds = 20;

using Vector = float __attribute__((vector_size(kWidth * sizeof(float))));

TANDEM_MULTIVERSION float multiply_add(int steps, float factor) {
  Vector sums[kSums];
  // Different ones, or the compiler would keep one of them.
  for (int i = 0; i < kSums; ++i) sums[i] = Vector{} + factor * static_cast<float>(i);
  for (int step = 0; step < steps; ++step) {
    // Unrolled, or the sums would live in memory.
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + 1.0f;
  }
  float total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

double measure(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // A core that the process may not use is measured wherever the thread runs.
  sched_setaffinity(0, sizeof set, &set);
  // Not known to the compiler, which would compute the sums otherwise.
  volatile float factor = 0.5f;
  volatile float result = 0;
  // The best round: what the core can do, not what else ran on it.
  double us = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    result = multiply_add(kSteps, factor);
    const double round_us = microseconds(Clock::now() - begin);
    if (round == 0 || round_us < us) us = round_us;
  }
  static_cast<void>(result);
  return 2.0 * kSums * kWidth * kSteps / us / 1e3;
}

}  // namespace

Probe probe(const std::vector<int>& cores) {
  Probe result;
  result.cores = cores;
  result.together.resize(cores.size());
  for (const int core : cores) {
    std::thread([&result, core] { result.alone.push_back(measure(core)); }).join();
  }
  std::atomic<size_t> ready = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] {
      for (++ready; ready < cores.size();) std::this_thread::yield();
      result.together[i] = measure(cores[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

std::string to_text(const Probe& probe) {
  return fmt::format("f32 multiply-adds on cores {}: alone {:.0f} GFLOPS, together {:.0f} GFLOPS",
                     to_processor_list(probe.cores), fmt::join(probe.alone, "/"),
                     fmt::join(probe.together, "/"));
}

}  // namespace tandem::cli
