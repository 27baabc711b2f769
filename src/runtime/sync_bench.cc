#include "runtime/sync_bench.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <thread>

#include "lane/sim/world.h"
#include "runtime/sync.h"
#include "support/cpu_relax.h"
#include "support/statistics.h"

namespace tandem {
namespace {

// Round trips that are enqueued at once.
constexpr int kSmallestBatch = 50;
constexpr int kLargestBatch = 200;
constexpr std::chrono::seconds kDeadline{20};

Quantiles quantiles_of(const std::vector<double>& samples) {
  const Summary summary = summarize(samples);
  return {summary.median, summary.p90};
}

// Runs batches of waits and signals with nothing in between, through the same Synchronization that
// sessions use.
class Bench {
 public:
  Bench(LaneCrew& crew, int cpu_lane, int queue_lane, SyncMechanism mechanism, int round_trips)
      : crew_(crew),
        cpu_(cpu_lane),
        queue_(queue_lane),
        mechanism_(mechanism),
        batch_(std::clamp(round_trips, kSmallestBatch, kLargestBatch)) {}

  // The queue waits for the CPU lane and signals, `batch_` times; a sample is one round trip.
  Status round_trips(std::vector<double>* samples) {
    Schedule schedule = empty_schedule();
    for (int i = 0; i < batch_; ++i) {
      schedule.lanes[queue_][i].waits = {{cpu_, i + 1}};
      schedule.lanes[cpu_][i + 1].waits = {{queue_, i + 1}};
    }
    return batch(schedule, [&](Synchronization& sync, const FeedOn& feed_on) -> Status {
      for (int i = 0; i < batch_; ++i) {
        const Clock::time_point start = Clock::now();
        sync.signal(cpu_, i + 1);
        TANDEM_RETURN_IF_ERROR(feed_on());
        TANDEM_RETURN_IF_ERROR(sync.wait({queue_, i + 1}));
        samples->push_back(microseconds(Clock::now() - start));
      }
      return {};
    });
  }

  // The queue waits for the CPU lane once, and then signals `batch_` times; a sample is the time
  // from one signal to the next.
  Status signal_intervals(std::vector<double>* samples) {
    Schedule schedule = empty_schedule();
    schedule.lanes[queue_][0].waits = {{cpu_, 1}};
    for (int i = 1; i <= batch_; ++i) schedule.lanes[cpu_][i].waits = {{queue_, i}};
    return batch(schedule, [&](Synchronization& sync, const FeedOn& feed_on) -> Status {
      sync.signal(cpu_, 1);
      TANDEM_RETURN_IF_ERROR(feed_on());
      TANDEM_RETURN_IF_ERROR(sync.wait({queue_, 1}));
      Clock::time_point before = Clock::now();
      const Clock::time_point deadline = before + kDeadline;
      for (int seen = sync.finished(queue_); seen < batch_;) {
        const int finished = sync.finished(queue_);
        const Clock::time_point now = Clock::now();
        if (finished > seen) {
          // Signals that came while the host looked away share the time.
          samples->push_back(microseconds(now - before) / (finished - seen));
          before = now;
          seen = finished;
        }
        if (now >= deadline) return deadline_exceeded("the queue stopped signalling");
        cpu_relax();
      }
      return {};
    });
  }

  // Milliseconds of processor time that a thread of the CPU lane takes to wait for the queue for
  // `wait`. The queue's slice is enqueued at the end of it: nothing polls on the device.
  StatusOr<double> cost_of_waiting_ms(std::chrono::milliseconds wait) {
    Schedule schedule = empty_schedule();
    schedule.lanes[queue_].resize(1);
    schedule.lanes[cpu_].resize(1);
    schedule.lanes[cpu_][0].waits = {{queue_, 1}};
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Synchronization> sync, begin(schedule));
    Status waited;
    double cost_ms = 0;
    crew_.thread(cpu_).post([&] {
      const double before = thread_cpu_ms();
      waited = sync->wait({queue_, 1});
      cost_ms = thread_cpu_ms() - before;
    });
    std::this_thread::sleep_for(wait);
    // Here and not on the queue's thread, which may be the one that waits.
    size_t fed = 0;
    const Status enqueued = feed(schedule, *sync, &fed);
    if (!enqueued.ok()) sync->abort(enqueued);
    crew_.thread(cpu_).run([] {});
    TANDEM_RETURN_IF_ERROR(end(*sync, enqueued));
    TANDEM_RETURN_IF_ERROR(waited);
    return cost_ms;
  }

