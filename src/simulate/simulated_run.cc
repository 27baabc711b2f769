#include "simulate/simulated_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "schedule/transfers.h"

namespace tandem::simulate {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// What a lane does next, one after another: fixed times, and slices whose pace depends on others.
enum class Phase : uint8_t { kFeed, kWait, kCross, kEnqueued, kUpload, kSlice, kDownload, kDone };

struct LaneState {
  size_t index = 0;
  size_t wait = 0;  // of the slice
  Phase phase = Phase::kWait;
  double begin_us = 0;  // of the phase
  double left_us = 0;   // of the phase, alone
  double pace = 1;      // how fast it passes
  double bus_gbps = 0;  // of the slice
  sim::Workload work;
  double alone_us = 0;  // of the slice, without noise
};

class Simulation {
 public:
  Simulation(const Problem& problem, const sim::PlatformModel& model, const Schedule& schedule,
             const RunOptions& options)
      : problem_(problem),
        model_(model),
        schedule_(schedule),
        options_(options),
        states_(schedule.lanes.size()),
        ends_us_(schedule.lanes.size()) {
    std::vector<bool> own_memory;
    for (const LaneTraits& lane : problem.lanes) own_memory.push_back(lane.own_memory);
    transfers_ = plan_transfers(*problem.graph, schedule, own_memory);
    run_.timeline.lanes.resize(schedule.lanes.size());
    run_.busy_us.assign(schedule.lanes.size(), 0);
  }

  SimulatedRun run() && {
    for (size_t lane = 0; lane < states_.size(); ++lane) start_lane(static_cast<int>(lane));
    settle();
    while (true) {
      double step = kNever;
      for (const LaneState& state : states_) {
        if (is_passing(state)) step = std::min(step, state.left_us / state.pace);
      }
      if (step == kNever) break;
      now_ += step;
      for (LaneState& state : states_) {
        if (is_passing(state)) state.left_us -= step * state.pace;
      }
      settle();
    }
    run_.timeline.makespan_us = now_;
    add_energy();
    return std::move(run_);
  }

 private:
  static bool is_passing(const LaneState& state) {
    return state.phase != Phase::kDone && state.phase != Phase::kWait;
  }
  const ScheduledSlice& slice(int lane) const { return schedule_.lanes[lane][states_[lane].index]; }

  void start_lane(int lane) {
    double feeding = 0;
    for (size_t queue = 0; queue < problem_.lanes.size(); ++queue) {
      if (problem_.lanes[queue].fed_by == lane) {
        feeding += problem_.cost->enqueue_us(static_cast<int>(queue)) *
                   static_cast<double>(schedule_.lanes[queue].size());
      }
    }
    enter(lane, Phase::kFeed, feeding);
  }

  void enter(int lane, Phase phase, double us) {
    LaneState& state = states_[lane];
    state.phase = phase;
    state.begin_us = now_;
    state.left_us = us;
    state.pace = 1;
  }

  double copies_us(int lane, bool before) const {
    const auto& around = transfers_.lanes[lane];
    if (around.empty()) return 0;
    const Transfers::Around& regions = around[states_[lane].index];
    double us = 0;
    for (const TensorRegion& region : before ? regions.before : regions.after) {
      us += problem_.cost->copy_us(lane, copy_size(*problem_.graph, region));
    }
    return us;
  }

  void note(int lane, SpanKind kind, const Wait& wait = {}) {
    const LaneState& state = states_[lane];
    const bool feed = kind == SpanKind::kFeed;
    if (now_ == state.begin_us && kind != SpanKind::kSlice) return;
    run_.timeline.lanes[lane].push_back(
        {kind, feed ? kNone : static_cast<int>(state.index), wait, state.begin_us, now_});
  }

  // Goes through all that is over now, until nothing is.
  void settle() {
    constexpr double kOver = 1e-9;
    for (bool changed = true; changed;) {
      changed = false;
      for (int lane = 0; lane < static_cast<int>(states_.size()); ++lane) {
        LaneState& state = states_[lane];
        while (state.phase != Phase::kDone &&
               (state.phase == Phase::kWait ? is_there(lane) : state.left_us <= kOver)) {
          advance(lane);
          changed = true;
        }
      }
    }
    set_paces();
  }

