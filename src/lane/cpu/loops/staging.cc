#include "lane/cpu/loops/staging.h"

#include <algorithm>
#include <cstring>

#include "lane/cpu/kernel.h"

namespace tandem::cpu {
namespace {

// kChannels: 0 where it is not known at compile time.
template <int kChannels>
void stage_row(const Staging& s, const float* from, float* to) {
  const int64_t channels = kChannels > 0 ? kChannels : s.size[3];
  const int64_t begin = std::clamp<int64_t>(-s.origin[1], 0, s.size[2]);
  const int64_t end = std::clamp<int64_t>(s.image[1] - s.origin[1], begin, s.size[2]);
  std::fill_n(to, begin * channels, 0.0f);
  std::fill(to + end * channels, to + s.size[2] * channels, 0.0f);
  const float* pixel = from + (s.origin[1] + begin) * s.strides[3];
  to += begin * channels;
  if (s.strides[3] == channels) {
    std::memcpy(to, pixel, (end - begin) * channels * sizeof(float));
    return;
  }
  for (int64_t w = begin; w < end; ++w, pixel += s.strides[3], to += channels) {
    std::memcpy(to, pixel, channels * sizeof(float));
  }
}

}  // namespace

void stage(const Staging& s, int threads, float* to) {
  const int64_t rows = s.size[0] * s.size[1];
  const int64_t row_floats = s.size[2] * s.size[3];
  parallel(threads, [&](int index, int parts) {
    const Part part = part_of(rows, index, parts);
    for (int64_t row = part.begin; row < part.end; ++row) {
      const int64_t y = s.origin[0] + row % s.size[1];
      float* target = to + row * row_floats;
      if (y < 0 || y >= s.image[0]) {
        std::fill_n(target, row_floats, 0.0f);
        continue;
      }
      const float* from = s.from + row / s.size[1] * s.strides[0] + y * s.strides[2];
      s.size[3] == 3 ? stage_row<3>(s, from, target) : stage_row<0>(s, from, target);
    }
  });
}

}  // namespace tandem::cpu
