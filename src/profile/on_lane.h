// Work on a lane's thread.
#pragma once

#include <string>

#include "profile/lane_crew.h"

namespace tandem {

// Calls work(), a Status(), on the lane's thread, and waits for it. `purpose` and the lane's name
// are the context of an error: "profiling lane gpu". Throws what the work throws.
template <typename Work>
Status on_lane(const LaneCrew& crew, int lane, const std::string& purpose, const Work& work) {
  Status status;
  crew.thread(lane).run([&] { status = work(); });
  return status.with_context(purpose + " lane " + crew.info(lane).name);
}

}  // namespace tandem
