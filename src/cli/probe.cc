#include "cli/probe.h"

#include <sched.h>

#include <atomic>
#include <thread>

#include "fmt/format.h"
#include "platform/topology.h"
#include "support/clock.h"
#include "support/multiversion.h"

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

// Larger than the caches of current machines.
constexpr size_t kReadBytes = size_t{128} << 20;
constexpr int kReadRounds = 4;

TANDEM_MULTIVERSION float sum_of(const Vector* values, size_t count) {
  Vector sums[kSums] = {};
  for (size_t i = 0; i + kSums <= count; i += kSums) {
#pragma GCC unroll 8
    for (size_t j = 0; j < kSums; ++j) sums[j] += values[i + j];
  }
  float total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

// Microseconds of the best of some rounds: what the core can do, not what else ran on it.
template <typename Round>
double best_us(int rounds, Round round) {
  double best = 0;
  for (int i = 0; i < rounds; ++i) {
    const Clock::time_point begin = Clock::now();
    round();
    const double us = microseconds(Clock::now() - begin);
    if (i == 0 || us < best) best = us;
  }
  return best;
}

// Cores that wait for each other.
class Meeting {
 public:
  explicit Meeting(size_t cores) : cores_(cores) {}
  void arrive() {
    const size_t turn = arrived_.fetch_add(1) / cores_ + 1;
    while (arrived_.load() < turn * cores_) std::this_thread::yield();
  }

 private:
  const size_t cores_;
  std::atomic<size_t> arrived_ = 0;
};

CoreSpeed measure(int core, Meeting& meeting) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // A core that the process may not use is measured wherever the thread runs.
  sched_setaffinity(0, sizeof set, &set);
  const std::vector<Vector> memory(kReadBytes / sizeof(Vector));
  // Not known to the compiler, which would compute the sums otherwise.
  volatile float factor = 0.5f;
  volatile float result = 0;
  meeting.arrive();
  const double add_us = best_us(kRounds, [&] { result = multiply_add(kSteps, factor); });
  meeting.arrive();
  const double read_us =
      best_us(kReadRounds, [&] { result = sum_of(memory.data(), memory.size()); });
  static_cast<void>(result);
  return {2.0 * kSums * kWidth * kSteps / add_us / 1e3,
          static_cast<double>(kReadBytes) / read_us / 1e3};
}

std::vector<double> column(const std::vector<CoreSpeed>& speeds, double CoreSpeed::*figure) {
  std::vector<double> values;
  for (const CoreSpeed& speed : speeds) values.push_back(speed.*figure);
  return values;
}

}  // namespace

Probe probe(const std::vector<int>& cores) {
  Probe result;
  result.cores = cores;
  result.together.resize(cores.size());
  for (const int core : cores) {
    std::thread([&result, core] {
      Meeting meeting(1);
      result.alone.push_back(measure(core, meeting));
    }).join();
  }
  Meeting meeting(cores.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] { result.together[i] = measure(cores[i], meeting); });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

nlohmann::json to_json(const Probe& probe) {
  return {{"cores", probe.cores},
          {"alone_gflops", column(probe.alone, &CoreSpeed::gflops)},
          {"together_gflops", column(probe.together, &CoreSpeed::gflops)},
          {"alone_read_gbps", column(probe.alone, &CoreSpeed::gigabytes_per_second)},
          {"together_read_gbps", column(probe.together, &CoreSpeed::gigabytes_per_second)}};
}

std::string to_text(const Probe& probe) {
  const auto list = [](const std::vector<CoreSpeed>& speeds, double CoreSpeed::*figure,
                       const char* format) {
    std::string text;
    for (const double value : column(speeds, figure)) {
      text += (text.empty() ? "" : "/") + fmt::format(fmt::runtime(format), value);
    }
    return text;
  };
  return fmt::format(
      "cores {}: alone {} GFLOPS of f32 multiply-adds, {} GB/s read; together {} GFLOPS, {} GB/s",
      to_processor_list(probe.cores), list(probe.alone, &CoreSpeed::gflops, "{:.0f}"),
      list(probe.alone, &CoreSpeed::gigabytes_per_second, "{:.1f}"),
      list(probe.together, &CoreSpeed::gflops, "{:.0f}"),
      list(probe.together, &CoreSpeed::gigabytes_per_second, "{:.1f}"));
}

}  // namespace tandem::cli
