#include "cli/probe.h"

#include <sched.h>

#include <atomic>
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

CoreSpeed measure(int core, Meeting& meeting) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // A core that the process may not use is measured wherever the thread runs.
  sched_setaffinity(0, sizeof set, &set);
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
