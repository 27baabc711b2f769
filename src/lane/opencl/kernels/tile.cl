// Convolution, transposed convolution and linear as matrix products: rows are output pixels,
// columns output channels, and the summed index walks over taps and input channels. Weights lie in
// panels of 16 output channels, [panel][tap][channel][16].
//
// Build options: TILE_ROWS and TILE_PANELS give the tile of accumulators that a work-item keeps in
// registers; POINTWISE: one tap and no padding; TRANSPOSED: transposed convolution; OWN_GROUPS, for
// several work-items: neighbouring output channels may be of different groups.

#if WORK_ITEMS == 1

// One work-item per group. The input elements that a tile needs are first copied ("staged") to
// local memory, row by row, TILE_PITCH apart, so that padding, strides and edges concern the copy
// alone. A copy writes whole vectors: what reaches past its end is overwritten by the next one, or
// is the slack of the pitch.

void stage_channels(__global const float* from, __local float* to, int channels, int exact) {
#if NARROW_INPUT
  // At most four channels, and four are there to be read.
  vstore4(vload4(0, from), 0, to);
#else
  if (exact) {
    for (int c = 0; c < channels; ++c) to[c] = from[c];
    return;
  }
  for (int c = 0; c < channels; c += 16) vstore16(vload16(0, from + c), 0, to + c);
#endif
}

void stage_zeros(__local float* to, int count) {
  for (int i = 0; i < count; i += 16) vstore16((float16)0.0f, 0, to + i);
}

#if TRANSPOSED
// Output (y, x) receives tap (ky, kx) of the input pixel that was spread over it, if there is one.
void stage_row(__global const float* image, __local float* to, int y, int x, int first_tap,
               int taps, int channels, struct TileArguments p) {
  for (int tap = first_tap; tap < first_tap + taps; ++tap) {
    const int spread_y = y + p.pad_top - tap / p.kernel_width * p.dilation_y;
    const int spread_x = x + p.pad_left - tap % p.kernel_width * p.dilation_x;
    const int in_y = spread_y / p.stride_y;
    const int in_x = spread_x / p.stride_x;
    const bool hit = spread_y >= 0 && spread_x >= 0 && in_y * p.stride_y == spread_y &&
                     in_x * p.stride_x == spread_x && in_y < p.in_height && in_x < p.in_width;
    if (hit) {
      stage_channels(image + in_y * p.in_line + in_x * p.in_pixel, to, channels, p.exact_input);
    } else {
      stage_zeros(to, channels);
    }
    to += channels;
  }
}
#elif !POINTWISE
// `taps` taps of one line of the kernel, the first of them at column `x` of the input line `line`.
void stage_line(__global const float* line, __local float* to, int x, int taps, int channels,
                struct TileArguments p) {
  int before = 0;
  int inside = taps;
  if (x < 0 || x + (taps - 1) * p.dilation_x >= p.in_width) {
    before = x >= 0 ? 0 : min(taps, (p.dilation_x - 1 - x) / p.dilation_x);
    inside = min(taps, (p.in_width - x + p.dilation_x - 1) / p.dilation_x) - before;
    inside = max(inside, 0);
    stage_zeros(to, before * channels);
    to += before * channels;
  }
  const long step = p.dilation_x * p.in_pixel;
  __global const float* from = line + x * p.in_pixel + before * step;
  for (int i = 0; i < inside; ++i) {
    stage_channels(from, to, channels, p.exact_input);
    from += step;
    to += channels;
  }
  stage_zeros(to, (taps - before - inside) * channels);
}

void stage_row(__global const float* image, __local float* to, int y, int x, int first_tap,
               int taps, int channels, struct TileArguments p) {
  const int top = y * p.stride_y - p.pad_top;
  const int left = x * p.stride_x - p.pad_left;
  int ky = first_tap / p.kernel_width;
  int kx = first_tap - ky * p.kernel_width;
  while (taps > 0) {
    const int run = min(taps, p.kernel_width - kx);
    const int in_y = top + ky * p.dilation_y;
    if (in_y >= 0 && in_y < p.in_height) {
      stage_line(image + in_y * p.in_line, to, left + kx * p.dilation_x, run, channels, p);
    } else {
      stage_zeros(to, run * channels);
    }
    to += run * channels;
    taps -= run;
    kx = 0;
    ++ky;
  }
}
#endif