  bool is_there(int lane) const {
    const LaneState& state = states_[lane];
    const Wait& wait = slice(lane).waits[state.wait];
    return ends_us_[wait.lane].size() >= static_cast<size_t>(wait.count);
  }

  // From a phase that is over to the next one.
  void advance(int lane) {
    LaneState& state = states_[lane];
    switch (state.phase) {
      case Phase::kFeed:
        note(lane, SpanKind::kFeed);
        next_slice(lane);
        break;
      case Phase::kWait: {
        const double begin = state.begin_us;
        // Word was sent when the other slice ended, and is here already if that is long ago.
        const Wait& wait = slice(lane).waits[state.wait];
        const double there =
            ends_us_[wait.lane][wait.count - 1] + problem_.cost->crossing_us(wait.lane, lane);
        enter(lane, Phase::kCross, std::max(0.0, there - now_));
        state.begin_us = begin;  // one span
        break;
      }
      case Phase::kCross:
        note(lane, SpanKind::kWait, slice(lane).waits[state.wait]);
        ++state.wait;
        next_wait(lane);
        break;
      case Phase::kEnqueued:
        enter(lane, Phase::kUpload, copies_us(lane, true));
        break;
      case Phase::kUpload:
        note(lane, SpanKind::kUpload);
        start_slice(lane);
        break;
      case Phase::kSlice:
        note(lane, SpanKind::kSlice);
        run_.busy_us[lane] += now_ - state.begin_us;
        enter(lane, Phase::kDownload, copies_us(lane, false));
        break;
      case Phase::kDownload:
        note(lane, SpanKind::kDownload);
        ends_us_[lane].push_back(now_);
        ++state.index;
        next_slice(lane);
        break;
      case Phase::kDone:
        break;
    }
  }

  void next_slice(int lane) {
    LaneState& state = states_[lane];
    state.wait = 0;
    if (state.index == schedule_.lanes[lane].size()) return enter(lane, Phase::kDone, 0);
    next_wait(lane);
  }

  void next_wait(int lane) {
    LaneState& state = states_[lane];
    if (state.wait < slice(lane).waits.size()) return enter(lane, Phase::kWait, 0);
    const double enqueued = static_cast<double>(state.index + 1) * problem_.cost->enqueue_us(lane);
    enter(lane, Phase::kEnqueued, std::max(0.0, enqueued - now_));
  }

  sim::Load load() const {
    sim::Load load;
    load.cpu_clock = options_.cpu_clock;
    load.gpu_clock = options_.gpu_clock;
    return load;
  }

  void start_slice(int lane) {
    LaneState& state = states_[lane];
    const ScheduledSlice& scheduled = slice(lane);
    state.work = sim::workload_of(*problem_.graph, scheduled.slice);
    const sim::SliceTime time =
        sim::slice_time(model_, lane, state.work, scheduled.threads, load());
    state.alone_us = time.us;
    state.bus_gbps = time.dram_bytes / (time.us * 1e3);
    double factor = 1;
    if (options_.seed != 0) {
      const uint64_t key = sim::mix(options_.seed, static_cast<uint64_t>(lane));
      factor = sim::run_noise(model_, lane, key) *
               sim::slice_noise(model_, time.us, sim::mix(key, 1 + state.index));
    }
    enter(lane, Phase::kSlice, time.us * factor);
  }

  // What others take of the memory bus slows a slice.
  void set_paces() {
    double all = 0;
    for (const LaneState& state : states_) {
      if (state.phase == Phase::kSlice) all += state.bus_gbps;
    }
    for (int lane = 0; lane < static_cast<int>(states_.size()); ++lane) {
      LaneState& state = states_[lane];
      if (state.phase != Phase::kSlice) continue;
      sim::Load beside = load();
      beside.memory_gbps = all - state.bus_gbps;
      state.pace = 1;
      if (beside.memory_gbps > 0) {
        state.pace = state.alone_us /
                     sim::slice_time(model_, lane, state.work, slice(lane).threads, beside).us;
      }
    }
  }

