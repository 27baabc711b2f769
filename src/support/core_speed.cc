#include "support/core_speed.h"

#include "support/clock.h"
#include "support/multiversion.h"

namespace tandem {
namespace {

// As many independent sums as hide the latency of a multiply-add on current cores, each as wide as
// the widest vectors.
constexpr int kSums = 8;
constexpr int kWidth = 16;
constexpr int kSteps = 200'000;

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

}  // namespace

double multiply_add_gflops(int rounds) {
  // Not known to the compiler, which would compute the sums otherwise.
  volatile float factor = 0.5f;
  volatile float result = 0;
  const double us = best_us(rounds, [&] { result = multiply_add(kSteps, factor); });
  static_cast<void>(result);
  return 2.0 * kSums * kWidth * kSteps / us / 1e3;
}

double read_gigabytes_per_second(const SpeedMemory& memory, int rounds) {
  volatile float result = 0;
  const auto* values = reinterpret_cast<const Vector*>(memory.data());
  const size_t count = memory.bytes() / sizeof(Vector);
  const double us = best_us(rounds, [&] { result = sum_of(values, count); });
  static_cast<void>(result);
  return static_cast<double>(memory.bytes()) / us / 1e3;
}

}  // namespace tandem
