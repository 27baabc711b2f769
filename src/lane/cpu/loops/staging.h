// A copy of the part of an image that a slice reads, with zeros around it.
#pragma once

#include <cstdint>

#include "graph/tensor.h"

namespace tandem::cpu {

// Dense, [n][height][width][channels]: every window then lies inside, and what a row of it covers
// is contiguous.
struct Staging {
  bool used = false;
  const float* from = nullptr;     // element (n begin, channel 0, 0, 0) of the image
  Dims strides;                    // n, c, h, w; channels are contiguous
  int64_t image[2] = {0, 0};       // extents
  int64_t origin[2] = {0, 0};      // of the copy within the image; may be negative
  int64_t size[4] = {0, 0, 0, 0};  // n, h, w, c

  int64_t floats() const { return used ? size[0] * size[1] * size[2] * size[3] : 0; }
};

void stage(const Staging& staging, int threads, float* to);

}  // namespace tandem::cpu
