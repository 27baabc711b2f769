// Convolution of few input channels with one group: first layers. Too few products per pixel to
// stage the pixel's taps one by one, as tile.cl does.
//
// A work-group computes some lines of the output. It stages the input lines under them once, pixels
// without gaps between them: what a line of the kernel sees of a line of the input is then one run
// of kernel_width * CHANNELS floats, and the runs of neighbouring output pixels lie TILE_PITCH =
// stride * CHANNELS apart, overlapping. So the staged lines are the operand of the product as they
// are. Horizontal dilation would make gaps and is left to tile.cl.
//
// Build options: CHANNELS; WHOLE_VECTORS: at most four, and four may be read; TILE_ROWS,
// TILE_PANELS as for tile.cl, TILE_PITCH as above.

// Pixels [0, width) of the image's line `from`, of which those left of `before` and from `after` on
// are padding.
void stage_line(__global const float* from, __local float* to, int width, int before, int after,
                struct TileArguments p) {
  for (int i = 0; i < before * CHANNELS; ++i) to[i] = 0.0f;
  int x = before;
  if (p.in_pixel == CHANNELS) {
    // Without gaps in memory either.
    int i = before * CHANNELS;
    for (; i + 16 <= after * CHANNELS; i += 16) vstore16(vload16(0, from + i), 0, to + i);
    for (; i < after * CHANNELS; ++i) to[i] = from[i];
    x = after;
  }
  for (; x < after; ++x) {
#if WHOLE_VECTORS
    // What is more than a pixel is overwritten by the next one.
    vstore4(vload4(0, from + x * p.in_pixel), 0, to + x * CHANNELS);
#else
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c) to[x * CHANNELS + c] = from[x * p.in_pixel + c];
#endif
  }
  for (int i = max(before, after) * CHANNELS; i < width * CHANNELS; ++i) to[i] = 0.0f;
}

// `tiles_per_group` lines of the output to a group, all of one image. lines: input lines, each of
// line_floats. sums, offsets: as for tile.cl, of one tile.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void narrow(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, __local float* lines,
    __local float16* sums, __local long2* offsets, int line_floats, struct TileArguments p) {
  const int groups_per_image = (p.box_height + p.tiles_per_group - 1) / p.tiles_per_group;
  const int image = get_group_id(0) / groups_per_image;
  const int first_line = get_group_id(0) % groups_per_image * p.tiles_per_group;
  const int last_line = min(p.box_height, first_line + p.tiles_per_group);
  const int depth = p.kernel_width * CHANNELS;
  const long panel_stride = (long)p.kernel_height * depth * PANEL;

  const int top = (first_line + p.first_y) * p.stride_y - p.pad_top;
  const int left = p.first_x * p.stride_x - p.pad_left;
  const int height =
      (last_line - first_line - 1) * p.stride_y + (p.kernel_height - 1) * p.dilation_y + 1;
  const int width = (p.box_width - 1) * p.stride_x + p.kernel_width;
  input += image * p.in_image + left * p.in_pixel;
  for (int y = 0; y < height; ++y) {
    const bool inside = top + y >= 0 && top + y < p.in_height;
    const int before = inside ? clamp(-left, 0, width) : width;
    const int after = inside ? clamp(p.in_width - left, 0, width) : 0;
    stage_line(input + (top + y) * p.in_line, lines + y * line_floats, width, before, after, p);
  }

  weights += p.first_panel * panel_stride;
  const int panels = (p.channels + PANEL - 1) / PANEL;
  for (int y = first_line; y < last_line; ++y) {
    for (int x = 0; x < p.box_width; x += TILE_ROWS) {
      const int valid = min(TILE_ROWS, p.box_width - x);
      for (int m = 0; m < valid; ++m) {
        offsets[m] =
            (long2)(image * p.out_image + y * p.out_line + (x + m) * p.out_pixel,
                    image * p.residual_image + y * p.residual_line + (x + m) * p.residual_pixel);
      }
      for (int panel = 0; panel < panels; panel += TILE_PANELS) {
        __local const float* a =
            lines + (y - first_line) * p.stride_y * line_floats + x * TILE_PITCH;
        __global const float* b = weights + panel * panel_stride;
        float16 tile_sums[TILE_PANELS][TILE_ROWS];
        CLEAR_TILE(tile_sums)
        for (int ky = 0; ky < p.kernel_height; ++ky) {
          MULTIPLY_TILE(tile_sums, a, b, panel_stride, depth)
          a += p.dilation_y * line_floats;
          b += depth * PANEL;
        }
        FINISH_TILE(tile_sums, sums, valid, min(TILE_PANELS, panels - panel), panel * PANEL,
                    offsets)
      }
    }
  }
}
