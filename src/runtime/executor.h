// Runs a schedule on lanes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "profile/lane_crew.h"
#include "runtime/bound_lanes.h"
#include "runtime/memory_plan.h"
#include "runtime/queue_feeder.h"
#include "runtime/recording.h"
#include "runtime/sync.h"
#include "schedule/schedule.h"

namespace tandem {

struct ExecutorOptions {
  SyncOptions sync;
  std::chrono::milliseconds deadline{10'000};
  // After a fault, how long run() waits for lanes to finish what they are at. A lane that takes
  // longer is waited for by the next run() (up to its deadline), and by the destructor.
  std::chrono::milliseconds drain_grace{2'000};
  // Where progress counters start. They wrap around; tests start them just before that.
  uint32_t first_count = 0;
  // By lane, what loaded the same graph and bindings before, so that several executors share packed
  // weights; null, or an empty vector: the executor loads the graph itself.
  std::vector<std::shared_ptr<LaneProgram>> programs;
  // Every tensor that survives (see MemoryPlan) can be read from the host's memory after a run,
  // also what lanes make in memory of their own. Otherwise only outputs can.
  bool keep_all = false;
  // Is told of the runs that it wants. Null: nothing is recorded.
  std::shared_ptr<Tracer> tracer;
};

// One schedule bound to memory. Every thread of the crew that has slices to do feeds the queues of
// its asynchronous lanes first, with waits and signals in between, all of them or, of lanes that
// are held back, as many as may be; then computes the slices of its own lane, waiting and
// signalling in between, and feeds what is left of the queues when it may; then waits for its
// queues.
class Executor {
 public:
  // Loads the graph on every lane that has slices, and binds them. The schedule must pass
  // check_schedule(). Takes no lease: the caller has one. Graph and memory must outlive the
  // executor.
  static StatusOr<std::unique_ptr<Executor>> create(const Graph& graph, const Schedule& schedule,
                                                    const TensorBindings& bindings,
                                                    std::shared_ptr<LaneCrew> crew,
                                                    const ExecutorOptions& options);
  ~Executor();

  // Once the lanes are ours and idle: `prepare`, then the schedule, then `collect` if all went
  // well. Not reentrant. The clock of the deadline starts at the call. If a device gives up polling
  // for a lane that is slow, but not late, everything is done once more with a mechanism in which
  // devices do not poll; so are all later runs. `cancelled`, if there is one, is what whoever calls
  // cancel() has set before, so that a cancel that comes too early for that is seen as well.
  Status run(const std::function<void()>& prepare, const std::function<void()>& collect,
             const std::atomic<bool>* cancelled = nullptr);
  // Makes the run in progress, if any, return kCancelled. Callable from any thread.
  void cancel();

  // Of the last successful run: from when all threads were ready, inputs in place, to the end of
  // the last slice.
  double makespan_us() const { return makespan_us_; }
  // The one in use.
  SyncMechanism mechanism() const { return options_.sync.mechanism; }
  // The lanes that are to blame for the last run's error, if they can be told: those that returned
  // an error, or that were at a slice when the deadline passed.
  const std::vector<int>& blamed_lanes() const { return blamed_; }
  // Of the lanes that have slices.
  std::vector<LanePreparation> preparations() const { return tandem::preparations(lanes_, *crew_); }
  // By lane, for ExecutorOptions::programs of another; null where a lane has neither slices nor a
  // program from before.
  std::vector<std::shared_ptr<LaneProgram>> programs() const;

 private:
  enum class Phase : uint8_t { kDone, kWaiting, kComputing };
  // What a host lane is doing, for reports.
  struct HostProgress {
    std::atomic<int> at{0};
    std::atomic<Phase> phase{Phase::kDone};
  };
  // A thread with the lanes that it serves.
  struct Crewman {
    WorkerThread* thread = nullptr;
    std::vector<QueueFeeder> queues;
    int host_lane = kNone;
  };

  Executor(const Graph& graph, std::shared_ptr<LaneCrew> crew, const ExecutorOptions& options)
      : graph_(graph), crew_(std::move(crew)), options_(options) {}
  Status bind(const Schedule& schedule, const TensorBindings& bindings);
  void assign_crewmen();
  Status make_sync(SyncMechanism mechanism);
  bool polled_in_vain();  // the last run_once()
  Status run_without_polling(const std::function<void()>& prepare,
                             const std::function<void()>& collect,
                             const std::atomic<bool>* cancelled, Status failure);
  Status run_once(const std::function<void()>& prepare, const std::function<void()>& collect,
                  const std::atomic<bool>* cancelled);
  // The steps of run_once().
  Status acquire_lanes(const std::atomic<bool>* cancelled);
  void start_crew(const std::atomic<bool>* cancelled);
  void await_crew();

  // On the threads of the crew.
  void serve(Crewman& crewman);
  // Feeds the thread's queues. True if it got on with any.
  bool feed_queues(Crewman& crewman);
  static bool all_fed(const Crewman& crewman);
  // What is left of the thread's queues.
  Status feed_to_the_end(Crewman& crewman);
  Status compute(Crewman& crewman);
  Status wait_before(Crewman& crewman, size_t index);
  Status wait(Crewman& crewman, const Wait& wait);
  Status launch(int lane, size_t index);
  void finish_queue(QueueFeeder& queue);
  void open_gate();

  // Of a run that was recorded and went well: tells the tracer.
  Status report_recording();
  // Waits for the threads of the last run; then brings counters to where the next one starts.
  bool settle(Clock::time_point deadline);
  void fail(int lane, Status reason);
  // The deadline has passed, or a device has given up polling. Does nothing if there is a reason
  // already.
  void expire();
  std::string name_of(int lane, int slice) const;
  // What each unfinished lane is at.
  std::string describe_progress() const;
  // The lanes that all others wait for.
  std::vector<int> stalled_lanes() const;

  const Graph& graph_;
  std::shared_ptr<LaneCrew> crew_;
  ExecutorOptions options_;  // the mechanism may change between runs
  Schedule schedule_;
  std::vector<BoundLane> lanes_;
  std::vector<HostProgress> progress_;  // by lane
  std::vector<Crewman> crewmen_;
  std::unique_ptr<Synchronization> sync_;
  Clock::time_point deadline_;

  // The start gate: threads arrive, the last one starts the clock and opens it.
  std::atomic<int> at_gate_{0};
  std::atomic<bool> gate_open_{false};
  Clock::time_point started_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable idle_;
  int working_ = 0;  // threads
  bool running_ = false;
  Clock::time_point finished_;
  std::vector<int> blamed_;
  bool device_gave_up_ = false;  // why the run failed: a device stopped polling before the deadline

  std::optional<LaneCrew::Lease> lease_;  // held while threads work
  std::unique_ptr<Recording> recording_;  // null: this run is not recorded
  double makespan_us_ = 0;
};

}  // namespace tandem
