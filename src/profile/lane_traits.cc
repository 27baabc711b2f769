#include "profile/lane_traits.h"

namespace tandem {

std::vector<LaneTraits> traits_of(const LaneCrew& crew) {
  std::vector<LaneTraits> all;
  const auto lanes = static_cast<int>(crew.lanes().size());
  for (int lane = 0; lane < lanes; ++lane) {
    LaneTraits& traits = all.emplace_back();
    traits.name = crew.info(lane).name;
    traits.asynchronous = crew.info(lane).asynchronous;
    const QueueLane* queue = crew.queue_lane(lane);
    if (!queue) {
      traits.max_threads = crew.info(lane).max_threads;
      continue;
    }
    traits.own_memory = computes_on_own_memory(*queue);
    for (int feeder = 0; feeder < lanes; ++feeder) {
      const bool same_thread = &crew.thread(lane) == &crew.thread(feeder);
      if (same_thread && !crew.queue_lane(feeder)) traits.fed_by = feeder;
    }
  }
  return all;
}

}  // namespace tandem
