// Convolution with groups that panels of 16 output channels do not see as a whole: those of fewer
// than 16 outputs, or of a number that is no multiple of 16. Each lane of a panel has input
// channels of its own, those of its group.
//
// A work-group computes one panel of some lines of the output. It stages the input lines under them
// once, with channels as the lanes want them: for every pixel and number k of a channel within its
// group, the 16 lanes' k-th channels. What is left is 16 convolutions side by side. No input is
// multiplied by the weights of another group, so that an infinity stays in its group.
//
// Build options: TILE_ROWS, the neighbouring pixels whose sums are kept in registers; TILE_PITCH,
// the floats staged between them; GROUP_OUTPUTS and GROUP_CHANNELS, where lanes choose their
// channels alike in all panels, else 0.

#if GROUP_OUTPUTS
#define LANE(j) ((j) / GROUP_OUTPUTS * GROUP_CHANNELS)
#else
#define LANE(j) lanes[j]
#endif

// Pixels [0, width) of the image's line `from`, of which those left of `before` and from `after` on
// are padding.
void stage_line(__global const float* from, __local float* to, int width, int before, int after,
                const int* lanes, struct TileArguments p) {
  const int pixel_floats = p.group_channels * PANEL;
  for (int x = 0; x < width; ++x, to += pixel_floats) {
    __global const float* pixel = from + x * p.in_pixel;
    const bool inside = x >= before && x < after;
    for (int k = 0; k < p.group_channels; ++k) {
      float16 v = 0.0f;
      if (inside) {
        v = (float16)(pixel[k + LANE(0)], pixel[k + LANE(1)], pixel[k + LANE(2)],
                      pixel[k + LANE(3)], pixel[k + LANE(4)], pixel[k + LANE(5)],
                      pixel[k + LANE(6)], pixel[k + LANE(7)], pixel[k + LANE(8)],
                      pixel[k + LANE(9)], pixel[k + LANE(10)], pixel[k + LANE(11)],
                      pixel[k + LANE(12)], pixel[k + LANE(13)], pixel[k + LANE(14)],
                      pixel[k + LANE(15)]);
      }
      vstore16(v, k, to);
    }
  }
}

// `tiles_per_group` lines of the output to a group, all of one image. staged: input lines, each of
// line_floats. sums, offsets: as for tile.cl, of one tile.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void grouped(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, __local float* staged,
    __local float16* sums, __local long2* offsets, int line_floats, struct TileArguments p) {
  const int groups_per_image = (p.box_height + p.tiles_per_group - 1) / p.tiles_per_group;
  const int image = get_group_id(0) / groups_per_image;
  const int first_line = get_group_id(0) % groups_per_image * p.tiles_per_group;
  const int last_line = min(p.box_height, first_line + p.tiles_per_group);
  const int panel = get_group_id(1);
  const int pixel_floats = p.group_channels * PANEL;

  const int first_output = (p.first_panel + panel) * PANEL;
  int lanes[PANEL];
#if GROUP_OUTPUTS
  input += first_output / GROUP_OUTPUTS * GROUP_CHANNELS;
#else
  // Lanes without an output do as the last one.
  for (int j = 0; j < PANEL; ++j) {
    lanes[j] = min((first_output + j) / p.group_outputs, p.last_group) * p.group_channels;
  }
#endif
  const int top = (first_line + p.first_y) * p.stride_y - p.pad_top;
  const int left = p.first_x * p.stride_x - p.pad_left;
  const int height =
      (last_line - first_line - 1) * p.stride_y + (p.kernel_height - 1) * p.dilation_y + 1;
  const int width = (p.box_width - 1) * p.stride_x + (p.kernel_width - 1) * p.dilation_x + 1;
  input += image * p.in_image + left * p.in_pixel;
  for (int y = 0; y < height; ++y) {
    const bool inside = top + y >= 0 && top + y < p.in_height;
    stage_line(input + (top + y) * p.in_line, staged + y * line_floats, width, -left,
               inside ? p.in_width - left : 0, lanes, p);
  }

  weights += (long)(p.first_panel + panel) * p.kernel_height * p.kernel_width * pixel_floats;
  for (int y = first_line; y < last_line; ++y) {
    for (int x = 0; x < p.box_width; x += TILE_ROWS) {
      __local const float* lines =
          staged + (y - first_line) * p.stride_y * line_floats + x * TILE_PITCH;
      __global const float* b = weights;
      float16 tile_sums[1][TILE_ROWS];
      CLEAR_TILE(tile_sums)
      for (int ky = 0; ky < p.kernel_height; ++ky) {
        for (int kx = 0; kx < p.kernel_width; ++kx) {
          __local const float* a =
              lines + ky * p.dilation_y * line_floats + kx * p.dilation_x * pixel_floats;
          for (int k = 0; k < p.group_channels; ++k, a += PANEL, b += PANEL) {
            const float16 factor = vload16(0, b);
#pragma unroll
            for (int m = 0; m < TILE_ROWS; ++m) {
              tile_sums[0][m] = fma(vload16(0, a + m * TILE_PITCH), factor, tile_sums[0][m]);
            }
          }
        }
      }
      const int valid = min(TILE_ROWS, p.box_width - x);
      for (int m = 0; m < valid; ++m) {
        offsets[m] =
            (long2)(image * p.out_image + y * p.out_line + (x + m) * p.out_pixel,
                    image * p.residual_image + y * p.residual_line + (x + m) * p.residual_pixel);
      }
      FINISH_TILE(tile_sums, sums, valid, 1, panel * PANEL, offsets)
    }
  }
}
