#include "lane/cpu/loops/implicit_gemm.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lane/cpu/loops/elementwise.h"
#include "support/multiversion.h"

namespace tandem::cpu {
namespace {

// Rows and depth that are worked off before the next panels, or the next part of the depth: with
// the panels at hand, so much of the input stays in a second-level cache of 512 KiB.
constexpr int64_t kRowBlock = 168;
constexpr int64_t kDepthBlock = 512;
constexpr int64_t kCachedPanels = 24 * 1024;  // bytes
constexpr int64_t kEdgeStride = kMaxTilePanels * kPanel;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Offset of a row of the grid.
int64_t offset_of(const ImplicitGemm& g, int64_t row, const int64_t strides[3]) {
  const int64_t w = row % g.grid[2], nh = row / g.grid[2];
  return nh / g.grid[1] * strides[0] + nh % g.grid[1] * strides[1] + w * strides[2];
}

// Offsets of the rows [first, first + count).
void fill_offsets(const ImplicitGemm& g, const int64_t strides[3], int64_t first, int64_t count,
                  int64_t* offsets) {
  for (int64_t done = 0; done < count;) {
    const int64_t row = first + done;
    const int64_t here = std::min(g.grid[2] - row % g.grid[2], count - done);
    const int64_t begin = offset_of(g, row, strides);
    for (int64_t i = 0; i < here; ++i) offsets[done + i] = begin + i * strides[2];
    done += here;
  }
}

// The innermost dimensions of the grid whose rows follow each other at one distance in the input.
struct Line {
  int64_t rows = 1, stride = 0;
};
Line line_of(const ImplicitGemm& g) {
  Line line;
  for (int i = 2; i >= 0; --i) {
    if (g.grid[i] == 1) continue;
    if (line.rows == 1) line.stride = g.input_strides[i];
    if (line.rows > 1 && g.input_strides[i] != line.rows * line.stride) break;
    line.rows *= g.grid[i];
  }
  return line;
}

// More rows than this at a distance of whole pages compete for the same sets of a first-level
// cache.
constexpr int kRowsOfASet = 9;
constexpr int64_t kSetPeriod = 1024;  // floats

struct TileShape {
  int rows = 1, panels = 1;
};

// The shape of tiles that takes least time. In sixteenths of half a cycle: a step of the depth is
// limited by multiply-adds or by loads, two of either a cycle, and by the time that a sum waits for
// itself; of two shapes alike, the one with fewer loads, those of the weights counting more.
TileShape choose_shape(const Line& line, int64_t panels) {
  const TileGemm& kernel = tile_gemm();
  // A row alone is limited by reading the weights: one stream.
  if (line.rows == 1) return {1, 1};
  const auto cost = [&](int64_t rows, int64_t tile_panels) -> int64_t {
    const int64_t vectors = tile_panels * kernel.vectors;
    return 16 * std::max({rows * vectors, rows + vectors, int64_t{8}}) + 4 * vectors + rows;
  };
  TileShape best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int p = 1; p <= std::min<int64_t>(kernel.max_panels, panels); ++p) {
    int most = kernel.rows_of(p);
    if (line.stride % kSetPeriod == 0) most = std::min(most, kRowsOfASet);
    const int64_t tiles = ceil_div(line.rows, most);
    const int64_t rows = ceil_div(line.rows, tiles);
    const int64_t rest = panels % p;
    const int64_t total = tiles * (panels / p * cost(rows, p) + (rest > 0 ? cost(rows, rest) : 0));
    if (total < least) {
      least = total;
      best = {static_cast<int>(rows), p};
    }
  }
  return best;
}

Part panels_of(const ImplicitGemm& g) {
  return {g.column_begin / kPanel, ceil_div(g.column_end, kPanel)};
}

TileShape choose_shape(const ImplicitGemm& g) {
  const Part panels = panels_of(g);
  return choose_shape(line_of(g), panels.end - panels.begin);
}

constexpr std::array<int64_t, kMaxTileRows> edge_rows() {
  std::array<int64_t, kMaxTileRows> rows{};
  for (int m = 0; m < kMaxTileRows; ++m) rows[m] = m * kEdgeStride;
  return rows;
}

void copy_rows(const float* from, const int64_t* from_rows, float* to, const int64_t* to_rows,
               int rows, int64_t columns) {
  for (int m = 0; m < rows; ++m) {
    std::copy_n(from + from_rows[m], columns, to + to_rows[m]);
  }
}

// One tile of one depth block.
struct TileJob {
  const int64_t* offsets = nullptr;  // per row
  const int64_t* residual_offsets = nullptr;
  int rows = 0, panels = 0;
  int64_t column = 0;
  bool first = false, last = false;  // of the depth
};

// The first columns of the tile are not ours to write: computes aside.
void run_edge_tile(const ImplicitGemm& g, float* output, const TileJob& job, Tile tile,
                   int64_t begin, int64_t end) {
  float edge[kMaxTileRows * kEdgeStride];
  float edge_residual[kMaxTileRows * kEdgeStride];
  static constexpr auto kEdgeRows = edge_rows();
  const int64_t skipped = begin - job.column;
  if (!job.first) {
    copy_rows(output + begin, job.offsets, edge + skipped, kEdgeRows.data(), job.rows, end - begin);
  }
  tile.c = edge;
  tile.c_rows = kEdgeRows.data();
  if (tile.residual != nullptr) {
    copy_rows(g.residual + begin, job.residual_offsets, edge_residual + skipped, kEdgeRows.data(),
              job.rows, end - begin);
    tile.residual = edge_residual;
    tile.residual_rows = kEdgeRows.data();
  }
  tile_gemm().run(tile, job.rows, job.panels);
  copy_rows(edge + skipped, kEdgeRows.data(), output + begin, job.offsets, job.rows, end - begin);
}

void run_tile(const ImplicitGemm& g, float* output, const Clamp& clamp, const TileJob& job,
              Tile tile) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  tile.bias = job.first ? g.bias + job.column : nullptr;
  tile.low = job.last ? clamp.low : -kInfinity;
  tile.high = job.last ? clamp.high : kInfinity;
  if (job.last && g.residual != nullptr) {
    tile.residual = g.residual + job.column;
    tile.residual_rows = job.residual_offsets;
  }
  const int64_t begin = std::max(job.column, g.column_begin);
  const int64_t end = std::min(job.column + job.panels * kPanel, g.column_end);
  if (begin == job.column) {
    tile.c = output + job.column;
    tile.c_rows = job.offsets;
    tile.last_columns = end - (job.column + (job.panels - 1) * kPanel);
    tile_gemm().run(tile, job.rows, job.panels);
  } else {
    run_edge_tile(g, output, job, tile, begin, end);
  }
  if (job.last && !clamp.exact) {
    apply_rows(g.activation, output + begin, job.offsets, job.rows, end - begin);
  }
}

}  // namespace

