#include "runtime/sync_bench.h"

#include <algorithm>
#include <functional>

#include "runtime/memory_plan.h"
#include "runtime/sync.h"
#include "support/cpu_relax.h"
#include "support/statistics.h"

namespace tandem {
namespace {

// Round trips that are enqueued at once.
constexpr int kBatch = 200;
constexpr std::chrono::seconds kDeadline{20};

Quantiles quantiles_of(const std::vector<double>& samples) {
  const Summary summary = summarize(samples);
  return {summary.median, summary.p90};
}

// Runs batches of waits and signals with nothing in between, through the same Synchronization that
// sessions use.
class Bench {
 public:
  Bench(LaneCrew& crew, int cpu_lane, int queue_lane, SyncMechanism mechanism)
      : crew_(crew), cpu_(cpu_lane), queue_(queue_lane), mechanism_(mechanism) {}

  // The queue waits for the CPU lane and signals, `kBatch` times; a sample is one round trip.
  Status round_trips(std::vector<double>* samples) {
    Schedule schedule = empty_schedule();
    for (int i = 0; i < kBatch; ++i) {
      schedule.lanes[queue_][i].waits = {{cpu_, i + 1}};
      schedule.lanes[cpu_][i + 1].waits = {{queue_, i + 1}};
    }
    return batch(schedule, [&](Synchronization& sync, const FeedOn& feed_on) -> Status {
      for (int i = 0; i < kBatch; ++i) {
        const Clock::time_point start = Clock::now();
        sync.signal(cpu_, i + 1);
        TANDEM_RETURN_IF_ERROR(feed_on());
        TANDEM_RETURN_IF_ERROR(sync.wait({queue_, i + 1}));
        samples->push_back(microseconds(Clock::now() - start));
      }
      return {};
    });
  }

  // The queue waits for the CPU lane once, and then signals `kBatch` times; a sample is the time
  // from one signal to the next.
  Status signal_intervals(std::vector<double>* samples) {
    Schedule schedule = empty_schedule();
    schedule.lanes[queue_][0].waits = {{cpu_, 1}};
    for (int i = 1; i <= kBatch; ++i) schedule.lanes[cpu_][i].waits = {{queue_, i}};
    return batch(schedule, [&](Synchronization& sync, const FeedOn& feed_on) -> Status {
      sync.signal(cpu_, 1);
      TANDEM_RETURN_IF_ERROR(feed_on());
      TANDEM_RETURN_IF_ERROR(sync.wait({queue_, 1}));
      Clock::time_point before = Clock::now();
      const Clock::time_point deadline = before + kDeadline;
      for (int seen = sync.finished(queue_); seen < kBatch;) {
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

 private:
  // `kBatch` slices of the queue, and one more of the CPU lane, so that it can wait for the last.
  Schedule empty_schedule() const {
    Schedule schedule;
    schedule.lanes.resize(crew_.lanes().size());
    schedule.lanes[cpu_].resize(kBatch + 1);
    schedule.lanes[queue_].resize(kBatch);
    return schedule;
  }

  // Feeds the queue as far as may be, where it is held back and nobody else does.
  using FeedOn = std::function<Status()>;

  template <typename HostSide>  // Status(Synchronization&, const FeedOn&)
  Status batch(const Schedule& schedule, const HostSide& host_side) {
    const size_t lanes = crew_.lanes().size();
    std::vector<QueueLane*> queue_lanes;
    for (size_t lane = 0; lane < lanes; ++lane) {
      queue_lanes.push_back(crew_.queue_lane(static_cast<int>(lane)));
    }
    if (!counters_) {
      TANDEM_ASSIGN_OR_RETURN(
          counters_, Arena::allocator_for(crew_.lanes())(SharedCounters::bytes_for(lanes)));
    }
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Synchronization> sync,
                            make_synchronization(mechanism_, std::move(queue_lanes), schedule,
                                                 SharedCounters::create(counters_, lanes, 0)));
    sync->begin(Clock::now() + kDeadline);
    Status result;
    const bool own_feeder = &crew_.thread(queue_) != &crew_.thread(cpu_);
    size_t fed = 0;
    const auto feed_on = [&] { return feed(schedule, *sync, &fed); };
    crew_.thread(queue_).run([&] { result = feed_on(); });
    if (result.ok() && own_feeder) {
      crew_.thread(queue_).post([&] {
        Status status;
        const auto done = [&] {
          status = feed_on();
          return !status.ok() || fed == schedule.lanes[queue_].size();
        };
        const Status polled = sync->poll_until(done);
        if (!polled.ok() || !status.ok()) sync->abort(polled.ok() ? status : polled);
      });
    }
    const FeedOn host_feed = own_feeder ? FeedOn([] { return Status(); }) : FeedOn(feed_on);
    if (result.ok()) crew_.thread(cpu_).run([&] { result = host_side(*sync, host_feed); });
    if (!result.ok()) sync->abort(result);
    Status drained;
    crew_.thread(queue_).run(
        [&] { drained = crew_.queue_lane(queue_)->drain(Clock::now() + kDeadline); });
    sync->end();
    return result.ok() ? drained : result;
  }

  // Goes on from the `fed`-th slice, and flushes if there was any to enqueue.
  Status feed(const Schedule& schedule, Synchronization& sync, size_t* fed) {
    const std::vector<ScheduledSlice>& slices = schedule.lanes[queue_];
    const size_t first = *fed;
    for (; *fed < slices.size(); ++*fed) {
      for (const Wait& wait : slices[*fed].waits) {
        if (!sync.is_held_back(queue_)) {
          TANDEM_RETURN_IF_ERROR(sync.enqueue_wait(queue_, wait));
          continue;
        }
        TANDEM_ASSIGN_OR_RETURN(const bool passed, sync.passed(wait));
        if (!passed) return *fed > first ? crew_.queue_lane(queue_)->flush() : Status();
      }
      TANDEM_RETURN_IF_ERROR(sync.enqueue_signal(queue_, static_cast<int>(*fed) + 1));
    }
    return *fed > first ? crew_.queue_lane(queue_)->flush() : Status();
  }

  LaneCrew& crew_;
  const int cpu_;
  const int queue_;
  const SyncMechanism mechanism_;
  std::shared_ptr<std::byte> counters_;
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

StatusOr<CrossingTimes> bench_crossing(LaneCrew& crew, int cpu_lane, int queue_lane,
                                       SyncMechanism mechanism, const SyncBenchOptions& options) {
  CrossingTimes times;
  if (mechanism == SyncMechanism::kSvm) {
    std::string why;
    const auto usable = choose_mechanism(mechanism, {crew.queue_lane(queue_lane)}, &why);
    if (!usable.ok()) {
      times.why_not = why;
      return times;
    }
  }
  Bench bench(crew, cpu_lane, queue_lane, mechanism);
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<double> round_trips,
      collect(options, [&](std::vector<double>* samples) { return bench.round_trips(samples); }));
  times.available = true;
  times.round_trip = quantiles_of(round_trips);
  if (mechanism != SyncMechanism::kSvm) {
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
      LanePairTimes pair{crew->info(cpu).name, crew->info(queue).name, {}, {}};
      TANDEM_ASSIGN_OR_RETURN(pair.svm,
                              bench_crossing(*crew, cpu, queue, SyncMechanism::kSvm, options));
      TANDEM_ASSIGN_OR_RETURN(pair.event,
                              bench_crossing(*crew, cpu, queue, SyncMechanism::kEvent, options));
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

}  // namespace tandem
