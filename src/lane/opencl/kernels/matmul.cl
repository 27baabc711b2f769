// Batched products of two activations on devices with one work-item to a group. Build options as
// for tile.cl; B_DEPTH_FIRST: columns of b do not lie one apart.

// As tile.cl, with b brought into panels as it is needed.
void stage_a(__global const float* from, long depth_stride, __local float* to, int depth) {
  int k = 0;
  if (depth_stride == 1) {
    for (; k + 16 <= depth; k += 16) vstore16(vload16(0, from + k), 0, to + k);
  }
  for (; k < depth; ++k) to[k] = from[k * depth_stride];
}

#if B_DEPTH_FIRST
// Elements of a and b in turn, from the first and from the second half of both.
float16 interleave_low(float16 a, float16 b) {
  return (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6,
                   b.s6, a.s7, b.s7);
}
float16 interleave_high(float16 a, float16 b) {
  return (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se,
                   b.se, a.sf, b.sf);
}

// Interleaving rows i and i + 8 of 16 moves one bit of an element's row number to the front of its
// column number, and one of the column's to the row's: four times, and they have changed places.
void transpose(float16* rows) {
#pragma unroll
  for (int round = 0; round < 4; ++round) {
    float16 mixed[16];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      mixed[2 * i] = interleave_low(rows[i], rows[i + 8]);
      mixed[2 * i + 1] = interleave_high(rows[i], rows[i + 8]);
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) rows[i] = mixed[i];
  }
}
#endif

void stage_b(__global const float* from, long depth_stride, long column_stride, __local float* to,
             int depth, int columns) {
#if B_DEPTH_FIRST
  int begin = 0;
  if (depth_stride == 1) {
    for (; begin + 16 <= depth; begin += 16) {
      float16 block[16];
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        block[j] = j < columns ? vload16(0, from + j * column_stride + begin) : (float16)0.0f;
      }
      transpose(block);
#pragma unroll
      for (int k = 0; k < 16; ++k) vstore16(block[k], begin + k, to);
    }
  }
  for (int j = 0; j < columns; ++j) {
    __global const float* column = from + j * column_stride;
    for (int k = begin; k < depth; ++k) to[k * PANEL + j] = column[k * depth_stride];
  }
#else
  if (columns == PANEL) {
    for (int k = 0; k < depth; ++k) vstore16(vload16(0, from + k * depth_stride), k, to);
  } else {
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < columns; ++j) to[k * PANEL + j] = from[k * depth_stride + j];
    }
  }
#endif
}

// staged: tiles_per_group * TILE_ROWS * TILE_PITCH floats. panels: TILE_PANELS * K_BLOCK * PANEL
// floats, columns past the last one are never stored. sums: as for tile.cl.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void matmul(
    __global const float* a, __global const float* b, __global float* c, __local float* staged,
    __local float* panels, __local float16* sums, struct MatMulArguments p) {
  const int first_row = get_group_id(0) * (TILE_ROWS * p.tiles_per_group);
  const int group_rows = min(p.rows - first_row, TILE_ROWS * p.tiles_per_group);
  const int begin = get_group_id(1) * p.panels_per_group;
  const int end = min((p.columns + PANEL - 1) / PANEL, begin + p.panels_per_group);
  a += batch_offset(get_group_id(2), p.batch, p.a_batch) + first_row * p.a_row;
  b += batch_offset(get_group_id(2), p.batch, p.b_batch);
  c += batch_offset(get_group_id(2), p.batch, p.c_batch) + first_row * p.c_row;
  const bool one_block = p.depth <= K_BLOCK;

  for (int block = 0; block < p.depth; block += K_BLOCK) {
    const int block_depth = min(K_BLOCK, p.depth - block);
    const bool first = block == 0;
    const bool last = block + block_depth == p.depth;
    for (int m = 0; m < group_rows; ++m) {
      stage_a(a + m * p.a_row + block * p.a_depth, p.a_depth, staged + m * TILE_PITCH, block_depth);
    }
    for (int panel = begin; panel < end; panel += TILE_PANELS) {
      for (int i = 0; i < TILE_PANELS && panel + i < end; ++i) {
        const int column = (panel + i) * PANEL;
        stage_b(b + block * p.b_depth + column * p.b_column, p.b_depth, p.b_column,
                panels + i * (K_BLOCK * PANEL), block_depth, min(PANEL, p.columns - column));
      }
      for (int row = 0; row < group_rows; row += TILE_ROWS) {
        __local float16* saved =
            one_block ? sums : sums + (row * p.panels_per_group + (panel - begin) * TILE_ROWS);
        float16 tile_sums[TILE_PANELS][TILE_ROWS];
        if (first) {
          CLEAR_TILE(tile_sums)
        } else {
          LOAD_TILE(tile_sums, saved)
        }
        MULTIPLY_TILE(tile_sums, staged + row * TILE_PITCH, panels, K_BLOCK * PANEL, block_depth)
        if (!last) {
          SAVE_TILE(tile_sums, saved)
          continue;
        }
        const int valid = min(TILE_ROWS, group_rows - row);
#pragma unroll
        for (int i = 0; i < TILE_PANELS; ++i) {
          const int column = (panel + i) * PANEL;
          const int count = min(PANEL, p.columns - column);
          __global float* to = c + row * p.c_row + column;
          if (valid == TILE_ROWS && count == PANEL) {
#pragma unroll
            for (int m = 0; m < TILE_ROWS; ++m) {
              vstore16(tile_sums[i][m] * p.scale, 0, to + m * p.c_row);
            }
          } else if (panel + i < end) {
#pragma unroll
            for (int m = 0; m < TILE_ROWS; ++m) saved[m] = tile_sums[i][m];
            for (int m = 0; m < valid; ++m) {
              store_some(saved[m] * p.scale, to + m * p.c_row, count);
            }
          }
        }
      }
    }
  }
}
