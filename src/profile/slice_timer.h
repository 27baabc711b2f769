// Times bound slices on a lane.
#pragma once

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

  // Microseconds by task; nothing where they could not be told, since this process was kept from
  // running. Call it on the lane's thread.
  virtual StatusOr<std::vector<std::optional<double>>> time(const std::vector<Task*>& tasks) = 0;
  // Microseconds of the calling thread to enqueue one task with its signal, as seen in the calls of
  // time() so far. 0 on lanes without a queue.
  double enqueue_us() const;

 protected:
  void note_enqueue_us(double us) { enqueue_us_.push_back(us); }

 private:
  std::vector<double> enqueue_us_;
};

}  // namespace tandem
