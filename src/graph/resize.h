// Where a kResize reads: one definition for the region rule, the reference and the lanes.
#pragma once

#include <array>
#include <cstdint>

#include "graph/operator.h"

namespace tandem {

// The elements of one axis of the input that an output element is made of, inside the image, and
// their weights. Outside of it the nearest element counts, so that an index may occur repeatedly.
struct ResizeTaps {
  int count = 0;  // 1 (nearest), 2 (linear) or 4 (cubic)
  std::array<int64_t, 4> index{};
  std::array<double, 4> weight{};
};

// `direction`: 0 for height, 1 for width.
ResizeTaps resize_taps(const ResizeAttributes& resize, int direction, int64_t input_extent,
                       int64_t output_extent, int64_t output_index);

}  // namespace tandem