  // Microseconds of a run in which the queue has one slice, and whoever feeds it `busy_us` of work
  // for itself; `runs` times, with pauses.
  StatusOr<std::vector<double>> single_runs(double busy_us, int runs) {
    Schedule schedule;
    schedule.lanes.resize(crew_.lanes().size());
    schedule.lanes[queue_].resize(1);
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Synchronization> sync, begin(schedule));
    std::vector<double> us;
    Status result;
    for (int run = 0; run < runs && result.ok(); ++run) {
      if (run > 0) sync->begin(Clock::now() + kDeadline);
      sync->rouse(queue_);
      crew_.thread(queue_).run([&] {
        const Clock::time_point start = Clock::now();
        size_t fed = 0;
        result = feed(schedule, *sync, &fed);
        sync->release(queue_);
        const Clock::time_point fed_at = Clock::now();
        while (microseconds(Clock::now() - fed_at) < busy_us) cpu_relax();
        if (result.ok()) result = sync->wait_for_end(queue_);
        us.push_back(microseconds(Clock::now() - start));
      });
      result = end(*sync, result);
    }
    TANDEM_RETURN_IF_ERROR(result);
    return us;
  }

 private:
  // `batch_` slices of the queue, and one more of the CPU lane, so that it can wait for the last.
  Schedule empty_schedule() const {
    Schedule schedule;
    schedule.lanes.resize(crew_.lanes().size());
    schedule.lanes[cpu_].resize(batch_ + 1);
    schedule.lanes[queue_].resize(batch_);
    return schedule;
  }

