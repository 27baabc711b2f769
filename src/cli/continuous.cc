#include "cli/continuous.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "support/clock.h"
#include "support/statistics.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};
// How long the parts run beside each other at least, and how often at least.
constexpr double kLeastUs = 12'000;
constexpr int kLeastRuns = 5;
constexpr int kMostRuns = 3000;
constexpr int kRepetitions = 5;

// A part with the thread of its lane.
struct Runner {
  std::unique_ptr<Task> task;
  WorkerThread* thread = nullptr;
  QueueLane* queue = nullptr;
};

class Continuous {
 public:
  static StatusOr<Continuous> create(const OperatorTrials& trials,
                                     const std::vector<SplitPart>& parts) {
    Continuous result;
    for (const SplitPart& part : parts) {
      Runner runner;
      runner.thread = &trials.crew()->thread(part.lane);
      runner.queue = trials.crew()->queue_lane(part.lane);
      Status bound;
      runner.thread->run([&] {
        auto task = trials.programs()[part.lane]->bind(part.slice, part.threads);
        bound = task.status();
        if (task.ok()) runner.task = *std::move(task);
      });
      TANDEM_RETURN_IF_ERROR(bound);
      std::optional<Runner>& place = runner.queue ? result.queue_ : result.host_;
      if (place) return unsupported("two CPU lanes or two queues running continuously");
      place = std::move(runner);
    }
    return result;
  }

  // Microseconds of a run of each part, the host's first.
  StatusOr<std::vector<double>> measure() {
    if (host_ && queue_) return measure_together();
    TANDEM_ASSIGN_OR_RETURN(const double us, host_ ? run_host(runs_for(kLeastUs, host_us_))
                                                   : run_queue(runs_for(kLeastUs, queue_us_)));
    return std::vector<double>{us};
  }

  // What parts take alone, roughly.
  Status warm_up() {
    if (host_) {
      TANDEM_RETURN_IF_ERROR(run_host(1).status());
      TANDEM_ASSIGN_OR_RETURN(host_us_, run_host(kLeastRuns));
    }
    if (queue_) {
      TANDEM_RETURN_IF_ERROR(run_queue(1).status());
      TANDEM_ASSIGN_OR_RETURN(queue_us_, run_queue(kLeastRuns));
    }
    queue_runs_ = 0;
    return {};
  }

 private:
  static int runs_for(double total_us, double us) {
    return static_cast<int>(std::clamp(std::ceil(total_us / std::max(us, 0.1)),
                                       static_cast<double>(kLeastRuns),
                                       static_cast<double>(kMostRuns)));
  }

  // The median of single runs.
  StatusOr<double> run_host(int runs) {
    Status status;
    std::vector<double> samples;
    host_->thread->run([&] {
      Clock::time_point before = Clock::now();
      for (int i = 0; i < runs && status.ok(); ++i) {
        status = host_->task->launch();
        const Clock::time_point now = Clock::now();
        samples.push_back(microseconds(now - before));
        before = now;
      }
    });
    TANDEM_RETURN_IF_ERROR(status);
    return summarize(std::move(samples)).median;
  }

  // Enqueued behind an event that the host sets when all is enqueued.
  StatusOr<std::unique_ptr<HostEvent>> enqueue(int runs) {
    std::unique_ptr<HostEvent> gate;
    Status status;
    queue_->thread->run([&] {
      auto event = queue_->queue->enqueue_host_wait();
      status = event.status();
      if (event.ok()) gate = *std::move(event);
      for (int i = 0; i < runs && status.ok(); ++i) status = queue_->task->launch();
      if (status.ok()) status = queue_->queue->flush();
    });
    TANDEM_RETURN_IF_ERROR(status);
    return gate;
  }

