// Copies between tensors of any strides.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lane/cpu/loops/nest.h"
#include "lane/cpu/loops/pack.h"

namespace tandem::cpu {

template <typename T>
void copy_run(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, count * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// A box copied from one set of strides to another. Where the innermost loop of the output is not
// the contiguous one of the input (a transposition), both go through tiles that stay in registers.
template <typename T>
class BoxCopy {
 public:
  BoxCopy(std::vector<Nest<2>::Loop> dims, T* to, const T* from) : to_(to), from_(from) {
    nest_ = Nest<2>::of(std::move(dims));
    const Nest<2>::Loop inner = nest_.inner();
    if (inner.strides[1] == 1 || inner.strides[0] != 1) return;
    for (size_t d = 0; d + 1 < nest_.loops.size(); ++d) {
      if (nest_.loops[d].strides[1] != 1 || nest_.loops[d].extent < kTile) continue;
      across_ = nest_.loops[d];
      nest_.loops.erase(nest_.loops.begin() + d);
      return;
    }
  }

  void run(int threads) const {
    const auto [to_stride, from_stride] = nest_.inner().strides;
    if (across_) {
      // The crossing loop's tiles are spread over the team, since the nest may have no outer loop.
      parallel(threads, [&](int index, int parts) {
        const Part part = part_of(across_->extent, index, parts, kTile);
        nest_.for_each_run(1, [&](const Nest<2>::Offsets& at, int64_t count) {
          transpose(to_ + at[0], from_ + at[1], count, part);
        });
      });
      return;
    }
    nest_.for_each_run(threads, [&](const Nest<2>::Offsets& at, int64_t count) {
      copy_run(to_ + at[0], to_stride, from_ + at[1], from_stride, count);
    });
  }

 private:
  static constexpr int64_t kTile = 16;

  void transpose(T* to, const T* from, int64_t count, Part part) const {
    const int64_t from_stride = nest_.inner().strides[1];
    const int64_t to_stride = across_->strides[0];
    if constexpr (std::is_same_v<T, float>) {
      const MatrixSource source{.data = from + part.begin,
                                .stride = from_stride,
                                .rows = count,
                                .columns = part.end - part.begin};
      transpose_matrix(source, to + part.begin * to_stride, to_stride);
    } else {
      for (int64_t j = part.begin; j < part.end; ++j) {
        for (int64_t i = 0; i < count; ++i) to[j * to_stride + i] = from[i * from_stride + j];
      }
    }
  }

  Nest<2> nest_;
  std::optional<Nest<2>::Loop> across_;  // contiguous in the input
  T* to_;
  const T* from_;
};

}  // namespace tandem::cpu
