// Register-tiled matrix multiplication: the inner kernel of convolutions, linear operators and
// matrix products in the plain loops. The left operand is read where it lies; the right one is
// packed.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem::cpu {

// The right operand is packed in panels of this many columns: [panel][depth][kPanel].
inline constexpr int kPanel = 16;
// No kernel has tiles with more rows or panels than these.
inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTilePanels = 4;

// A run of the depth (the summed dimension) that is contiguous in every row of the left operand.
struct Segment {
  int64_t offset;  // from where the row begins
  int64_t count;
};

// c[rows, columns] (+)= a * b, with the epilogue on request.
struct Tile {
  const Segment* segments = nullptr;  // the depth, in order; it is contiguous in b
  int64_t segment_count = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;      // floats from row to row
  const float* b = nullptr;  // first panel
  int64_t panel_stride = 0;  // floats from one panel to the next
  float* c = nullptr;
  const int64_t* c_rows = nullptr;  // per row, where it begins in c
  // Columns of the last panel that exist in c and the residual; what lies behind is not touched.
  int64_t last_columns = kPanel;
  // Not null: c is not read and begins as bias (panels * kPanel floats).
  const float* bias = nullptr;
  // Not null: added last. Rows as in c_rows.
  const float* residual = nullptr;
  const int64_t* residual_rows = nullptr;
  float low = 0, high = 0;  // the result is clamped to them
};

struct TileGemm {
  int max_rows = 0, max_panels = 0;
  int registers = 0;  // for sums and the right operand
  int vectors = 0;    // registers that a panel's row fills
  void (*run)(const Tile& tile, int rows, int panels) = nullptr;

  int rows_of(int panels) const;  // the most rows of a tile with so many panels; 0: none
};

// Those that this processor can run, best first; and the best one.
const std::vector<TileGemm>& tile_gemms();
const TileGemm& tile_gemm();

}  // namespace tandem::cpu
