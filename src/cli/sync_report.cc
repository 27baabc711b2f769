#include "cli/sync_report.h"

#include "fmt/format.h"

namespace tandem::cli {
namespace {

nlohmann::json crossing_json(const CrossingTimes& times) {
  if (!times.available) return {{"available", false}, {"reason", times.why_not}};
  nlohmann::json json = {{"available", true},
                         {"cpu_to_gpu_us", times.cpu_to_gpu.median},
                         {"cpu_to_gpu_p90_us", times.cpu_to_gpu.p90},
                         {"gpu_to_cpu_us", times.gpu_to_cpu.median},
                         {"gpu_to_cpu_p90_us", times.gpu_to_cpu.p90},
                         {"round_trip_us", times.round_trip.median},
                         {"round_trip_p90_us", times.round_trip.p90}};
  if (times.cpu_ms_per_second_of_waiting) {
    json["cpu_ms_per_second_of_waiting"] = *times.cpu_ms_per_second_of_waiting;
  }
  return json;
}

void print_crossing(const char* mechanism, const CrossingTimes& times) {
  if (!times.available) {
    fmt::print("  {:6} not available: {}\n", mechanism, times.why_not);
    return;
  }
  const auto cell = [](const Quantiles& q) {
    return fmt::format("{:8.2f} ({:8.2f})", q.median, q.p90);
  };
  fmt::print("  {:6} {:>20} {:>20} {:>20}", mechanism, cell(times.cpu_to_gpu),
             cell(times.gpu_to_cpu), cell(times.round_trip));
  if (times.cpu_ms_per_second_of_waiting) {
    fmt::print("   {:6.1f} ms of processor time per second of waiting",
               *times.cpu_ms_per_second_of_waiting);
  }
  fmt::print("\n");
}

}  // namespace

nlohmann::json mechanisms_json(const LanePairTimes& pair) {
  nlohmann::json json;
  for (const MechanismTimes& entry : pair.mechanisms) {
    json[to_string(entry.mechanism)] = crossing_json(entry.times);
  }
  return json;
}

nlohmann::json choice_json(const MechanismChoice& choice) {
  nlohmann::json json = {{"mechanism", to_string(choice.mechanism)},
                         {"why", choice.why},
                         {"why_not", nlohmann::json::object()}};
  for (const ConsideredMechanism& other : choice.considered) {
    if (!other.why_not.empty()) json["why_not"][to_string(other.mechanism)] = other.why_not;
  }
  return json;
}

void print_choice(const MechanismChoice& choice) {
  fmt::print("  used: {}: {}\n", to_string(choice.mechanism), choice.why);
  for (const ConsideredMechanism& other : choice.considered) {
    if (other.why_not.empty()) continue;
    fmt::print("  not used: {}: {}\n", to_string(other.mechanism), other.why_not);
  }
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
    for (const MechanismTimes& entry : pair.mechanisms) {
      print_crossing(to_string(entry.mechanism), entry.times);
    }
  }
}

}  // namespace tandem::cli