  static double thread_cpu_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  }

  StatusOr<std::unique_ptr<Synchronization>> begin(const Schedule& schedule) {
    std::vector<QueueLane*> queue_lanes(crew_.lanes().size(), nullptr);
    queue_lanes[queue_] = crew_.queue_lane(queue_);
    TANDEM_ASSIGN_OR_RETURN(
        std::unique_ptr<Synchronization> sync,
        make_synchronization({.mechanism = mechanism_, .device_spin_limit = kDeadline},
                             std::move(queue_lanes), schedule, 0));
    sync->begin(Clock::now() + kDeadline);
    return sync;
  }

  Status end(Synchronization& sync, const Status& result) {
    if (!result.ok()) sync.abort(result);
    // Who stops because of another's failure is not the one to tell why.
    const Status failed = sync.reason();
    Status drained;
    crew_.thread(queue_).run(
        [&] { drained = crew_.queue_lane(queue_)->drain(Clock::now() + kDeadline); });
    sync.end();
    return failed.ok() ? drained : failed;
  }

  // Feeds the queue as far as may be, where it is held back and nobody else does.
  using FeedOn = std::function<Status()>;

  template <typename HostSide>  // Status(Synchronization&, const FeedOn&)
  Status batch(const Schedule& schedule, const HostSide& host_side) {
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Synchronization> sync, begin(schedule));
    Status result;
    const bool own_feeder = &crew_.thread(queue_) != &crew_.thread(cpu_);
    size_t fed = 0;
    const auto feed_on = [&] { return feed(schedule, *sync, &fed); };
    crew_.thread(queue_).run([&] { result = feed_on(); });
    if (result.ok() && own_feeder) {
      crew_.thread(queue_).post([&] {
        Status status;
        for (Backoff backoff; status.ok() && fed < schedule.lanes[queue_].size();) {
          const size_t before = fed;
          status = feed_on();
          if (fed > before) {
            backoff.reset();
          } else if (status.ok()) {
            status = sync->pause(&backoff);
          }
        }
        if (!status.ok()) sync->abort(status);
      });
    }
    const FeedOn host_feed = own_feeder ? FeedOn([] { return Status(); }) : FeedOn(feed_on);
    if (result.ok()) crew_.thread(cpu_).run([&] { result = host_side(*sync, host_feed); });
    return end(*sync, result);
  }

  // Goes on from the `fed`-th slice, and flushes if there was any to enqueue.
  Status feed(const Schedule& schedule, Synchronization& sync, size_t* fed) {
    const std::vector<ScheduledSlice>& slices = schedule.lanes[queue_];
    const size_t first = *fed;
    for (bool may = true; *fed < slices.size(); ++*fed) {
      for (const Wait& wait : slices[*fed].waits) {
        if (!sync.is_held_back(queue_)) {
          TANDEM_RETURN_IF_ERROR(sync.enqueue_wait(queue_, wait));
        } else if (may) {
          TANDEM_ASSIGN_OR_RETURN(may, sync.passed(wait));
        }
      }
      if (!may) break;
      // Where a signal is no kernel, there has to be one for the host to wait for the end of, as in
      // an inference.
      if (mechanism_ == SyncMechanism::kFinish || mechanism_ == SyncMechanism::kEvent) {
        TANDEM_RETURN_IF_ERROR(crew_.queue_lane(queue_)->enqueue_nothing());
      }
      TANDEM_RETURN_IF_ERROR(sync.enqueue_signal(queue_, static_cast<int>(*fed) + 1));
    }
    if (*fed == first) return {};
    TANDEM_RETURN_IF_ERROR(crew_.queue_lane(queue_)->flush());
    sync.flushed(queue_, static_cast<int>(*fed));
    return {};
  }

  LaneCrew& crew_;
  const int cpu_;
  const int queue_;
  const SyncMechanism mechanism_;
  const int batch_;
};

// Calls `batch(samples)` until there are enough samples after the warm-up.
template <typename Batch>
StatusOr<std::vector<double>> collect(const SyncBenchOptions& options, const Batch& batch) {
  std::vector<double> samples;
  const auto wanted = static_cast<size_t>(options.warm_up + options.iterations);
  while (samples.size() < wanted) TANDEM_RETURN_IF_ERROR(batch(&samples));
  samples.erase(samples.begin(), samples.begin() + options.warm_up);
  return samples;
}

}  // namespace

namespace {

// What the platform's model says.
CrossingTimes simulated_crossing(const sim::SyncCosts& sync, SyncMechanism mechanism) {
  const sim::CrossingCost& cost = mechanism == SyncMechanism::kSvm     ? sync.svm
                                  : mechanism == SyncMechanism::kEvent ? sync.event
                                                                       : sync.finish;
  CrossingTimes times;
  times.available = true;
  times.cpu_to_gpu = {cost.cpu_to_gpu, cost.cpu_to_gpu};
  times.gpu_to_cpu = {cost.gpu_to_cpu, cost.gpu_to_cpu};
  times.round_trip.median = times.round_trip.p90 = cost.cpu_to_gpu + cost.gpu_to_cpu;
  return times;
}

}  // namespace

