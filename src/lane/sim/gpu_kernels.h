// Which kernel a GPU delegate would run for a workload, and how it cuts it into work-groups: after
// the public rules of LiteRT's GPU delegate (tensorflow/lite/delegates/gpu/common:
// selectors/convolution_selector.cc, tasks/conv_generic.cc, tasks/conv_constants.cc,
// tasks/fully_connected.cc, task/work_group_picking.cc).
#pragma once

#include <cstdint>
#include <string>

#include "lane/sim/platform_model.h"
#include "lane/sim/workload.h"

namespace tandem::sim {

enum class Kernel : uint8_t {
  kConvConstants,  // weights in constant memory, a work-item makes all channels of a pixel
  kConvGeneric,    // a work-item makes a block of pixels and channel slices
  kConvGrouped,
  kWinograd,  // 4x4 outputs from 6x6 inputs: two transforms and 36 products
  kDepthwise,
  kFullyConnected,  // four work-items share the depth of four outputs
  kPool,
  kMean,
  kConcat,
  kElementwise,
};
const char* to_string(Kernel kernel);

// Work-items and groups. A channel slice is four channels.
struct KernelPlan {
  Kernel kernel = Kernel::kElementwise;
  int64_t block[4] = {1, 1, 1, 1};  // x, y, z, channel slices that a work-item makes
  int64_t grid[3] = {1, 1, 1};      // work-items
  int64_t group[3] = {1, 1, 1};
  int64_t groups = 1;
  int64_t waves = 1;  // groups are cut into waves; the last of each may be part empty
  int64_t dispatches = 1;
};

KernelPlan plan_kernel(const Gpu& gpu, const Workload& work, bool f16);

// The rule for 3x3 convolutions of stride 1.
bool winograd_recommended(const Gpu& gpu, const Workload& work);

}  // namespace tandem::sim
