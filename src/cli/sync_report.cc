#include "cli/sync_report.h"

#include "fmt/format.h"

namespace tandem::cli {
namespace {

nlohmann::json crossing_json(const CrossingTimes& times) {
  if (!times.available) return {{"available", false}, {"reason", times.why_not}};
  return {{"available", true},
          {"cpu_to_gpu_us", times.cpu_to_gpu.median},
          {"cpu_to_gpu_p90_us", times.cpu_to_gpu.p90},
          {"gpu_to_cpu_us", times.gpu_to_cpu.median},
          {"gpu_to_cpu_p90_us", times.gpu_to_cpu.p90},
          {"round_trip_us", times.round_trip.median},
          {"round_trip_p90_us", times.round_trip.p90}};
}

void print_crossing(const char* mechanism, const CrossingTimes& times) {
  if (!times.available) {
    fmt::print("  {:6} not available: {}\n", mechanism, times.why_not);
    return;
  }
  const auto cell = [](const Quantiles& q) {
    return fmt::format("{:8.2f} ({:8.2f})", q.median, q.p90);
  };
  fmt::print("  {:6} {:>20} {:>20} {:>20}\n", mechanism, cell(times.cpu_to_gpu),
             cell(times.gpu_to_cpu), cell(times.round_trip));
}

}  // namespace

nlohmann::json mechanisms_json(const LanePairTimes& pair) {
  return {{"svm", crossing_json(pair.svm)}, {"event", crossing_json(pair.event)}};
}

void print_mechanisms(const std::vector<LanePairTimes>& pairs) {
  if (pairs.empty()) {
    fmt::print("no crossings: there is no pair of a CPU lane and an OpenCL lane\n");
    return;
  }
  fmt::print("microseconds a crossing, median (p90):\n");
  for (const LanePairTimes& pair : pairs) {
    fmt::print("{} and {}:\n  {:6} {:>20} {:>20} {:>20}\n", pair.cpu_lane, pair.queue_lane, "",
               "cpu to gpu", "gpu to cpu", "round trip");
    print_crossing("svm", pair.svm);
    print_crossing("event", pair.event);
  }
}

}  // namespace tandem::cli
