// Loop nests over boxes of several tensors at once: dimensions that are contiguous in all of them
// are merged, so that the innermost loop is as long as the layouts allow.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "lane/cpu/kernel.h"

namespace tandem::cpu {

// kOperands tensors; the first one's strides decide the order of the loops.
template <int kOperands>
struct Nest {
  using Offsets = std::array<int64_t, kOperands>;
  struct Loop {
    int64_t extent;
    Offsets strides;
  };
  std::vector<Loop> loops;  // outermost first; at least one

  // `all`: every dimension's extent and strides, in any order.
  static Nest of(std::vector<Loop> all) {
    std::erase_if(all, [](const Loop& l) { return l.extent == 1; });
    std::stable_sort(all.begin(), all.end(), [](const Loop& a, const Loop& b) {
      return std::abs(a.strides[0]) > std::abs(b.strides[0]);
    });
    Nest nest;
    for (const Loop& l : all) {
      bool merges = !nest.loops.empty();
      for (int i = 0; merges && i < kOperands; ++i) {
        merges = nest.loops.back().strides[i] == l.strides[i] * l.extent;
      }
      if (merges) {
        nest.loops.back().extent *= l.extent;
        nest.loops.back().strides = l.strides;
      } else {
        nest.loops.push_back(l);
      }
    }
    Offsets ones;
    ones.fill(1);
    if (nest.loops.empty()) nest.loops.push_back({1, ones});
    return nest;
  }

  const Loop& inner() const { return loops.back(); }

  // Calls f(offsets, count) for runs of the innermost loop, in elements of it, on a team. Runs are
  // cut at multiples of `unit` where there are not enough of them for the team.
  template <typename F>
  void for_each_run(int threads, F f, int64_t unit = kLineFloats) const {
    int64_t outer = 1;
    for (size_t d = 0; d + 1 < loops.size(); ++d) outer *= loops[d].extent;
    const bool cut_outer = outer >= threads;
    parallel(threads, [&](int index, int parts) {
      const Part runs = cut_outer ? part_of(outer, index, parts) : Part{0, outer};
      const Part run =
          cut_outer ? Part{0, inner().extent} : part_of(inner().extent, index, parts, unit);
      if (run.begin == run.end) return;
      for (int64_t i = runs.begin; i < runs.end; ++i) {
        Offsets offsets;
        for (int k = 0; k < kOperands; ++k) offsets[k] = run.begin * inner().strides[k];
        int64_t rest = i;
        for (size_t d = loops.size() - 1; d-- > 0;) {
          const int64_t position = rest % loops[d].extent;
          rest /= loops[d].extent;
          for (int k = 0; k < kOperands; ++k) offsets[k] += position * loops[d].strides[k];
        }
        f(offsets, run.end - run.begin);
      }
    });
  }
};

// The stride of `view` along dimension `dim` of a tensor of rank `rank` that it is broadcast to.
inline int64_t broadcast_stride(const TensorView& view, size_t rank, size_t dim) {
  const size_t missing = rank - view.dims.size();
  if (dim < missing || view.dims[dim - missing] == 1) return 0;
  return view.strides[dim - missing];
}

// The element of `view` that is combined with the lower corner of `region`.
inline const float* broadcast_corner(const TensorView& view, const Region& region) {
  const float* p = view.as<float>();
  for (size_t d = 0; d < region.size(); ++d) {
    p += region[d].begin * broadcast_stride(view, region.size(), d);
  }
  return p;
}

}  // namespace tandem::cpu