  // Power goes with the cube of the clock.
  void add_energy() {
    double uj = 0;  // mW * us = nJ, summed as such
    for (size_t lane = 0; lane < states_.size(); ++lane) {
      const sim::LaneSpec& spec = model_.lanes[lane];
      double active = 0;
      for (const sim::CoreGroup& group : spec.cores) {
        active += group.cores * model_.clusters[group.cluster].active_mw;
      }
      active *= std::pow(options_.cpu_clock, 3);
      if (spec.cores.empty()) active = model_.gpu.active_mw * std::pow(options_.gpu_clock, 3);
      uj += active * run_.busy_us[lane];
    }
    double idle = model_.has_gpu ? model_.gpu.idle_mw : 0;
    for (const sim::Cluster& cluster : model_.clusters) idle += cluster.idle_mw;
    run_.energy_mj = (uj + idle * now_) * 1e-6;
  }

  const Problem& problem_;
  const sim::PlatformModel& model_;
  const Schedule& schedule_;
  const RunOptions& options_;
  Transfers transfers_;
  std::vector<LaneState> states_;
  std::vector<std::vector<double>> ends_us_;  // by lane, of the slices that have ended
  double now_ = 0;
  SimulatedRun run_;
};

// The steps of a clock as shares of the highest, over all of its kind.
std::vector<double> shares_of(const std::vector<double>& steps_mhz) {
  std::vector<double> shares;
  for (const double mhz : steps_mhz) shares.push_back(mhz / steps_mhz.back());
  return shares;
}

}  // namespace

SimulatedRun simulate_run(const Problem& problem, const sim::PlatformModel& model,
                          const Schedule& schedule, const RunOptions& options) {
  return Simulation(problem, model, schedule, options).run();
}

std::vector<ThrottledRun> run_until_warm(const Problem& problem, const sim::PlatformModel& model,
                                         const Schedule& schedule, double seconds) {
  // How far below its limit a chip has to be for clocks to rise again.
  constexpr double kHysteresisC = 1;
  // How often the governor looks; runs in between are alike.
  constexpr double kLookS = 0.1;
  const std::vector<double> cpu = shares_of(model.clusters[0].steps_mhz);
  const std::vector<double> gpu =
      model.has_gpu ? shares_of(model.gpu.steps_mhz) : std::vector<double>{1};
  size_t down = 0;  // steps below the highest
  const size_t most = std::max(cpu.size(), gpu.size()) - 1;
  const auto at = [&](const std::vector<double>& shares) {
    return shares[shares.size() - 1 - std::min(down, shares.size() - 1)];
  };
  const sim::Thermal& thermal = model.thermal;
  std::vector<ThrottledRun> runs;
  // Without noise, a run depends on the clocks only: us and mJ by steps down.
  std::map<size_t, std::pair<double, double>> known;
  ThrottledRun run;
  run.temperature_c = thermal.ambient_c;
  while (run.at_s < seconds) {
    run.cpu_clock = at(cpu);
    run.gpu_clock = at(gpu);
    const auto [entry, fresh] = known.try_emplace(down);
    if (fresh) {
      RunOptions options;
      options.cpu_clock = run.cpu_clock;
      options.gpu_clock = run.gpu_clock;
      const SimulatedRun done = simulate_run(problem, model, schedule, options);
      entry->second = {done.timeline.makespan_us, done.energy_mj};
    }
    const auto [us, energy_mj] = entry->second;
    if (us <= 0) break;
    run.us = us;
    runs.push_back(run);
    // First-order: towards what this power would heat it to, in resistance * capacity seconds.
    const double s = std::max(us * 1e-6, kLookS);
    const double watts = energy_mj * 1e3 / us;
    const double steady = thermal.ambient_c + watts * thermal.resistance_c_per_w;
    const double share = 1 - std::exp(-s / (thermal.resistance_c_per_w * thermal.capacity_j_per_c));
    run.temperature_c += (steady - run.temperature_c) * share;
    run.at_s += s;
    if (run.temperature_c > thermal.limit_c) {
      down = std::min(down + 1, most);
    } else if (run.temperature_c < thermal.limit_c - kHysteresisC && down > 0) {
      --down;
    }
  }
  return runs;
}

}  // namespace tandem::simulate
