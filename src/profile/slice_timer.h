// Times bound slices on a lane.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "profile/lane_crew.h"

namespace tandem {

// Runs tasks one after another, as a schedule would, and tells how long each took. Tasks follow
// each other in one go, so that each finds caches as the others leave them.
class SliceTimer {
 public:
  // The caller has the lease.
  static StatusOr<std::unique_ptr<SliceTimer>> create(LaneCrew& crew, int lane);
  virtual ~SliceTimer() = default;

  using Times = std::vector<std::optional<double>>;
  // Microseconds by task; nothing where they could not be told, since this process was kept from
  // running. Call it on the lane's thread.
  StatusOr<Times> time(const std::vector<Task*>& tasks) { return time(tasks, nullptr); }
  // `meanwhile` is called again and again while the host waits for a device: work for another lane
  // whose thread this is. It should take some tens of microseconds, by which times get less
  // precise. Not called on lanes without a queue.
  using Meanwhile = std::function<Status()>;
  virtual StatusOr<Times> time(const std::vector<Task*>& tasks, const Meanwhile& meanwhile) = 0;
  // True if every task is timed behind itself, however they follow each other.
  virtual bool repeats_tasks() const { return false; }
  // Microseconds of the calling thread to enqueue one task with its signal, as seen in the calls of
  // time() so far. 0 on lanes without a queue.
  double enqueue_us() const;

 protected:
  void note_enqueue_us(double us) { enqueue_us_.push_back(us); }

 private:
  std::vector<double> enqueue_us_;
};

}  // namespace tandem
