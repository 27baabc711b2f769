#include "lane/cpu/loops/implicit_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "lane/cpu/kernel.h"
#include "lane/cpu/loops/elementwise.h"
#include "lane/cpu/loops/tile_gemm.h"
#include "lane/cpu/multiversion.h"

namespace tandem::cpu {
namespace {

// Rows packed at a time: with a depth block this stays in a second-level cache of 256 KiB.
constexpr int64_t kRowBlock = 168;
constexpr int64_t kEdgeStride = kMaxTilePanels * kPanel;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A position in the grid of rows.
struct Cursor {
  int64_t n, h, w;

  Cursor(const ImplicitGemm& g, int64_t row)
      : n(row / (g.grid[1] * g.grid[2])), h(row / g.grid[2] % g.grid[1]), w(row % g.grid[2]) {}
  void next(const ImplicitGemm& g) {
    if (++w < g.grid[2]) return;
    w = 0;
    if (++h < g.grid[1]) return;
    h = 0;
    ++n;
  }
  int64_t offset(const int64_t strides[3]) const {
    return n * strides[0] + h * strides[1] + w * strides[2];
  }
};

// A run of a depth block within one tap.
struct Segment {
  Tap tap;
  int64_t offset;  // in the input, from the channels under tap (0, 0)
  int64_t count;
};

std::vector<Segment> segments_of(const ImplicitGemm& g, int64_t begin, int64_t end) {
  std::vector<Segment> segments;
  for (int64_t k = begin; k < end;) {
    const int64_t tap = k / g.channels;
    const int64_t channel = k % g.channels;
    const int64_t count = std::min(g.channels - channel, end - k);
    const Tap& t = g.taps[tap];
    segments.push_back({t, t.y * g.input_strides[1] + t.x * g.input_strides[2] + channel, count});
    k += count;
  }
  return segments;
}

// Short copies are frequent here (a few channels), and a call of memcpy each would cost as much as
// the copying.
TANDEM_INLINE void copy_floats(float* to, const float* from, int64_t count) {
  constexpr int64_t kGroup = 16;
  if (count < kGroup) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  int64_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    std::memcpy(to + i, from + i, kGroup * sizeof(float));
  }
  // The rest, and some of the last group once more.
  if (i < count) std::memcpy(to + count - kGroup, from + count - kGroup, kGroup * sizeof(float));
}

TANDEM_MULTIVERSION void pack_rows(const ImplicitGemm& g, const float* input,
                                   const std::vector<Segment>& segments, int64_t first,
                                   int64_t rows, float* packed) {
  Cursor cursor(g, first);
  for (int64_t m = 0; m < rows; ++m, cursor.next(g), packed += kPackedStride) {
    const int64_t y = g.origin[0] + g.step[0] * cursor.h;
    const int64_t x = g.origin[1] + g.step[1] * cursor.w;
    const float* pixel = input + g.channel_offset + cursor.n * g.input_strides[0] +
                         y * g.input_strides[1] + x * g.input_strides[2];
    float* to = packed;
    for (const Segment& s : segments) {
      const int64_t in_y = y + s.tap.y, in_x = x + s.tap.x;
      if (g.input_has_slack) {
        // Never outside. Whole groups of 16 floats: those behind the end are overwritten by the
        // next segment, or lie in the padding of the packed row.
        for (int64_t i = 0; i < s.count; i += 16) {
          std::memcpy(to + i, pixel + s.offset + i, 16 * sizeof(float));
        }
      } else if (in_y >= 0 && in_y < g.input_size[0] && in_x >= 0 && in_x < g.input_size[1]) {
        copy_floats(to, pixel + s.offset, s.count);
      } else {
        std::memset(to, 0, s.count * sizeof(float));
      }
      to += s.count;
    }
  }
}

// Where the rows of a block begin in the output and in the residual.
struct RowOffsets {
  int64_t output[kRowBlock];
  int64_t residual[kRowBlock];

  RowOffsets(const ImplicitGemm& g, int64_t first, int64_t rows) {
    Cursor cursor(g, first);
    for (int64_t m = 0; m < rows; ++m, cursor.next(g)) {
      output[m] = cursor.offset(g.output_strides);
      residual[m] = cursor.offset(g.residual_strides);
    }
  }
};

// One tile of one depth block.
struct TileJob {
  const int64_t* offsets = nullptr;
  const int64_t* residual_offsets = nullptr;
  int rows = 0;
  bool first = false, last = false;  // of the depth
};

constexpr std::array<int64_t, kMaxTileRows> edge_rows() {
  std::array<int64_t, kMaxTileRows> rows{};
  for (int m = 0; m < kMaxTileRows; ++m) rows[m] = m * kEdgeStride;
  return rows;
}

TANDEM_MULTIVERSION void copy_rows(const float* from, const int64_t* from_rows, float* to,
                                   const int64_t* to_rows, int rows, int64_t columns) {
  for (int m = 0; m < rows; ++m) copy_floats(to + to_rows[m], from + from_rows[m], columns);
}

// Computes the columns [column, column + panels * kPanel) of the rows in `job`, as far as they lie
// within the slice.
void run_tile(const ImplicitGemm& g, const TileGemm& kernel, const Clamp& clamp, const TileJob& job,
              Tile tile, int64_t column, int panels) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  tile.bias = job.first ? g.bias + column : nullptr;
  tile.low = job.last ? clamp.low : -kInfinity;
  tile.high = job.last ? clamp.high : kInfinity;
  const bool with_residual = job.last && g.residual != nullptr;
  const int64_t begin = std::max(column, g.column_begin);
  const int64_t end = std::min(column + panels * kPanel, g.column_end);

