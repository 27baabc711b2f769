// A graph on the OpenCL lane.
#pragma once

#include <memory>

#include "lane/opencl/opencl_lane_impl.h"

namespace tandem::opencl {

StatusOr<std::unique_ptr<LaneProgram>> make_program(LaneImpl* lane, const Graph& graph,
                                                    const TensorBindings& bindings);

}  // namespace tandem::opencl