// Some rows and panels, with what all panels and parts of the depth have in common.
struct GemmRunner::Block {
  struct TileRows {
    int64_t input;  // offset of the first one
    int row, rows;
  };
  int64_t rows;
  Part panels;
  int64_t output[kRowBlock], residual[kRowBlock];  // offsets, per row
  TileRows tiles[kRowBlock];
  int tile_count = 0;

  // Tiles of nearly equal height, which do not leave their line: a short last one would waste most
  // of its registers.
  void cut(const ImplicitGemm& g, int64_t first, const Line& line, int tile_rows) {
    fill_offsets(g, g.output_strides, first, rows, output);
    if (g.residual != nullptr) fill_offsets(g, g.residual_strides, first, rows, residual);
    for (int64_t row = 0; row < rows;) {
      const int64_t left = std::min(line.rows - (first + row) % line.rows, rows - row);
      const int64_t count = ceil_div(left, tile_rows);
      const int64_t begin = offset_of(g, first + row, g.input_strides);
      for (int64_t i = 0; i < count; ++i) {
        const Part part = part_of(left, static_cast<int>(i), static_cast<int>(count));
        tiles[tile_count++] = {begin + part.begin * line.stride, static_cast<int>(row + part.begin),
                               static_cast<int>(part.end - part.begin)};
      }
      row += left;
    }
  }
};

int64_t ImplicitGemm::depth() const {
  int64_t depth = 0;
  for (const Segment& s : segments) depth += s.count;
  return depth;
}

GemmRunner::GemmRunner(ImplicitGemm gemm) : gemm_(std::move(gemm)), depth_(gemm_.depth()) {
  const Line line = line_of(gemm_);
  line_rows_ = line.rows;
  line_stride_ = line.stride;
  const TileShape shape = choose_shape(gemm_);
  tile_rows_ = shape.rows;
  tile_panels_ = shape.panels;
  cut_depth();
}

void GemmRunner::cut_depth() {
  // Rows that stand alone read every weight once: nothing is gained by blocks.
  const int64_t blocks =
      gemm_.rows() == 1 ? 1 : std::max<int64_t>(1, ceil_div(depth_, kDepthBlock));
  int64_t done = 0;
  size_t at = 0;
  int64_t used = 0;  // of segment `at`
  for (int64_t i = 0; i < blocks; ++i) {
    const Part k = part_of(depth_, static_cast<int>(i), static_cast<int>(blocks));
    DepthBlock block{static_cast<int64_t>(segments_.size()), 0, k.begin, k.end - k.begin};
    while (done < k.end) {
      const Segment& s = gemm_.segments[at];
      const int64_t count = std::min(s.count - used, k.end - done);
      segments_.push_back({s.offset + used, count});
      done += count;
      used += count;
      if (used == s.count) used = 0, ++at;
    }
    block.end = static_cast<int64_t>(segments_.size());
    depth_blocks_.push_back(block);
  }
}

