// How lanes tell each other of progress: the mechanisms behind one interface.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lane/lane.h"
#include "schedule/schedule.h"
#include "support/backoff.h"
#include "support/clock.h"
#include "tandem/session.h"

namespace tandem {

// What the lanes of a session share: a progress counter each, and the abort flag on a line of its
// own; and the same once more for rouse().
struct SharedCounters {
  std::shared_ptr<std::byte> memory;
  ProgressCounter* counters = nullptr;      // by lane
  std::atomic<uint32_t>* abort = nullptr;   // not zero: every wait gives up
  ProgressCounter* released = nullptr;      // by lane: how often release() was called for
  std::atomic<uint32_t>* dozing = nullptr;  // not zero: a device waited in vain to be released

  // Puts counters that stand at `start`, and the flag, into `memory`.
  static SharedCounters create(std::shared_ptr<std::byte> memory, size_t lanes, uint32_t start);
  // In memory that suits the mechanism. `queue_lanes` are by lane, null for host lanes.
  static StatusOr<SharedCounters> allocate(SyncMechanism mechanism,
                                           const std::vector<QueueLane*>& queue_lanes,
                                           uint32_t start);
};

// How lanes wait for each other.
struct SyncOptions {
  SyncMechanism mechanism = SyncMechanism::kSvm;  // not kAuto
  // How long a device polls at most.
  std::chrono::milliseconds device_spin_limit{100};
};

// The waits and signals of one schedule, run after run. A run goes: begin(); the calls below, from
// the threads of the lanes; end() once every lane is idle. Counters never go back: a run starts
// where the one before ended.
class Synchronization {
 public:
  virtual ~Synchronization() = default;

  virtual void begin(Clock::time_point deadline);
  // Between begin() and a queue lane's first slice, from any thread: keeps the device awake, which
  // takes far longer to wake up than to start on a slice, until release() or for some milliseconds.
  // What happens if it fails is that the device sleeps.
  virtual void rouse(int /*lane*/) {}
  // The device has its first slices. To be called after rouse(), whatever happened; any number of
  // times.
  virtual void release(int /*lane*/) {}
  // Of a host lane: its first `count` slices have finished.
  virtual void signal(int lane, int count);
  // Of a host lane: returns once the other lane has got that far. An error if the run was aborted
  // or the deadline has passed; it says which.
  Status wait(const Wait& wait);
  // Of whoever feeds a queue: whether the other lane has got that far. Does not wait for anything
  // that it takes the caller to bring about.
  virtual StatusOr<bool> passed(const Wait& wait);
  // Of a queue lane, in the order of its slices: the same, enqueued.
  virtual Status enqueue_signal(int lane, int count) = 0;
  Status enqueue_wait(int lane, const Wait& wait);
  // Of a queue lane: its first `count` slices are enqueued, with their signals, and flushed.
  virtual void flushed(int /*lane*/, int /*count*/) {}
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
  // of enqueueing waits.
  bool is_held_back(int lane) const { return held_back_[lane]; }
  // A pause of whoever waits for anything. An error as for wait().
  Status pause(Backoff* backoff) const;

  // Polls until `done()`. An error as for wait().
  template <typename Done>
  Status poll_until(const Done& done);

  int slices(int lane) const { return static_cast<int>(awaited_[lane].size()) - 1; }
  // True if some wait of the schedule needs that count, or it is the lane's last.
  bool is_awaited(int lane, int count) const { return awaited_[lane][count]; }

 protected:
  Synchronization(SyncMechanism mechanism, std::vector<QueueLane*> queue_lanes,
                  const Schedule& schedule, SharedCounters shared);

  // The lane has got that far, at least. Callable from several threads.
  void advance(int lane, int count);
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

template <typename Done>
Status Synchronization::poll_until(const Done& done) {
  for (Backoff backoff; !done();) TANDEM_RETURN_IF_ERROR(pause(&backoff));
  return {};
}

// By lane, which queues a mechanism holds back. Those that compute on memory of their own: copies
// from the host's memory may be enqueued only when what they copy is there. With `finish`, all.
// With `event`, those that wait for other queues.
std::vector<bool> held_back_lanes(SyncMechanism mechanism,
                                  const std::vector<QueueLane*>& queue_lanes,
                                  const Schedule& schedule);

// kUnsupported if the lanes cannot do it, saying why.
StatusOr<std::unique_ptr<Synchronization>> make_synchronization(const SyncOptions& options,
                                                                std::vector<QueueLane*> queue_lanes,
                                                                const Schedule& schedule,
                                                                uint32_t first_count);

// Whether the mechanism (not kAuto) works between these lanes: runs the devices' self-tests.
// kUnsupported, saying why, where it does not.
Status check_mechanism(SyncMechanism mechanism, const std::vector<QueueLane*>& queue_lanes);

}  // namespace tandem
