#include "runtime/sync_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "profile/calibration_cache.h"
#include "runtime/sync.h"
#include "runtime/sync_bench.h"

namespace tandem {
namespace {

constexpr SyncMechanism kPromised[] = {SyncMechanism::kSvm, SyncMechanism::kEvent,
                                       SyncMechanism::kFinish};

std::vector<QueueLane*> queue_lanes_of(const LaneCrew& crew) {
  std::vector<QueueLane*> lanes;
  for (size_t lane = 0; lane < crew.lanes().size(); ++lane) {
    lanes.push_back(crew.queue_lane(static_cast<int>(lane)));
  }
  return lanes;
}

// Costs of crossings, from the cache or measured.
class Costs {
 public:
  Costs(LaneCrew& crew, const MechanismChoiceOptions& options)
      : crew_(crew), cache_(options.calibration_dir, options.fingerprint), data_(cache_.load()) {}

  // On average over all pairs of a CPU lane and a queue.
  StatusOr<double> round_trip_us(SyncMechanism mechanism) {
    double sum = 0;
    int pairs = 0;
    const auto lanes = static_cast<int>(crew_.lanes().size());
    for (int cpu = 0; cpu < lanes; ++cpu) {
      for (int queue = 0; queue < lanes; ++queue) {
        if (crew_.queue_lane(cpu) || !crew_.queue_lane(queue)) continue;
        TANDEM_ASSIGN_OR_RETURN(const double us, round_trip_us(mechanism, cpu, queue));
        sum += us;
        ++pairs;
      }
    }
    return sum / std::max(pairs, 1);
  }

  void save() const {
    if (added_) cache_.save(data_);
  }

 private:
  StatusOr<double> round_trip_us(SyncMechanism mechanism, int cpu, int queue) {
    const auto known = [&](int from, int to) {
      const auto entry = data_.crossings.find(
          crossing_key(to_string(mechanism), crew_.info(from).name, crew_.info(to).name));
      return entry == data_.crossings.end() ? std::nullopt : std::optional(entry->second);
    };
    if (known(cpu, queue) && known(queue, cpu)) return *known(cpu, queue) + *known(queue, cpu);
    SyncBenchOptions options;
    options.warm_up = 10;
    options.iterations = mechanism == SyncMechanism::kSvm ? 190 : 40;
    TANDEM_ASSIGN_OR_RETURN(const CrossingTimes times,
                            bench_crossing(crew_, cpu, queue, mechanism, options));
    if (!times.available) return unsupported(times.why_not);
    const std::string& cpu_name = crew_.info(cpu).name;
    const std::string& queue_name = crew_.info(queue).name;
    const char* name = to_string(mechanism);
    data_.crossings[crossing_key(name, cpu_name, queue_name)] = times.cpu_to_gpu.median;
    data_.crossings[crossing_key(name, queue_name, cpu_name)] = times.gpu_to_cpu.median;
    added_ = true;
    return times.cpu_to_gpu.median + times.gpu_to_cpu.median;
  }

  LaneCrew& crew_;
  CalibrationCache cache_;
  CalibrationData data_;
  bool added_ = false;
};

StatusOr<MechanismChoice> forced(SyncMechanism asked, const std::vector<QueueLane*>& lanes) {
  if (const Status usable = check_mechanism(asked, lanes); !usable.ok()) {
    return unsupported(fmt::format("synchronisation by {} was asked for, but {}; use --sync auto",
                                   to_string(asked), usable.message()));
  }
  return MechanismChoice{asked, "it was asked for", {}};
}

}  // namespace

StatusOr<MechanismChoice> choose_mechanism(LaneCrew& crew, const MechanismChoiceOptions& options) {
  const std::vector<QueueLane*> lanes = queue_lanes_of(crew);
  const auto queues =
      std::count_if(lanes.begin(), lanes.end(), [](auto* l) { return l != nullptr; });
  if (options.asked != SyncMechanism::kAuto) return forced(options.asked, lanes);
  if (queues == 0) return MechanismChoice{SyncMechanism::kSvm, "CPU lanes only", {}};

  MechanismChoice choice;
  std::optional<double> least;
  Costs costs(crew, options);
  for (const SyncMechanism mechanism : kPromised) {
    ConsideredMechanism considered{mechanism, 0, {}};
    Status usable = check_mechanism(mechanism, lanes);
    if (usable.ok()) {
      const StatusOr<double> us = costs.round_trip_us(mechanism);
      usable = us.status();
      if (us.ok()) considered.round_trip_us = *us;
    }
    if (!usable.ok()) {
      considered.why_not = usable.message();
    } else if (mechanism == SyncMechanism::kFinish && least) {
      considered.why_not = fmt::format(
          "{:.1f} us a round trip, but it waits for all that is enqueued: a last resort",
          considered.round_trip_us);
    } else if (!least || considered.round_trip_us < *least) {
      least = considered.round_trip_us;
      choice.mechanism = mechanism;
    }
    choice.considered.push_back(std::move(considered));
  }
  costs.save();
  if (!least) {
    return unsupported("no mechanism of synchronisation works on this platform: " +
                       choice.considered.back().why_not);
  }
  choice.why = fmt::format("it costs least: {:.1f} us a round trip", *least);
  for (ConsideredMechanism& other : choice.considered) {
    if (other.mechanism == choice.mechanism || !other.why_not.empty()) continue;
    other.why_not = fmt::format("it costs more: {:.1f} us a round trip", other.round_trip_us);
  }
  choice.considered.push_back(
      {SyncMechanism::kPinned, 0, "OpenCL does not promise that it works: only when forced"});
  return choice;
}

}  // namespace tandem
