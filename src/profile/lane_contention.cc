#include "profile/lane_contention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lane/sim/world.h"
#include "platform/topology.h"
#include "profile/on_lane.h"
#include "profile/other_load.h"
#include "support/statistics.h"

namespace tandem {
namespace {

using predict::OtherLoad;

constexpr int kRounds = 7;
constexpr int kMostRounds = 30;

// Median microseconds of a task, by what the others do meanwhile.
struct LoadTimes {
  std::vector<double> alone, beside_memory, beside_compute;

  size_t rounds() const {
    return std::min({alone.size(), beside_memory.size(), beside_compute.size()});
  }
};

std::optional<double> median_of(const SliceTimer::Times& times) {
  std::vector<double> told;
  // The first finds what the load before has left in caches.
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i]) told.push_back(*times[i]);
  }
  if (told.empty()) return std::nullopt;
  return summarize(told).median;
}

// Alone and beside each load in turn, so that whatever else changes is the same for all.
StatusOr<LoadTimes> time_load(LaneCrew& crew, OtherLoads& loads, SliceTimer& timer, int lane,
                              OtherLoad own) {
  const std::vector<Task*> tasks = loads.sample(lane, own).tasks;
  LoadTimes result;
  double expected_us = 0;
  const auto time = [&](std::vector<double>* into,
                        const SliceTimer::Meanwhile& meanwhile) -> Status {
    const Clock::time_point begin = Clock::now();
    TANDEM_ASSIGN_OR_RETURN(const SliceTimer::Times times, timer.time(tasks, meanwhile));
    if (into == &result.alone) expected_us = microseconds(Clock::now() - begin);
    if (const std::optional<double> us = median_of(times)) into->push_back(*us);
    return {};
  };
  for (int round = 0; round < kMostRounds && result.rounds() < kRounds; ++round) {
    TANDEM_RETURN_IF_ERROR(
        on_lane(crew, lane, "timing", [&] { return time(&result.alone, nullptr); }));
    for (const OtherLoad other : {OtherLoad::kMemory, OtherLoad::kCompute}) {
      std::vector<double>& into =
          other == OtherLoad::kMemory ? result.beside_memory : result.beside_compute;
      TANDEM_ASSIGN_OR_RETURN(
          const bool lasted,
          loads.during(lane, other, expected_us, [&](const SliceTimer::Meanwhile& meanwhile) {
            return time(&into, meanwhile);
          }));
      if (!lasted && !into.empty()) into.pop_back();
    }
  }
  return result;
}

// Nothing is known of a lane that could not be watched undisturbed: then it is not slowed down.
double slowdown(const std::vector<double>& beside, const std::vector<double>& alone) {
  if (beside.empty() || alone.empty()) return 1;
  return std::max(1.0, summarize(beside).median / summarize(alone).median);
}

}  // namespace

Status measure_contention(LaneCrew& crew, CalibrationData* data) {
  const auto lanes = static_cast<int>(crew.lanes().size());
  if (lanes < 2 || sim::as_simulated(crew.lanes().front())) return {};
  const auto is_known = [&](int lane) { return data->slowdowns.contains(crew.info(lane).name); };
  bool all_known = true;
  for (int lane = 0; lane < lanes; ++lane) all_known = all_known && is_known(lane);
  if (all_known) return {};
  TANDEM_ASSIGN_OR_RETURN(const Topology topology, detect_topology());
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<OtherLoads> loads,
                          OtherLoads::create(crew, last_cache_bytes(topology)));
  for (int lane = 0; lane < lanes; ++lane) {
    if (is_known(lane)) continue;
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<SliceTimer> timer,
                            SliceTimer::create(crew, lane));
    const auto times_of = [&](OtherLoad own) -> StatusOr<LoadTimes> {
      auto times = time_load(crew, *loads, *timer, lane, own);
      if (!times.ok()) return times.status().with_context("lane " + crew.info(lane).name);
      return times;
    };
    TANDEM_ASSIGN_OR_RETURN(const LoadTimes memory, times_of(OtherLoad::kMemory));
    TANDEM_ASSIGN_OR_RETURN(const LoadTimes compute, times_of(OtherLoad::kCompute));
    LaneSlowdowns& slowdowns = data->slowdowns[crew.info(lane).name];
    if (!memory.alone.empty()) {
      slowdowns.bytes_per_us =
          loads->sample(lane, OtherLoad::kMemory).bytes / summarize(memory.alone).median;
    }
    slowdowns.memory_beside_memory = slowdown(memory.beside_memory, memory.alone);
    slowdowns.memory_beside_compute = slowdown(memory.beside_compute, memory.alone);
    slowdowns.compute_beside_memory = slowdown(compute.beside_memory, compute.alone);
    slowdowns.compute_beside_compute = slowdown(compute.beside_compute, compute.alone);
  }
  return {};
}

Contention contention_of(const LaneSlowdowns& lane, double bytes, double us) {
  Contention result;
  if (lane.bytes_per_us > 0 && us > 0 && std::isfinite(us)) {
    result.memory_share = std::clamp(bytes / us / lane.bytes_per_us, 0.0, 1.0);
  }
  const auto between = [&](double compute, double memory) {
    return compute + (memory - compute) * result.memory_share;
  };
  result.slowdown_memory = between(lane.compute_beside_memory, lane.memory_beside_memory);
  result.slowdown_compute = between(lane.compute_beside_compute, lane.memory_beside_compute);
  return result;
}

}  // namespace tandem
