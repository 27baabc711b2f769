// Register-tiled matrix multiplication on packed operands: the inner kernel of convolutions and
// linear operators in the plain loops.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem::cpu {

// Weights are packed in panels of this many output columns: [panel][depth][kPanel].
inline constexpr int kPanel = 16;
// A block of the depth (the summed dimension) that is worked off at a time; with one panel pair it
// fills most of a first-level cache.
inline constexpr int kDepthBlock = 256;
// Floats from one packed row to the next. A constant, so that the rows of a tile are addressed from
// one register, and not a power of two, so that they do not compete for the same cache sets.
inline constexpr int kPackedStride = kDepthBlock + 16;
// No kernel has tiles with more rows or panels than these.
inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTilePanels = 4;

// c[rows, panels * kPanel] (+)= a * b, with the epilogue on request.
struct Tile {
  int64_t depth = 0;
  const float* a = nullptr;  // rows at kPackedStride
  const float* b = nullptr;  // first panel
  int64_t panel_stride = 0;  // floats from one panel to the next
  float* c = nullptr;
  const int64_t* c_rows = nullptr;  // per row, where it begins in c
  // Not null: c is not read and begins as bias (panels * kPanel floats).
  const float* bias = nullptr;
  // Not null: added last. Rows as in c_rows.
  const float* residual = nullptr;
  const int64_t* residual_rows = nullptr;
  float low = 0, high = 0;  // the result is clamped to them
};

struct TileGemm {
  int max_rows = 0;
  // Panels that a tile of so many rows had best take.
  int (*panels)(int rows) = nullptr;
  void (*run)(const Tile& tile, int rows, int panels) = nullptr;
};

// Those that this processor can run, best first; and the best one.
const std::vector<TileGemm>& tile_gemms();
const TileGemm& tile_gemm();

}  // namespace tandem::cpu
