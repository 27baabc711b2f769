// Convolution as a matrix product whose left operand is never stored: tiles read it from the input,
// a run per tap of the kernel window. Linear operators, transposed convolutions and products of two
// matrices are special cases. Any strides of input, output and residual.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/operator.h"
#include "lane/cpu/kernel.h"
#include "lane/cpu/loops/tile_gemm.h"

namespace tandem::cpu {

// Row (n, h, w) of a grid of rows: sum over the segments s and k < s.count, with the weights in the
// order of the sum, of
//   input[input_offset + (n, h, w) * input_strides + s.offset + k] * weight[...][column]
struct ImplicitGemm {
  const float* input = nullptr;  // null: given at each run
  int64_t input_offset = 0;
  int64_t input_strides[3] = {0, 0, 0};  // from row to row of the grid
  // In the order of the packed weights. May be empty: the result is the bias.
  std::vector<Segment> segments;

  int64_t grid[3] = {1, 1, 1};  // n, h, w
  float* output = nullptr;      // column 0 of row (0, 0, 0)
  int64_t output_strides[3] = {0, 0, 0};
  const float* residual = nullptr;  // as output, or null
  int64_t residual_strides[3] = {0, 0, 0};

  const float* panels = nullptr;  // [panel][depth][kPanel], from column 0
  const float* bias = nullptr;    // panels * kPanel floats, from column 0
  int64_t column_begin = 0, column_end = 0;
  Activation activation;

  int64_t rows() const { return grid[0] * grid[1] * grid[2]; }
  int64_t depth() const;
  bool empty() const { return column_begin >= column_end || rows() == 0; }
};

// A product made ready: the depth cut into blocks, the shape of tiles chosen.
class GemmRunner {
 public:
  explicit GemmRunner(ImplicitGemm gemm);

  // On a team of `threads`.
  void run(const float* input, int threads) const;
  // On the calling thread, with other operands than the product's own where they are not null.
  struct Operands {
    const float* input = nullptr;
    const float* panels = nullptr;
    float* output = nullptr;
  };
  void run_part(const Operands& operands, Part rows, Part panels) const;

  const ImplicitGemm& gemm() const { return gemm_; }
  Part panels() const;

 private:
  // Segments [begin, end) of segments_ sum up part of the depth.
  struct DepthBlock {
    int64_t begin, end;
    int64_t depth_begin, depth;
  };
  struct Block;
  void cut_depth();
  void run_block(const Operands& operands, const Block& block) const;

  ImplicitGemm gemm_;
  int64_t depth_ = 0;
  std::vector<Segment> segments_;
  std::vector<DepthBlock> depth_blocks_;
  int64_t line_rows_ = 1, line_stride_ = 0;  // rows that follow each other at one distance
  int tile_rows_ = 1, tile_panels_ = 1;
};

// Of the tiles that a runner works off.
struct TileCount {
  int rows = 0, panels = 0;  // of a tile, at most
  int64_t tiles = 0;
  double multiply_adds = 0;  // padding included
};
TileCount count_tiles(const ImplicitGemm& gemm);

// Packs weights of `columns` columns into panels; weight(depth_index, column) gives them. Columns
// beyond the end are zero.
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
int64_t panel_floats(int64_t depth, int64_t columns);

}  // namespace tandem::cpu
