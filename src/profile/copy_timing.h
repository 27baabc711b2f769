// What copies between the host's memory and a lane's own take.
#pragma once

#include "profile/calibration_cache.h"
#include "profile/slice_timer.h"

namespace tandem {

// Times uploads and downloads of parts of the graph's largest tensor: next to nothing, all of it,
// and half of its innermost axis. Zeros if there is no tensor to copy. Overwrites the tensor. Call
// it on the lane's thread.
StatusOr<CopyTimes> time_copies(const Graph& graph, LaneProgram& program, SliceTimer& timer);

}  // namespace tandem
