#include "lane/cpu/loops/pack.h"

#include <algorithm>
#include <cstring>

#include "lane/cpu/loops/tile_gemm.h"
#include "support/multiversion.h"

namespace tandem::cpu {
namespace {

typedef float Vector __attribute__((vector_size(kPanel * sizeof(float)), aligned(4), may_alias));

// One of the four rounds of a transposition: rows i and i + 8 are interleaved.
TANDEM_INLINE void exchange(const Vector (&from)[kPanel], Vector (&to)[kPanel]) {
#pragma GCC unroll 8
  for (int i = 0; i < kPanel / 2; ++i) {
    const Vector &a = from[i], &b = from[i + kPanel / 2];
    to[2 * i] =
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    to[2 * i + 1] =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

TANDEM_INLINE void transpose_block(const float* from, int64_t stride, float factor, float* to,
                                   int64_t to_stride = kPanel) {
  Vector r[kPanel], s[kPanel];
#pragma GCC unroll 16
  for (int i = 0; i < kPanel; ++i) {
    r[i] = *reinterpret_cast<const Vector*>(from + i * stride) * factor;
  }
  exchange(r, s);
  exchange(s, r);
  exchange(r, s);
  exchange(s, r);
#pragma GCC unroll 16
  for (int i = 0; i < kPanel; ++i) *reinterpret_cast<Vector*>(to + i * to_stride) = r[i];
}

// One panel out of `columns` rows of the source; `depth` of their elements.
TANDEM_INLINE void pack_transposed_panel(const MatrixSource& s, const float* from, int64_t columns,
                                         float* to) {
  int64_t k = 0;
  if (columns == kPanel) {
    for (; k + kPanel <= s.columns; k += kPanel) {
      transpose_block(from + k, s.stride, s.factor, to + k * kPanel);
    }
  } else {
    for (; k + kPanel <= s.columns; k += kPanel) {
      float block[kPanel * kPanel];
      std::memset(block, 0, sizeof block);
      for (int64_t j = 0; j < columns; ++j) {
        std::memcpy(block + j * kPanel, from + j * s.stride + k, kPanel * sizeof(float));
      }
      transpose_block(block, kPanel, s.factor, to + k * kPanel);
    }
  }
  for (; k < s.columns; ++k) {
    for (int64_t j = 0; j < kPanel; ++j) {
      to[k * kPanel + j] = j < columns ? from[j * s.stride + k] * s.factor : 0.0f;
    }
  }
}

TANDEM_INLINE void pack_plain_panel(const MatrixSource& s, const float* from, int64_t columns,
                                    float* to) {
  for (int64_t k = 0; k < s.rows; ++k, from += s.stride, to += kPanel) {
    if (columns == kPanel) {
      *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Vector*>(from) * s.factor;
      continue;
    }
    for (int64_t j = 0; j < columns; ++j) to[j] = from[j] * s.factor;
    for (int64_t j = columns; j < kPanel; ++j) to[j] = 0.0f;
  }
}

}  // namespace

TANDEM_MULTIVERSION void pack_matrix(const MatrixSource& s, float* to) {
  const int64_t columns = s.transposed ? s.rows : s.columns;
  const int64_t depth = s.transposed ? s.columns : s.rows;
  for (int64_t j = 0; j < columns; j += kPanel, to += depth * kPanel) {
    const int64_t here = std::min<int64_t>(kPanel, columns - j);
    if (s.transposed) {
      pack_transposed_panel(s, s.data + j * s.stride, here, to);
    } else {
      pack_plain_panel(s, s.data + j, here, to);
    }
  }
}

TANDEM_MULTIVERSION void transpose_matrix(const MatrixSource& s, float* to, int64_t to_stride) {
  for (int64_t j = 0; j < s.columns; j += kPanel) {
    const int64_t columns = std::min<int64_t>(kPanel, s.columns - j);
    for (int64_t i = 0; i < s.rows; i += kPanel) {
      const int64_t rows = std::min<int64_t>(kPanel, s.rows - i);
      const float* from = s.data + i * s.stride + j;
      float* target = to + j * to_stride + i;
      if (rows == kPanel && columns == kPanel) {
        transpose_block(from, s.stride, s.factor, target, to_stride);
        continue;
      }
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          target[c * to_stride + r] = from[r * s.stride + c] * s.factor;
        }
      }
    }
  }
}

}  // namespace tandem::cpu
