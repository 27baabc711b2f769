// Slices of a graph in the words of predictors.
#pragma once

#include "lane/lane.h"
#include "platform/topology.h"
#include "predict/slice_case.h"
#include "schedule/placement.h"

namespace tandem {

// Caches are those of the lane's first core; of devices that are not the host, what OpenCL tells.
predict::LaneFacts lane_facts(const LaneInfo& lane, const Topology& topology);

predict::SliceFamily family_of(const Graph& graph, OperatorId op);

// Everything but the lane's part and the conditions of a measurement (repeated, load). The slice
// must pass check_slice().
predict::SliceCase describe_slice(const Graph& graph, const Placement& placement,
                                  const Slice& slice);

// The same with the lane's part. `implementation`: what the lane's program answers for the slice
// (LaneProgram::implementation() or Task::info()).
predict::SliceCase describe_slice(const Graph& graph, const Placement& placement,
                                  const Slice& slice, const predict::LaneFacts& lane,
                                  const ImplementationInfo& implementation);

// Puts the lane's part into a description.
void set_implementation(const predict::LaneFacts& lane, const ImplementationInfo& implementation,
                        predict::SliceCase* slice);

}  // namespace tandem