StatusOr<CrossingTimes> bench_crossing(LaneCrew& crew, int cpu_lane, int queue_lane,
                                       SyncMechanism mechanism, const SyncBenchOptions& options) {
  CrossingTimes times;
  if (const Status usable = check_mechanism(mechanism, {crew.queue_lane(queue_lane)});
      !usable.ok()) {
    times.why_not = usable.message();
    return times;
  }
  if (sim::SimulatedLane* simulated = sim::as_simulated(crew.lanes()[queue_lane])) {
    return simulated_crossing(simulated->world().model().sync, mechanism);
  }
  Bench bench(crew, cpu_lane, queue_lane, mechanism, options.warm_up + options.iterations);
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<double> round_trips,
      collect(options, [&](std::vector<double>* samples) { return bench.round_trips(samples); }));
  times.available = true;
  times.round_trip = quantiles_of(round_trips);
  if (options.long_wait.count() > 0) {
    TANDEM_ASSIGN_OR_RETURN(const double ms, bench.cost_of_waiting_ms(options.long_wait));
    times.cpu_ms_per_second_of_waiting = ms * 1e3 / static_cast<double>(options.long_wait.count());
  }
  if (mechanism == SyncMechanism::kEvent || mechanism == SyncMechanism::kFinish) {
    times.cpu_to_gpu = {times.round_trip.median / 2, times.round_trip.p90 / 2};
    times.gpu_to_cpu = times.cpu_to_gpu;
    return times;
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> intervals,
                          collect(options, [&](std::vector<double>* samples) {
                            return bench.signal_intervals(samples);
                          }));
  times.gpu_to_cpu = quantiles_of(intervals);
  for (double& us : round_trips) us = std::max(0.0, us - times.gpu_to_cpu.median);
  times.cpu_to_gpu = quantiles_of(round_trips);
  return times;
}

StatusOr<StartCosts> bench_start(LaneCrew& crew, int queue_lane, SyncMechanism mechanism) {
  TANDEM_RETURN_IF_ERROR(check_mechanism(mechanism, {crew.queue_lane(queue_lane)}));
  int host = kNone;
  for (int lane = 0; lane < static_cast<int>(crew.lanes().size()); ++lane) {
    const bool feeds = &crew.thread(lane) == &crew.thread(queue_lane);
    if (!crew.queue_lane(lane) && (host == kNone || feeds)) host = lane;
  }
  if (sim::SimulatedLane* simulated = sim::as_simulated(crew.lanes()[queue_lane])) {
    const sim::SyncCosts& sync = simulated->world().model().sync;
    const double seen_us = simulated_crossing(sync, mechanism).gpu_to_cpu.median;
    return StartCosts{sync.enqueue_us, sync.enqueue_us + seen_us};
  }
  constexpr int kRuns = 15;
  constexpr double kBusyUs = 300;  // more than any device takes to start and end
  Bench bench(crew, host, queue_lane, mechanism, 1);
  TANDEM_ASSIGN_OR_RETURN(std::vector<double> idle, bench.single_runs(0, kRuns));
  StartCosts costs;
  costs.queue_us = summarize(std::move(idle)).median;
  if (host == kNone || &crew.thread(host) != &crew.thread(queue_lane)) return costs;
  TANDEM_ASSIGN_OR_RETURN(std::vector<double> busy, bench.single_runs(kBusyUs, kRuns));
  costs.host_us = std::max(0.0, summarize(std::move(busy)).median - kBusyUs);
  return costs;
}

StatusOr<std::vector<LanePairTimes>> bench_sync(const std::shared_ptr<Platform>& platform,
                                                const SyncBenchOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + kDeadline));
  std::vector<LanePairTimes> pairs;
  const auto lanes = static_cast<int>(crew->lanes().size());
  for (int cpu = 0; cpu < lanes; ++cpu) {
    for (int queue = 0; queue < lanes; ++queue) {
      if (crew->queue_lane(cpu) || !crew->queue_lane(queue)) continue;
      LanePairTimes pair{crew->info(cpu).name, crew->info(queue).name, {}};
      for (const SyncMechanism mechanism : {SyncMechanism::kSvm, SyncMechanism::kEvent,
                                            SyncMechanism::kPinned, SyncMechanism::kFinish}) {
        StatusOr<CrossingTimes> times = bench_crossing(*crew, cpu, queue, mechanism, options);
        if (!times.ok()) {
          // One that does not work here says nothing of the others.
          CrossingTimes failed;
          failed.why_not = times.status().to_string();
          times = std::move(failed);
        }
        pair.mechanisms.push_back({mechanism, std::move(times).value()});
      }
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

}  // namespace tandem
