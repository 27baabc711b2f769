// How lanes tell each other of progress: the mechanisms behind one interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lane/lane.h"
#include "schedule/schedule.h"
#include "support/clock.h"
#include "support/cpu_relax.h"
#include "tandem/session.h"

namespace tandem {

// What the lanes of a session share: a progress counter each, and the abort flag on a line of its
// own. Must lie in memory of kind kFineAtomics where a device polls or signals.
struct SharedCounters {
  std::shared_ptr<std::byte> memory;
  ProgressCounter* counters = nullptr;     // by lane
  std::atomic<uint32_t>* abort = nullptr;  // not zero: every wait gives up

  // Puts counters that stand at `start`, and the flag, into `memory`.
  static SharedCounters create(std::shared_ptr<std::byte> memory, size_t lanes, uint32_t start);
  static size_t bytes_for(size_t lanes) { return (lanes + 1) * sizeof(ProgressCounter); }
};

// The waits and signals of one schedule, run after run. A run goes: begin(); the calls below, from
// the threads of the lanes; end() once every lane is idle. Counters never go back: a run starts
// where the one before ended.
class Synchronization {
 public:
  virtual ~Synchronization() = default;

  void begin(Clock::time_point deadline);
  // Of a host lane: its first `count` slices have finished.
  virtual void signal(int lane, int count);
  // Of a host lane: returns once the other lane has got that far. An error if the run was aborted
  // or the deadline has passed; it says which.
  Status wait(const Wait& wait);
  // Of whoever feeds a queue: whether the other lane has got that far. Returns at once.
  virtual StatusOr<bool> passed(const Wait& wait);
  // Of a queue lane, in the order of its slices: the same, enqueued.
  virtual Status enqueue_signal(int lane, int count) = 0;
  Status enqueue_wait(int lane, const Wait& wait);
  // Waits for the last slice of a queue lane; everything is enqueued and flushed.
  virtual Status wait_for_end(int lane) = 0;
  // Leaves the lanes' counters where a complete run would have left them, and clears the flag.
  virtual void end();

  // Makes every wait give up, on every lane, and keeps the reason if it is the first one.
  // Callable from any thread.
  void abort(Status reason);
  bool aborted() const { return shared_.abort->load(std::memory_order_relaxed) != 0; }
  // Why the run was aborted; ok if it was not, or by the device.
  Status reason() const;
  // How many slices of this run the lane is known to have finished.
  int finished(int lane) const;

  // True of a queue lane that is fed only as far as what its slices wait for has passed(), instead
  // of enqueueing waits: because copies from the host's memory may be enqueued only when what they
  // copy is there.
  bool is_held_back(int lane) const { return held_back_[lane]; }

  // Polls until `done()`. An error as for wait().
  template <typename Done>
  Status poll_until(const Done& done);

  int slices(int lane) const { return static_cast<int>(awaited_[lane].size()) - 1; }
  // True if some wait of the schedule needs that count, or it is the lane's last.
  bool is_awaited(int lane, int count) const { return awaited_[lane][count]; }

 protected:
  Synchronization(std::vector<QueueLane*> queue_lanes, const Schedule& schedule,
                  SharedCounters shared);

  uint32_t target(int lane, int count) const { return base_[lane] + static_cast<uint32_t>(count); }
  // Polls until the lane's counter has got that far.
  Status poll(int lane, int count);
  virtual Status enqueue_wait_in_queue(int lane, const Wait& wait) = 0;
  // Waits for a point in the queue of a queue lane from the host.
  virtual Status wait_for_queue(const Wait& wait) = 0;
  // Lets go what polling the flag does not.
  virtual void release_all() {}

  const std::vector<QueueLane*> queue_lanes_;  // by lane; null for host lanes
  const std::vector<bool> held_back_;          // by lane
  const SharedCounters shared_;
  Clock::time_point deadline_;

 private:
  std::vector<uint32_t> base_;              // by lane: its counter when the run began
  std::vector<std::vector<bool>> awaited_;  // by lane and count
  mutable std::mutex mutex_;
  Status reason_;  // guarded by mutex_
};

// By lane; see Synchronization::is_held_back().
std::vector<bool> held_back_lanes(const std::vector<QueueLane*>& queue_lanes);

template <typename Done>
Status Synchronization::poll_until(const Done& done) {
  // Long enough for a lane that is about to signal; then others may have the core.
  constexpr int kSpins = 2000;
  constexpr int kSpinsPerYield = 32;
  for (int spins = 0; !done(); ++spins) {
    if (aborted()) return cancelled("the run was aborted");
    cpu_relax();
    if (spins < kSpins || spins % kSpinsPerYield != 0) continue;
    if (Clock::now() >= deadline_) return deadline_exceeded("the deadline has passed");
    std::this_thread::yield();
    if (spins > 2 * kSpins) spins = kSpins;  // no overflow, however long it takes
  }
  return {};
}

// kUnsupported if the lanes cannot do it, saying why. `mechanism` is not kAuto.
StatusOr<std::unique_ptr<Synchronization>> make_synchronization(SyncMechanism mechanism,
                                                                std::vector<QueueLane*> queue_lanes,
                                                                const Schedule& schedule,
                                                                SharedCounters shared);

// What kAuto means for these lanes: svm if all queue lanes pass their self-test, else event. `why`
// then says why not svm. A forced kSvm that does not pass is kUnsupported.
StatusOr<SyncMechanism> choose_mechanism(SyncMechanism asked, const std::vector<QueueLane*>& lanes,
                                         std::string* why);

}  // namespace tandem
