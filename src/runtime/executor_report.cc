// What an executor says of its lanes when a run fails.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/executor.h"

namespace tandem {

std::string Executor::name_of(int lane, int slice) const {
  return fmt::format("{} on lane {}", to_string(graph_, lanes_[lane].slices[slice].slice),
                     crew_->info(lane).name);
}

std::string Executor::describe_progress() const {
  std::vector<std::string> parts;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    const auto lane = static_cast<int>(l);
    const std::vector<BoundSlice>& slices = lanes_[l].slices;
    const auto total = static_cast<int>(slices.size());
    if (crew_->queue_lane(lane)) {
      // What is known of a queue may lag behind: not every slice is signalled.
      const int finished = sync_->finished(lane);
      if (finished >= total) continue;
      parts.push_back(fmt::format("lane {} has signalled {} of {} slices, and comes next to {}",
                                  crew_->info(lane).name, finished, total,
                                  to_string(graph_, slices[finished].slice)));
    } else if (const Phase phase = progress_[l].phase.load(); total > 0 && phase != Phase::kDone) {
      parts.push_back(fmt::format("lane {} {} {}", crew_->info(lane).name,
                                  phase == Phase::kComputing ? "is at" : "waits before",
                                  to_string(graph_, slices[progress_[l].at].slice)));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<int> Executor::stalled_lanes() const {
  std::vector<int> computing;
  std::vector<int> queues;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    const auto lane = static_cast<int>(l);
    if (crew_->queue_lane(lane)) {
      if (sync_->finished(lane) < static_cast<int>(lanes_[l].slices.size())) queues.push_back(lane);
    } else if (progress_[l].phase.load() == Phase::kComputing) {
      computing.push_back(lane);
    }
  }
  // A queue does not say whether it waits or computes. If no host lane computes, it must.
  return computing.empty() ? queues : computing;
}

}  // namespace tandem
