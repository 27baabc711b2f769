// The threads that control the lanes of a platform, and who may use them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lane/lane.h"
#include "support/clock.h"
#include "tandem/platform.h"

namespace tandem {

// A thread that does what it is given, in order.
class WorkerThread {
 public:
  WorkerThread();
  // Finishes everything posted.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // The work must not throw.
  void post(std::function<void()> work);
  // Posts, and waits for the end. Throws what the work throws. Not from the thread itself.
  void run(const std::function<void()>& work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stop_ = false;
  std::thread thread_;  // last: starts when the rest is there
};

// Who enqueues the slices of lanes that have a queue.
enum class Feeder {
  kAuto,       // kOwnThread if the machine has a core that no lane computes on, else kFirstCpuLane
  kOwnThread,  // a thread for each such lane
  kFirstCpuLane  // the first CPU lane's controlling thread, before its own slices
};

// One thread per lane (see Feeder for queue lanes), which has entered it. Lanes are for one user at
// a time, because each computes one slice at a time and its calls must not overlap: a Lease.
class LaneCrew {
 public:
  // `keep_alive` owns the lanes, or is null where they outlive the crew.
  static StatusOr<std::shared_ptr<LaneCrew>> create(std::vector<Lane*> lanes,
                                                    Feeder feeder = Feeder::kAuto,
                                                    std::shared_ptr<const void> keep_alive = {});
  // The one of the platform: all sessions share it, so that lanes keep their threads (and those of
  // libraries under them).
  static StatusOr<std::shared_ptr<LaneCrew>> of(const std::shared_ptr<Platform>& platform);

  const std::vector<Lane*>& lanes() const { return lanes_; }
  const LaneInfo& info(int lane) const { return lanes_[lane]->info(); }
  // Null unless the lane is asynchronous.
  QueueLane* queue_lane(int lane) const { return queue_lanes_[lane]; }
  // The thread that binds and launches the lane's slices. Several lanes may have the same.
  WorkerThread& thread(int lane) const { return *threads_[lane]; }

  class Lease {
   public:
    explicit Lease(std::shared_ptr<LaneCrew> crew) : crew_(std::move(crew)) {}
    ~Lease() {
      if (crew_) crew_->release();
    }
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;

   private:
    std::shared_ptr<LaneCrew> crew_;
  };
  // Those who wait get the lanes in the order in which they came. kDeadlineExceeded if others keep
  // the lanes busy until then, kCancelled soon after `give_up`, if there is one, becomes true.
  static StatusOr<Lease> acquire(const std::shared_ptr<LaneCrew>& crew, Clock::time_point deadline,
                                 const std::atomic<bool>* give_up = nullptr);
  // How many wait for a lease.
  size_t waiting() const;

 private:
  LaneCrew() = default;
  void release();

  std::shared_ptr<const void> keep_alive_;  // first: goes last
  std::vector<Lane*> lanes_;
  std::vector<QueueLane*> queue_lanes_;
  std::vector<std::shared_ptr<WorkerThread>> threads_;

  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool in_use_ = false;
  std::deque<uint64_t> waiting_;  // tickets, the longest waiting first
  uint64_t next_ticket_ = 0;
};

}  // namespace tandem
