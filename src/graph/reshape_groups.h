// How the dimensions of two shapes with the same number of elements correspond.
#pragma once

#include <cstddef>
#include <vector>

#include "tandem/tensor.h"

namespace tandem {

// Dimensions [source_begin, source_end) of the source hold the same elements as dimensions
// [output_begin, output_end) of the output, in the same row-major order.
struct ReshapeGroup {
  size_t source_begin = 0;
  size_t source_end = 0;
  size_t output_begin = 0;
  size_t output_end = 0;
};

// The finest such grouping; it covers every dimension of both. A group may lack dimensions on one
// side: those on the other are then all 1. [1, 6, 4] -> [3, 2, 4]: {1, 6 | 3, 2}, {4 | 4}.
inline std::vector<ReshapeGroup> reshape_groups(const Dims& source, const Dims& output) {
  std::vector<ReshapeGroup> groups;
  size_t s = 0;
  size_t o = 0;
  while (s < source.size() || o < output.size()) {
    ReshapeGroup group{s, s, o, o};
    int64_t source_count = s < source.size() ? source[s++] : 1;
    int64_t output_count = o < output.size() ? output[o++] : 1;
    while (source_count != output_count) {
      if (source_count < output_count) {
        source_count *= source[s++];
      } else {
        output_count *= output[o++];
      }
    }
    group.source_end = s;
    group.output_end = o;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace tandem
