#include "lane/opencl/tile_shape.h"

#include <array>

namespace tandem::opencl {
namespace {

// 24 to 28 sums of one register each leave room for the weights and one input element among the 32
// vector registers of AVX-512, and are enough to hide the latency of multiply-adds anywhere. The
// smaller ones are for few rows, where reading the weights is what takes time.
constexpr std::array<TileShape, 8> kShapes = {{
    {14, 2, 512, 1.0},
    {12, 2, 512, 0.99},
    {10, 2, 512, 0.98},
    {8, 3, 512, 0.98},
    {24, 1, 256, 0.92},
    {4, 4, 512, 0.85},
    {2, 4, 1024, 0.6},
    {1, 4, 1024, 0.4},
}};

// Many products over few rows each: padding weighs more, and the sums of all points should stay in
// the first-level cache.
constexpr std::array<TileShape, 7> kWinogradShapes = {{
    {10, 2, 512, 1.0},
    {8, 2, 512, 0.98},
    {14, 2, 512, 0.95},
    {8, 3, 512, 0.92},
    {16, 1, 512, 0.9},
    {4, 4, 512, 0.85},
    {2, 4, 512, 0.6},
}};

// From the one that reads each operand least often, to those with work for most groups. The last is
// for few rows, where weights are read once, by as many groups as there are. None
// takes more local memory than the 32 KB that every device has.
constexpr std::array<GroupTile, 4> kGroupTiles = {{
    {16, 16, 2, 2, 1},
    {16, 16, 1, 1, 1},
    {8, 8, 1, 1, 4},
    {16, 2, 1, 1, 4},
}};
constexpr int64_t kFewRows = 8;
constexpr int64_t kTilesPerUnit = 2;

// With more, the staged rows of a group no longer fit the second-level cache beside the weights.
constexpr int64_t kTilesPerGroup = 4;
constexpr int64_t kPanelsPerGroup = 16;
// Groups per compute unit that keep the last ones to finish from being felt.
constexpr int64_t kGroupsPerUnit = 4;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <size_t count, typename Predicate>
std::optional<TileShape> cheapest(const std::array<TileShape, count>& shapes, int64_t rows,
                                  int64_t panels, Predicate allowed) {
  std::optional<TileShape> best;
  double best_cost = 0;
  for (const TileShape& shape : shapes) {
    if (!allowed(shape)) continue;
    const double cost = tile_cost(shape, rows, panels);
    if (!best || cost < best_cost) {
      best = shape;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace

double tile_cost(const TileShape& shape, int64_t rows, int64_t panels) {
  return static_cast<double>(divide_up(rows, shape.rows) * shape.rows *
                             divide_up(panels, shape.panels) * shape.panels) /
         shape.rate;
}

TileShape choose_tile(int64_t rows, int64_t panels, int64_t same_input) {
  // Tiles must not straddle panels with different inputs.
  return *cheapest(kShapes, rows, panels, [&](const TileShape& shape) {
    return same_input >= panels || same_input % shape.panels == 0;
  });
}

std::optional<TileShape> choose_winograd_tile(int64_t rows, int64_t panels, int64_t most_rows) {
  return cheapest(kWinogradShapes, rows, panels,
                  [most_rows](const TileShape& shape) { return shape.rows <= most_rows; });
}

TileCut cut_tiles(const TileShape& shape, int64_t rows, int64_t panels, int64_t same_input,
                  int compute_units) {
  const int64_t tiles = divide_up(rows, shape.rows);
  const int64_t sets = divide_up(std::min(panels, same_input), shape.panels);
  int64_t set_share = std::min(sets, kPanelsPerGroup / shape.panels);
  if (same_input < panels) {
    // Groups must start where inputs change.
    while (sets % set_share != 0) --set_share;
  }
  // Rows that are few are not cut: weights, which are many then, are read once.
  int64_t tile_share = tiles <= 2 * kTilesPerGroup ? tiles : kTilesPerGroup;
  const auto groups = [&] {
    return divide_up(tiles, tile_share) * divide_up(panels, set_share * shape.panels);
  };
  if (compute_units > 1) {
    while (tile_share > 1 && groups() < kGroupsPerUnit * compute_units) tile_share /= 2;
    while (set_share > 1 && set_share % 2 == 0 && groups() < kGroupsPerUnit * compute_units) {
      set_share /= 2;
    }
  }
  // Equal shares, so that no group is left with a remainder.
  tile_share = divide_up(tiles, divide_up(tiles, tile_share));
  return {tile_share, set_share * shape.panels};
}

ItemTile choose_item_tile(int64_t channels) {
  return channels <= 32 ? ItemTile{8, 16, 4} : ItemTile{16, 8, 4};
}

std::optional<GroupTile> choose_group_tile(int64_t rows, int64_t columns, int64_t same_input,
                                           int64_t matrices, int compute_units) {
  std::optional<GroupTile> chosen;
  for (const GroupTile& tile : kGroupTiles) {
    const bool straddles = same_input < columns && same_input % tile.columns() != 0;
    if (straddles || (tile.rows() <= kFewRows) != (rows <= kFewRows)) continue;
    chosen = tile;
    const int64_t groups =
        matrices * divide_up(rows, tile.rows()) * divide_up(columns, tile.columns());
    if (groups >= kTilesPerUnit * compute_units) break;
  }
  return chosen;
}

}  // namespace tandem::opencl
