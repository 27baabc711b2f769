// A convolution, transposed convolution or linear as the matrix kernels see it.
#pragma once

#include <optional>

#include "lane/opencl/packing.h"
#include "lane/opencl/plan_internal.h"

namespace tandem::opencl {

struct TileProblem {
  const char* name;
  TileArguments arguments{};
  SharedArgument input{};
  SharedArgument residual{};
  SharedArgument output{};
  PanelLayout layout{};
  bool contiguous = true;  // channels of all tensors lie one apart
  bool pointwise = false;
  bool transposed = false;
};

// True where vectors of 16 floats may be read from any pixel up to a multiple of 16 channels: they
// end within the pixel's own padding.
bool vectors_stay_inside(const TileProblem& problem, int64_t channels);

// A Winograd kernel, where there is one for the problem and it is the faster choice (winograd.h).
std::optional<SlicePlan> plan_winograd(const TileProblem& problem, const DeviceTraits& device);

// The kernel for many work-items to a group (kernels/conv_items.cl), where it takes the problem.
std::optional<SlicePlan> plan_conv_items(const TileProblem& problem, const DeviceTraits& device);

// The kernel for groups that panels do not see as a whole (kernels/grouped.cl), where it takes the
// problem.
std::optional<SlicePlan> plan_grouped(const TileProblem& problem, const DeviceTraits& device);

// The kernel for few input channels (kernels/narrow.cl), where it takes the problem.
std::optional<SlicePlan> plan_narrow(const TileProblem& problem, const DeviceTraits& device);

}  // namespace tandem::opencl
