#include "lane/sim/slice_time.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::sim {

double SliceTime::memory_share() const {
  const double both = compute_us + memory_us;
  return both > 0 ? memory_us / both : 0;
}

int core_count(const std::vector<CoreGroup>& cores) {
  int count = 0;
  for (const CoreGroup& group : cores) count += group.cores;
  return count;
}

std::vector<CoreGroup> cores_of(const LaneSpec& lane, int threads) {
  std::vector<CoreGroup> cores;
  int left = threads > 0 ? threads : core_count(lane.cores);
  for (const CoreGroup& group : lane.cores) {
    const int taken = std::min(left, group.cores);
    if (taken > 0) cores.push_back({group.cluster, taken});
    left -= taken;
  }
  return cores;
}

SliceTime slice_time(const PlatformModel& model, int lane, const Workload& work, int threads,
                     const Load& load) {
  const LaneSpec& spec = model.lanes[lane];
  if (spec.cores.empty()) {
    SliceTime time = gpu_slice_time(model, work, load);
    time.overhead_us += model.gpu_coefficients.operator_us;
    time.us += model.gpu_coefficients.operator_us;
    return time;
  }
  return cpu_slice_time(model, cores_of(spec, threads), work, load);
}

// SplitMix64's finaliser.
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15ULL * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

namespace {

// Log-normal of mean 1 and that coefficient of variation.
double log_normal(double cv, uint64_t key) {
  const double sigma = std::sqrt(std::log1p(cv * cv));
  constexpr double kScale = 1.0 / 9007199254740992.0;  // 2^-53
  const double u = (static_cast<double>(mix(key, 1) >> 11) + 0.5) * kScale;
  const double v = (static_cast<double>(mix(key, 2) >> 11) + 0.5) * kScale;
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return std::exp(sigma * normal - sigma * sigma / 2);
}

}  // namespace

double run_noise(const PlatformModel& model, int lane, uint64_t key) {
  const LaneSpec& spec = model.lanes[lane];
  if (spec.cores.empty()) return log_normal(model.noise.gpu_cv, key);
  const bool little = model.clusters.size() > 1 &&
                      spec.cores[0].cluster + 1 == static_cast<int>(model.clusters.size());
  return log_normal(little ? model.noise.little_cv : model.noise.cpu_cv, key);
}

double slice_noise(const PlatformModel& model, double us, uint64_t key) {
  constexpr double kMost = 0.5;
  return log_normal(std::min(kMost, model.noise.jitter_us / std::max(us, 1e-3)), key);
}

}  // namespace tandem::sim
