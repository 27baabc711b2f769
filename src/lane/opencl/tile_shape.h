// The rule that picks tile variants of the matrix kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tandem::opencl {

inline constexpr int64_t kPanel = 16;  // output channels in a panel of weights

// Sums that one work-item keeps in registers, and how much of the summed index is staged at a time.
struct TileShape {
  int rows;
  int panels;
  int k_block;
  double rate;  // measured, relative to the fastest shape where none has padding

  // Between staged rows. No multiple of a page, lest they compete for the same cache lines.
  int64_t pitch() const { return k_block + 16; }
  // Local memory for the sums of `tiles` tiles between K blocks.
  size_t sums_bytes(int64_t tiles) const {
    return sizeof(float) * static_cast<size_t>(tiles * rows * panels * kPanel);
  }
};

// Panels times rows, with the padding to whole tiles, as if all shapes were equally fast.
double tile_cost(const TileShape& shape, int64_t rows, int64_t panels);

// For single-item groups. `same_input`: how many neighbouring panels need the same input channels.
TileShape choose_tile(int64_t rows, int64_t panels, int64_t same_input);
// For the products of a Winograd convolution, whose rows are patches; a shape of at most
// `most_rows` rows, none if that is less than two.
std::optional<TileShape> choose_winograd_tile(int64_t rows, int64_t panels, int64_t most_rows);

// How many tiles of rows and how many panels one work-group takes: several, as weights are then
// read once for all of them; but not so many that compute units go without.
struct TileCut {
  int64_t tiles_per_group;
  int64_t panels_per_group;  // a multiple of the shape's panels
};
TileCut cut_tiles(const TileShape& shape, int64_t rows, int64_t panels, int64_t same_input,
                  int compute_units);

// For groups of many work-items, where channels lie apart or groups are narrower than a tile: x
// times four channels, y times `rows` rows.
struct ItemTile {
  int x;
  int y;
  int rows;
};
ItemTile choose_item_tile(int64_t channels);

// For groups of many work-items: what a group of kernels/item_product.cl computes.
struct GroupTile {
  int items_x, items_y;
  int row_quads, column_quads;  // of each work-item
  int slices;                   // of the summed index

  int rows() const { return items_y * row_quads * 4; }
  int columns() const { return items_x * column_quads * 4; }
  int items() const { return items_x * items_y * slices; }
};
// The largest tile that leaves every compute unit a group or two; the smallest one if none does.
// `same_input`: how many neighbouring columns need the same input; none if no tile fits those.
std::optional<GroupTile> choose_group_tile(int64_t rows, int64_t columns, int64_t same_input,
                                           int64_t matrices, int compute_units);

}  // namespace tandem::opencl
