// The slices of a schedule, bound to memory on their lanes.
#pragma once

#include <memory>
#include <vector>

#include "profile/lane_crew.h"
#include "schedule/schedule.h"
#include "schedule/transfers.h"
#include "tandem/session.h"

namespace tandem {

struct BoundSlice {
  Slice slice;
  std::vector<Wait> waits;
  std::unique_ptr<Task> task;
  Transfers::Around transfers;  // nothing on lanes that compute on the host's memory
};

struct BoundLane {
  std::shared_ptr<LaneProgram> program;  // null if the lane has no slices and none was given
  double bind_us = 0;                    // loading, compiling and warming up included
  std::vector<BoundSlice> slices;
};

struct BindOptions {
  // By lane, what loaded the same graph and bindings before; null, or an empty vector: the lane
  // loads the graph itself.
  std::vector<std::shared_ptr<LaneProgram>> programs;
  // Lanes that compute on memory of their own copy everything that they make to the host's.
  bool keep_all = false;
};

// By lane of the schedule, each on its own thread, all threads at once. Errors name the lane and
// the slice. The caller has the lease; graph and memory must outlive what is bound.
StatusOr<std::vector<BoundLane>> bind_lanes(const Graph& graph, const Schedule& schedule,
                                            const TensorBindings& bindings, const LaneCrew& crew,
                                            const BindOptions& options);

// Of the lanes that have slices: what it took to get there.
std::vector<LanePreparation> preparations(const std::vector<BoundLane>& lanes,
                                          const LaneCrew& crew);

}  // namespace tandem