Part GemmRunner::panels() const { return panels_of(gemm_); }

void GemmRunner::run_block(const Operands& operands, const Block& block) const {
  const ImplicitGemm& g = gemm_;
  const Clamp clamp = as_clamp(g.activation);
  Tile tile;
  tile.a_stride = line_stride_;
  tile.panel_stride = depth_ * kPanel;
  for (size_t db = 0; db < depth_blocks_.size(); ++db) {
    const DepthBlock& k = depth_blocks_[db];
    tile.segments = segments_.data() + k.begin;
    tile.segment_count = k.end - k.begin;
    TileJob job;
    job.first = db == 0;
    job.last = db + 1 == depth_blocks_.size();
    const auto run = [&](int64_t panel, const Block::TileRows& rows) {
      job.panels = static_cast<int>(std::min<int64_t>(tile_panels_, block.panels.end - panel));
      job.column = panel * kPanel;
      job.rows = rows.rows;
      job.offsets = block.output + rows.row;
      job.residual_offsets = block.residual + rows.row;
      tile.a = operands.input + rows.input;
      tile.b = operands.panels + (panel * depth_ + k.depth_begin) * kPanel;
      run_tile(g, operands.output, clamp, job, tile);
    };
    // What stays in a first-level cache is in the inner loop: all panels, if they are small, so
    // that rows of the output are written whole; else the rows.
    const int64_t panel_bytes =
        (block.panels.end - block.panels.begin) * k.depth * kPanel * int64_t{sizeof(float)};
    if (panel_bytes <= kCachedPanels) {
      for (int t = 0; t < block.tile_count; ++t) {
        for (int64_t j = block.panels.begin; j < block.panels.end; j += tile_panels_) {
          run(j, block.tiles[t]);
        }
      }
    } else {
      for (int64_t j = block.panels.begin; j < block.panels.end; j += tile_panels_) {
        for (int t = 0; t < block.tile_count; ++t) run(j, block.tiles[t]);
      }
    }
  }
}

void GemmRunner::run_part(const Operands& operands, Part rows, Part panels) const {
  if (rows.begin >= rows.end || panels.begin >= panels.end) return;
  Operands own = operands;
  if (own.panels == nullptr) own.panels = gemm_.panels;
  if (own.output == nullptr) own.output = gemm_.output;
  own.input = (own.input == nullptr ? gemm_.input : own.input) + gemm_.input_offset;
  const int64_t count = rows.end - rows.begin;
  // Blocks of whole lines where lines are short, of whole tiles where they are long.
  const int64_t unit = line_rows_ < kRowBlock / 2 ? line_rows_ : tile_rows_;
  const int64_t blocks = ceil_div(count, kRowBlock / unit * unit);
  for (int64_t i = 0; i < blocks; ++i) {
    const Part part = part_of(count, static_cast<int>(i), static_cast<int>(blocks), unit);
    if (part.begin == part.end) continue;
    Block block;
    block.rows = part.end - part.begin;
    block.panels = panels;
    block.cut(gemm_, rows.begin + part.begin, {line_rows_, line_stride_}, tile_rows_);
    run_block(own, block);
  }
}

void GemmRunner::run(const float* input, int threads) const {
  const Operands operands{.input = input};
  const Part all_panels = panels();
  if (threads == 1) return run_part(operands, {0, gemm_.rows()}, all_panels);
  // Threads that take rows share the weights, those that take panels the input: cut the one that is
  // longer in tiles.
  const int64_t panel_groups = all_panels.end - all_panels.begin;
  const int64_t row_tiles = ceil_div(gemm_.rows(), tile_rows_);
  const bool cut_rows = row_tiles >= std::min<int64_t>(2 * threads, panel_groups);
  parallel(threads, [&](int index, int parts) {
    Part row_part{0, gemm_.rows()}, panel_part = all_panels;
    if (cut_rows) {
      const int64_t unit = row_tiles >= 2 * parts ? tile_rows_ : 1;
      row_part = part_of(gemm_.rows(), index, parts, unit);
    } else {
      const Part part = part_of(panel_groups, index, parts);
      panel_part = {all_panels.begin + part.begin, all_panels.begin + part.end};
    }
    run_part(operands, row_part, panel_part);
  });
}

int64_t panel_floats(int64_t depth, int64_t columns) {
  return ceil_div(columns, kPanel) * kPanel * depth;
}

TileCount count_tiles(const ImplicitGemm& g) {
  const TileShape shape = choose_shape(g);
  const Part range = panels_of(g);
  const int64_t panels = range.end - range.begin;
  const int64_t line = line_of(g).rows;
  TileCount count;
  count.rows = shape.rows;
  count.panels = shape.panels;
  count.tiles = g.rows() / line * ceil_div(line, shape.rows) * ceil_div(panels, shape.panels);
  count.multiply_adds = static_cast<double>(g.rows()) * panels * kPanel * g.depth();
  return count;
}

}  // namespace tandem::cpu
