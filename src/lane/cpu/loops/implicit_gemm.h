// Convolution as a matrix product whose left operand is never stored whole: blocks of it are packed
// from the input (im2col on the fly) while they are in cache. Linear operators and transposed
// convolutions are special cases. Any strides of input, output and residual.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/operator.h"

namespace tandem::cpu {

// A displacement in the input, in elements of height and width.
struct Tap {
  int64_t y, x;
};

// Output row number (n, h, w) of a grid sums, over taps and channels,
//   input(n, origin + step * (h, w) + tap, channel) * weight[tap][channel][column]
// where input is zero outside of its extents.
struct ImplicitGemm {
  const float* input = nullptr;          // channels are contiguous
  int64_t channel_offset = 0;            // of the first channel summed (a group's)
  int64_t input_strides[3] = {0, 0, 0};  // n, h, w
  int64_t input_size[2] = {1, 1};        // h, w
  int64_t origin[2] = {0, 0};
  int64_t step[2] = {1, 1};
  std::vector<Tap> taps;
  int64_t channels = 0;
  // True: no tap is ever outside, and up to 15 floats behind the channels of a tap may be read.
  bool input_has_slack = false;

  int64_t grid[3] = {1, 1, 1};
  float* output = nullptr;  // column 0 of grid element (0, 0, 0)
  int64_t output_strides[3] = {0, 0, 0};
  const float* residual = nullptr;  // as output, or null
  int64_t residual_strides[3] = {0, 0, 0};

  const float* panels = nullptr;  // [panel][taps * channels][kPanel], from column 0
  const float* bias = nullptr;    // panels * kPanel floats, from column 0
  int64_t column_begin = 0, column_end = 0;
  Activation activation;
};

// Floats of scratch that run() needs.
int64_t scratch_floats(const ImplicitGemm& gemm, int threads);
// `input` stands in for gemm.input (a copy of it, made just before).
void run(const ImplicitGemm& gemm, const float* input, int threads, float* scratch);

// Tiles that run() works off, and the multiply-adds they do, padding included.
struct TileCount {
  int64_t tiles;
  double multiply_adds;
};
TileCount count_tiles(const ImplicitGemm& gemm);

// Packs weights of `columns` columns into panels; weight(depth_index, column) gives them. Columns
// beyond the end are zero.
template <typename Weight>
void pack_panels(int64_t depth, int64_t columns, Weight weight, float* to);
int64_t panel_floats(int64_t depth, int64_t columns);

}  // namespace tandem::cpu

#include "lane/cpu/loops/tile_gemm.h"

namespace tandem::cpu {

template <typename Weight>
void pack_panels(int64_t depth, int64_t columns, Weight weight, float* to) {
  for (int64_t first = 0; first < columns; first += kPanel) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = first; j < first + kPanel; ++j) {
        *to++ = j < columns ? weight(k, j) : 0.0f;
      }
    }
  }
}

}  // namespace tandem::cpu