// staged: tiles_per_group * TILE_ROWS * TILE_PITCH floats. sums: TILE_PANELS * TILE_ROWS vectors
// for every (tile, panels) that waits for its next K block; just one set where K is one block.
// offsets: tiles_per_group * TILE_ROWS offsets of pixels in output and residual.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void tile(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, __local float* staged,
    __local float16* sums, __local long2* offsets, struct TileArguments p) {
  const int first_row = get_group_id(0) * (TILE_ROWS * p.tiles_per_group);
  const int group_rows = min(p.rows - first_row, TILE_ROWS * p.tiles_per_group);
  const int begin = get_group_id(1) * p.panels_per_group;
  const int end = min((p.channels + PANEL - 1) / PANEL, begin + p.panels_per_group);
  const int taps = p.kernel_height * p.kernel_width;
  const int depth = taps * p.group_channels;
  const bool one_block = p.taps_per_block >= taps && p.channels_per_block >= p.group_channels;
  const int group = (p.first_panel + begin) * PANEL / p.group_outputs;
  input += group * p.group_channels;
  weights += (long)p.first_panel * depth * PANEL;

  for (int block = 0; block < depth;) {
    const int first_tap = block / p.group_channels;
    const int first_channel = block % p.group_channels;
    const int block_taps = min(taps - first_tap, p.taps_per_block);
    const int block_channels = min(p.group_channels - first_channel, p.channels_per_block);
    const int block_depth = block_taps * block_channels;

    int x = first_row % p.box_width;
    int y = first_row / p.box_width % p.box_height;
    int image = first_row / p.box_width / p.box_height;
    for (int m = 0; m < group_rows;) {
      // Up to the end of a line of the box.
      const int run = min(group_rows - m, p.box_width - x);
      long out = image * p.out_image + y * p.out_line + x * p.out_pixel;
      long added = image * p.residual_image + y * p.residual_line + x * p.residual_pixel;
      __global const float* from = input + image * p.in_image + first_channel;
#if POINTWISE
      from += (y + p.first_y) * p.stride_y * p.in_line + (x + p.first_x) * p.stride_x * p.in_pixel;
#endif
      for (const int next = m + run; m < next; ++m, ++x) {
        offsets[m] = (long2)(out, added);
        out += p.out_pixel;
        added += p.residual_pixel;
#if POINTWISE
        stage_channels(from, staged + m * TILE_PITCH, block_channels, p.exact_input);
        from += p.stride_x * p.in_pixel;
#else
        stage_row(from, staged + m * TILE_PITCH, y + p.first_y, x + p.first_x, first_tap,
                  block_taps, block_channels, p);
#endif
      }
      x = 0;
      if (++y == p.box_height) {
        y = 0;
        ++image;
      }
    }

    const bool first = block == 0;
    const bool last = block + block_depth == depth;
    for (int panel = begin; panel < end; panel += TILE_PANELS) {
      __global const float* b = weights + ((long)panel * depth + block) * PANEL;
      for (int row = 0; row < group_rows; row += TILE_ROWS) {
        __local float16* saved =
            one_block ? sums : sums + (row * p.panels_per_group + (panel - begin) * TILE_ROWS);
        float16 tile_sums[TILE_PANELS][TILE_ROWS];
        if (first) {
          CLEAR_TILE(tile_sums)
        } else {
          LOAD_TILE(tile_sums, saved)
        }
        __local const float* a = staged + row * TILE_PITCH;
#if TILE_ROWS < 8
        MULTIPLY_TILE(tile_sums, a, b, (long)depth * PANEL, block_depth)
#else
        // The next panels are brought nearer by the first rows, a panel each.
        const int ahead = row / TILE_ROWS < TILE_PANELS ? TILE_PANELS + row / TILE_ROWS : 0;
        MULTIPLY_TILE_AHEAD(tile_sums, a, b, (long)depth * PANEL, block_depth,
                            b + (long)ahead * depth * PANEL)
#endif
        if (!last) {
          SAVE_TILE(tile_sums, saved)
          continue;
        }
        const int rows = min(TILE_ROWS, group_rows - row);
        const int panels = min(TILE_PANELS, end - panel);
        FINISH_TILE(tile_sums, saved, rows, panels, panel * PANEL, offsets + row)
      }
    }
    block += block_depth;
  }
}

#else

float4 load_strided(__global const float* p, long stride, int count) {
  if (stride == 1) return load_some(p, count);
  return (float4)(p[0], count > 1 ? p[stride] : 0.0f, count > 2 ? p[2 * stride] : 0.0f,
                  count > 3 ? p[3 * stride] : 0.0f);
}

void store_strided(float4 v, __global float* p, long stride, int count) {
  if (stride == 1) {
    store_some(v, p, count);
    return;
  }
  p[0] = v.x;
  if (count > 1) p[stride] = v.y;
  if (count > 2) p[2 * stride] = v.z;
  if (count > 3) p[3 * stride] = v.w;
}