  if (end - begin == panels * kPanel) {
    tile.c = g.output + column;
    tile.c_rows = job.offsets;
    if (with_residual) {
      tile.residual = g.residual + column;
      tile.residual_rows = job.residual_offsets;
    }
    kernel.run(tile, job.rows, panels);
  } else {
    // A part of the columns is not ours to write: compute aside. Columns of the buffer that are not
    // ours hold anything.
    float edge[kMaxTileRows * kEdgeStride];
    float edge_residual[kMaxTileRows * kEdgeStride];
    static constexpr auto kEdgeRows = edge_rows();
    float* const own = edge + (begin - column);
    if (!job.first) {
      copy_rows(g.output + begin, job.offsets, own, kEdgeRows.data(), job.rows, end - begin);
    }
    tile.c = edge;
    tile.c_rows = kEdgeRows.data();
    if (with_residual) {
      copy_rows(g.residual + begin, job.residual_offsets, edge_residual + (begin - column),
                kEdgeRows.data(), job.rows, end - begin);
      tile.residual = edge_residual;
      tile.residual_rows = kEdgeRows.data();
    }
    kernel.run(tile, job.rows, panels);
    copy_rows(own, kEdgeRows.data(), g.output + begin, job.offsets, job.rows, end - begin);
  }
  if (job.last && !clamp.exact) {
    apply_rows(g.activation, g.output + begin, job.offsets, job.rows, end - begin);
  }
}

// The rows [row_begin, row_end) and the panels [panel_begin, panel_end), on one thread.
void run_part(const ImplicitGemm& g, const float* input, Part row_range, Part panel_range,
              float* packed) {
  const TileGemm& kernel = tile_gemm();
  const Clamp clamp = as_clamp(g.activation);
  const int64_t depth = static_cast<int64_t>(g.taps.size()) * g.channels;
  const int64_t depth_blocks = ceil_div(depth, kDepthBlock);
  const int64_t rows = row_range.end - row_range.begin;
  const int64_t row_blocks = ceil_div(rows, kRowBlock);

  for (int64_t rb = 0; rb < row_blocks; ++rb) {
    const Part block = part_of(rows, rb, row_blocks, kernel.max_rows);
    const int64_t block_rows = block.end - block.begin;
    if (block_rows == 0) continue;
    const RowOffsets offsets(g, row_range.begin + block.begin, block_rows);
    const int64_t tiles = ceil_div(block_rows, kernel.max_rows);
    const int step = kernel.panels(ceil_div(block_rows, tiles));
    for (int64_t db = 0; db < depth_blocks; ++db) {
      const Part k = part_of(depth, db, depth_blocks);
      pack_rows(g, input, segments_of(g, k.begin, k.end), row_range.begin + block.begin, block_rows,
                packed);
      TileJob job;
      job.first = db == 0;
      job.last = db + 1 == depth_blocks;
      for (int64_t panel = panel_range.begin; panel < panel_range.end; panel += step) {
        const int panels = std::min<int64_t>(step, panel_range.end - panel);
        int64_t row = 0;
        for (int64_t t = 0; t < tiles; ++t, row += job.rows) {
          // Tiles of nearly equal height: a short last one would waste most of its registers.
          job.rows = static_cast<int>(block_rows / tiles + (t < block_rows % tiles ? 1 : 0));
          job.offsets = offsets.output + row;
          job.residual_offsets = offsets.residual + row;
          Tile tile;
          tile.depth = k.end - k.begin;
          tile.a = packed + row * kPackedStride;
          tile.b = g.panels + (panel * depth + k.begin) * kPanel;
          tile.panel_stride = depth * kPanel;
          run_tile(g, kernel, clamp, job, tile, panel * kPanel, panels);
        }
      }
    }
  }
}

int64_t rows_of(const ImplicitGemm& g) { return g.grid[0] * g.grid[1] * g.grid[2]; }

}  // namespace

int64_t panel_floats(int64_t depth, int64_t columns) {
  return ceil_div(columns, kPanel) * kPanel * depth;
}

int64_t scratch_floats(const ImplicitGemm& g, int threads) {
  return threads * std::min(kRowBlock, rows_of(g)) * kPackedStride;
}

void run(const ImplicitGemm& g, const float* input, int threads, float* scratch) {
  const int64_t rows = rows_of(g);
  const Part panels{g.column_begin / kPanel, ceil_div(g.column_end, kPanel)};
  const int64_t per_thread = scratch_floats(g, 1);
  // Rows share the weights, panels the packing of rows: cut the one that is longer in tiles.
  const bool cut_rows =
      ceil_div(rows, kMaxTileRows) >= std::min<int64_t>(2 * threads, panels.end - panels.begin);
  parallel(threads, [&](int index, int parts) {
    Part row_part{0, rows}, panel_part = panels;
    if (cut_rows) {
      row_part = part_of(rows, index, parts, rows >= 2 * parts * kMaxTileRows ? kMaxTileRows : 1);
    } else {
      const Part part = part_of(panels.end - panels.begin, index, parts);
      panel_part = {panels.begin + part.begin, panels.begin + part.end};
    }
    if (row_part.begin == row_part.end || panel_part.begin == panel_part.end) return;
    run_part(g, input, row_part, panel_part, scratch + index * per_thread);
  });
}

TileCount count_tiles(const ImplicitGemm& g) {
  const int64_t rows = rows_of(g);
  const int64_t panels = ceil_div(g.column_end, kPanel) - g.column_begin / kPanel;
  const int64_t tiles = ceil_div(rows, tile_gemm().max_rows) * panels;
  return {tiles, static_cast<double>(rows) * panels * kPanel * g.taps.size() * g.channels};
}

}  // namespace tandem::cpu