  StatusOr<double> run_queue(int runs) {
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<HostEvent> gate, enqueue(runs));
    const Clock::time_point begin = Clock::now();
    TANDEM_RETURN_IF_ERROR(gate->set());
    TANDEM_RETURN_IF_ERROR(queue_->queue->drain(begin + kPatience));
    return microseconds(Clock::now() - begin) / runs;
  }

  // The queue runs a little longer than the host, so that the host is never without company; and
  // not much longer, so that it is itself hardly ever.
  StatusOr<std::vector<double>> measure_together() {
    const double total_us = std::max(kLeastUs, kLeastRuns * std::max(host_us_, queue_us_));
    const int host_runs = runs_for(total_us, host_us_);
    if (queue_runs_ == 0) queue_runs_ = 1.1 * host_runs * host_us_ / queue_us_ + 1;
    constexpr int kAttempts = 8;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const int runs = static_cast<int>(std::ceil(queue_runs_));
      TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<HostEvent> gate, enqueue(runs));
      std::unique_ptr<DeviceEvent> end;
      TANDEM_ASSIGN_OR_RETURN(end, queue_->queue->enqueue_device_event());
      TANDEM_RETURN_IF_ERROR(queue_->queue->flush());
      const Clock::time_point begin = Clock::now();
      TANDEM_RETURN_IF_ERROR(gate->set());
      TANDEM_ASSIGN_OR_RETURN(const double us, run_host(host_runs));
      const double host_end_us = microseconds(Clock::now() - begin);
      TANDEM_ASSIGN_OR_RETURN(const bool too_short, end->passed());
      TANDEM_RETURN_IF_ERROR(end->wait(begin + kPatience));
      const double queue_end_us = microseconds(Clock::now() - begin);
      if (too_short) {
        queue_runs_ = 1.25 * queue_runs_ + 1;
        continue;
      }
      queue_runs_ = std::min(queue_runs_, 1.05 * queue_runs_ * host_end_us / queue_end_us + 1);
      return std::vector<double>{us, queue_end_us / runs};
    }
    return unsupported("the queue cannot be kept busy while the host runs");
  }

  std::optional<Runner> host_;
  std::optional<Runner> queue_;
  double host_us_ = 0;
  double queue_us_ = 0;
  double queue_runs_ = 0;  // of the last measurement together
};

}  // namespace

StatusOr<double> corun_limit(const OperatorTrials& trials, const std::vector<SplitPart>& parts,
                             SpeedWatch& watch) {
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(trials.crew(), Clock::now() + kPatience));
  std::vector<Continuous> all;  // each lane alone; then the parts
  for (int lane = 0; lane < static_cast<int>(trials.crew()->lanes().size()); ++lane) {
    TANDEM_ASSIGN_OR_RETURN(Continuous alone,
                            Continuous::create(trials, {SplitPart{lane, Slice{.op = 0}}}));
    all.push_back(std::move(alone));
  }
  TANDEM_ASSIGN_OR_RETURN(Continuous together, Continuous::create(trials, parts));
  all.push_back(std::move(together));

  std::vector<std::vector<std::vector<double>>> samples(all.size());  // by part
  for (Continuous& continuous : all) TANDEM_RETURN_IF_ERROR(continuous.warm_up());
  int clean = 0;
  for (int round = 0; round < 3 * kRepetitions && clean < kRepetitions; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      const bool disturbed = watch.disturbed();
      TANDEM_ASSIGN_OR_RETURN(const std::vector<double> us, all[i].measure());
      samples[i].resize(us.size());
      // Rather a disturbed one than none.
      const bool keep = !(disturbed || watch.disturbed()) || samples[i].front().empty();
      for (size_t part = 0; keep && part < us.size(); ++part) {
        samples[i][part].push_back(us[part]);
      }
    }
    clean = static_cast<int>(samples.front().front().size());
    for (const auto& of_one : samples) {
      clean = std::min(clean, static_cast<int>(of_one.front().size()));
    }
  }

  double alone_us = std::numeric_limits<double>::infinity();
  for (size_t lane = 0; lane + 1 < all.size(); ++lane) {
    alone_us = std::min(alone_us, summarize(samples[lane].front()).median);
  }
  const Graph& graph = trials.graph();
  double rate = 0;
  for (const SplitPart& part : parts) {
    const size_t place = trials.crew()->queue_lane(part.lane) ? samples.back().size() - 1 : 0;
    const double share = work_of(graph, part.slice).flops / work_of(graph, 0).flops;
    rate += share / summarize(samples.back()[place]).median;
  }
  return rate * alone_us;
}

}  // namespace tandem::cli
