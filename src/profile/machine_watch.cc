#include "profile/machine_watch.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace tandem {
namespace {

constexpr size_t kReadBytes = size_t{32} << 20;
constexpr int kReadRounds = 2;
constexpr int kAddRounds = 4;
// What a machine on its own keeps to, as seen by such short looks.
constexpr double kLeastGflops = 0.85;
constexpr double kLeastGbps = 0.6;

}  // namespace

MachineWatch::MachineWatch(std::vector<int> cores) : cores_(std::move(cores)) {
  if (cores_.empty()) return;
  memory_ = std::make_unique<SpeedMemory>(kReadBytes);
  constexpr int kFirstLooks = 3;
  for (int i = 0; i < kFirstLooks; ++i) look();
}

MachineSpeed MachineWatch::look() {
  std::vector<MachineSpeed> speeds(cores_.size());
  std::vector<std::thread> threads;
  std::atomic<size_t> arrived = 0;
  for (size_t i = 0; i < cores_.size(); ++i) {
    threads.emplace_back([&, i] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores_[i], &set);
      // A core that the process may not use is measured wherever the thread runs.
      sched_setaffinity(0, sizeof set, &set);
      ++arrived;
      while (arrived.load() < cores_.size()) std::this_thread::yield();
      speeds[i].gflops = multiply_add_gflops(kAddRounds);
      speeds[i].gigabytes_per_second = read_gigabytes_per_second(*memory_, kReadRounds);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (speeds.empty()) return {};
  MachineSpeed slowest = speeds.front();
  for (const MachineSpeed& speed : speeds) {
    slowest.gflops = std::min(slowest.gflops, speed.gflops);
    slowest.gigabytes_per_second =
        std::min(slowest.gigabytes_per_second, speed.gigabytes_per_second);
  }
  remember(slowest);
  return slowest;
}

bool MachineWatch::is_disturbed(const MachineSpeed& speed) const {
  return speed.gflops < kLeastGflops * best_.gflops ||
         speed.gigabytes_per_second < kLeastGbps * best_.gigabytes_per_second;
}

void MachineWatch::remember(const MachineSpeed& speed) {
  best_.gflops = std::max(best_.gflops, speed.gflops);
  best_.gigabytes_per_second = std::max(best_.gigabytes_per_second, speed.gigabytes_per_second);
}

}  // namespace tandem