// Where the input channels of the group start that output channel `channel` of the box belongs to.
long group_start(int channel, struct TileArguments p) {
  const int group = (p.first_panel * PANEL + channel) / p.group_outputs;
  return (long)min(group, p.last_group) * p.group_channels * p.in_channel;
}

// A group of ITEMS_X * ITEMS_Y work-items computes ITEMS_X * 4 channels of ITEMS_Y * TILE_ROWS
// rows; each work-item four channels of TILE_ROWS rows that lie ITEMS_Y apart.
__attribute__((reqd_work_group_size(ITEMS_X, ITEMS_Y, 1))) __kernel void tile(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, struct TileArguments p) {
  const int channel = get_global_id(0) * 4;
  if (channel >= p.channels) return;
  const int row = get_group_id(1) * (ITEMS_Y * TILE_ROWS) + get_local_id(1);
  const int panel = p.first_panel + channel / PANEL;
  const int taps = p.kernel_height * p.kernel_width;
#if OWN_GROUPS
  long4 from_channel;  // of each lane; lanes without an output do as the last one
  from_channel.x = group_start(channel, p);
  from_channel.y = group_start(channel + 1, p);
  from_channel.z = group_start(channel + 2, p);
  from_channel.w = group_start(channel + 3, p);
#else
  input += group_start(channel, p);
#endif
  weights += (long)panel * taps * p.group_channels * PANEL + channel % PANEL;

  float4 sums[TILE_ROWS];
  int image[TILE_ROWS], y[TILE_ROWS], x[TILE_ROWS];
  for (int m = 0; m < TILE_ROWS; ++m) {
    const int r = min(row + m * ITEMS_Y, p.rows - 1);
    x[m] = r % p.box_width;
    y[m] = r / p.box_width % p.box_height;
    image[m] = r / p.box_width / p.box_height;
    sums[m] = 0.0f;
  }
  for (int tap = 0; tap < taps; ++tap) {
    const int ky = tap / p.kernel_width * p.dilation_y;
    const int kx = tap % p.kernel_width * p.dilation_x;
    __global const float* from[TILE_ROWS];
    bool inside[TILE_ROWS];
    for (int m = 0; m < TILE_ROWS; ++m) {
#if TRANSPOSED
      const int spread_y = y[m] + p.first_y + p.pad_top - ky;
      const int spread_x = x[m] + p.first_x + p.pad_left - kx;
      const int in_y = spread_y / p.stride_y;
      const int in_x = spread_x / p.stride_x;
      const bool hit = spread_y >= 0 && spread_x >= 0 && in_y * p.stride_y == spread_y &&
                       in_x * p.stride_x == spread_x && in_y < p.in_height && in_x < p.in_width;
#else
      const int in_y = (y[m] + p.first_y) * p.stride_y - p.pad_top + ky;
      const int in_x = (x[m] + p.first_x) * p.stride_x - p.pad_left + kx;
      const bool hit = in_y >= 0 && in_x >= 0 && in_y < p.in_height && in_x < p.in_width;
#endif
      from[m] = input + (hit ? image[m] * p.in_image + in_y * p.in_line + in_x * p.in_pixel : 0);
      inside[m] = hit;
    }
    for (int c = 0; c < p.group_channels; ++c) {
      const float4 w = vload4(0, weights);
      weights += PANEL;
      for (int m = 0; m < TILE_ROWS; ++m) {
        __global const float* x = from[m] + c * p.in_channel;
#if OWN_GROUPS
        const float4 v = inside[m] ? (float4)(x[from_channel.x], x[from_channel.y],
                                              x[from_channel.z], x[from_channel.w])
                                   : 0.0f;
#else
        const float4 v = inside[m] ? x[0] : 0.0f;
#endif
        sums[m] = fma(v, w, sums[m]);
      }
    }
  }
  const float4 shift = p.has_bias ? vload4(0, bias + p.first_panel * PANEL + channel) : 0.0f;
  const int count = min(4, p.channels - channel);
  for (int m = 0; m < TILE_ROWS; ++m) {
    if (row + m * ITEMS_Y >= p.rows) return;
    float4 v = sums[m] + shift;
    if (p.has_residual) {
      v += load_strided(residual + image[m] * p.residual_image + y[m] * p.residual_line +
                            x[m] * p.residual_pixel + channel * p.residual_channel,
                        p.residual_channel, count);
    }
    store_strided(activate(v, p.function, p.alpha, p.beta),
                  output + image[m] * p.out_image + y[m] * p.out_line + x[m] * p.out_pixel +
                      channel * p.out_channel,
                  p.out_channel, count);
  }
}

#endif
