#include "cli/probe.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "fmt/format.h"
#include "platform/topology.h"
#include "support/core_speed.h"

namespace tandem::cli {
namespace {

constexpr int kRounds = 20;
// Larger than the caches of current machines.
constexpr size_t kReadBytes = size_t{128} << 20;
constexpr int kReadRounds = 4;

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

// A core that the process may not use is measured wherever the thread runs.
void run_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// A figure of each core, measured on all of them at once.
template <typename Measure>  // double(Meeting&)
std::vector<double> on_all(const std::vector<int>& cores, const Measure& measure_core) {
  std::vector<double> figures(cores.size());
  Meeting meeting(cores.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] {
      run_on(cores[i]);
      figures[i] = measure_core(meeting);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return figures;
}

CoreSpeed measure(int core, Meeting& meeting) {
  run_on(core);
  const SpeedMemory memory(kReadBytes);
  CoreSpeed speed;
  meeting.arrive();
  speed.gflops = multiply_add_gflops(kRounds);
  meeting.arrive();
  speed.gigabytes_per_second = read_gigabytes_per_second(memory, kReadRounds);
  return speed;
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

double read_speed_together(const std::vector<int>& cores, size_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr double kReadInAll = 64e6;  // by each core
  const size_t share = (bytes / cores.size() + kPage) / kPage * kPage;
  const int rounds =
      static_cast<int>(std::clamp(kReadInAll / static_cast<double>(share), 4.0, 2e3));
  const std::vector<double> speeds = on_all(cores, [&](Meeting& meeting) {
    const SpeedMemory memory(share);
    meeting.arrive();
    return read_gigabytes_per_second(memory, rounds);
  });
  return std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

bool SpeedWatch::disturbed() {
  // Two cores on one have half; those that a hypervisor or a governor sees to differ by less.
  constexpr double kLeast = 0.75;
  const std::vector<double> speeds = on_all(cores_, [&](Meeting& meeting) {
    meeting.arrive();
    return multiply_add_gflops(1);
  });
  const double slowest = *std::min_element(speeds.begin(), speeds.end());
  best_gflops_ = std::max(best_gflops_, slowest);
  return slowest < kLeast * best_gflops_;
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
