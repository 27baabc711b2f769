// Convolution by 3x3 with stride 1 after Winograd: patches of OUTPUTS x OUTPUTS pixels cost SIDE *
// SIDE multiplications per pair of channels instead of 9 * OUTPUTS * OUTPUTS.
//
// The output of a patch is A^T [(G w G^T) . (B^T d B)] A. Weights come transformed, in panels of 16
// output channels: [panel][point][channel][16], a point being one of the SIDE * SIDE elements.
// A work-group transforms the input of a block of patches into local memory, multiplies it point by
// point (the rows of these products are patches), and transforms the sums back, panel by panel:
// nothing makes a round trip through global memory.
//
// OUTPUTS 2 interpolates at 0, 1, -1 and infinity. OUTPUTS 4 does at 0, +-A, +-B and infinity, with
// A = 5/8 and B = 3/2: their error is less than half that of the usual 1 and 2 (winograd.h), and
// all constants below are exact.
//
// Build options: OUTPUTS; TILE_ROWS and TILE_PANELS as for tile.cl.

#define SIDE (OUTPUTS + 2)
#define POINTS (SIDE * SIDE)
#define TILE_SUMS (TILE_PANELS * TILE_ROWS)

#if OUTPUTS == 4

#define A 0.625f
#define B 1.5f

// t = B^T d.
void transform_input(const float16* d, float16* t) {
  const float16 even_a = fma((float16)(-B * B), d[2], d[4]);
  const float16 odd_a = A * fma((float16)(-B * B), d[1], d[3]);
  const float16 even_b = fma((float16)(-A * A), d[2], d[4]);
  const float16 odd_b = B * fma((float16)(-A * A), d[1], d[3]);
  t[0] = fma((float16)(A * A * B * B), d[0], fma((float16)(-A * A - B * B), d[2], d[4]));
  t[1] = even_a + odd_a;
  t[2] = even_a - odd_a;
  t[3] = even_b + odd_b;
  t[4] = even_b - odd_b;
  t[5] = fma((float16)(A * A * B * B), d[1], fma((float16)(-A * A - B * B), d[3], d[5]));
}

// y = A^T m.
void transform_output(const float16* m, float16* y) {
  const float16 sum_a = m[1] + m[2];
  const float16 difference_a = m[1] - m[2];
  const float16 sum_b = m[3] + m[4];
  const float16 difference_b = m[3] - m[4];
  y[0] = m[0] + sum_a + sum_b;
  y[1] = fma((float16)A, difference_a, B * difference_b);
  y[2] = fma((float16)(A * A), sum_a, B * B * sum_b);
  y[3] = fma((float16)(A * A * A), difference_a, fma((float16)(B * B * B), difference_b, m[5]));
}

#else

void transform_input(const float16* d, float16* t) {
  t[0] = d[0] - d[2];
  t[1] = d[1] + d[2];
  t[2] = d[2] - d[1];
  t[3] = d[3] - d[1];
}

void transform_output(const float16* m, float16* y) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] + m[3];
}

#endif

// Where the input of a patch begins, and which of its pixels exist.
struct Patch {
  __global const float* from;
  int first_y, last_y, first_x, last_x;  // pixels [first, last) of SIDE lie inside the image
};

// One vector of channels of a patch, to `to` and every `point_stride` floats from there.
void stage_patch(struct Patch patch, int channel, __local float* to, int point_stride,
                 struct TileArguments p) {
  float16 columns[SIDE][SIDE];
  __global const float* from = patch.from + channel;
#pragma unroll
  for (int x = 0; x < SIDE; ++x) {
    const bool inside = x >= patch.first_x && x < patch.last_x;
    float16 d[SIDE];
#pragma unroll
    for (int y = 0; y < SIDE; ++y) {
      d[y] = inside && y >= patch.first_y && y < patch.last_y
                 ? vload16(0, from + y * p.in_line + x * p.in_pixel)
                 : (float16)0.0f;
    }
    transform_input(d, columns[x]);
  }
#pragma unroll
  for (int y = 0; y < SIDE; ++y) {
    float16 d[SIDE], t[SIDE];
#pragma unroll
    for (int x = 0; x < SIDE; ++x) d[x] = columns[x][y];
    transform_input(d, t);
#pragma unroll
    for (int x = 0; x < SIDE; ++x) vstore16(t[x], 0, to + (y * SIDE + x) * point_stride);
  }
}

// The sums of one panel of a patch, TILE_SUMS apart, become its pixels, in place at the first
// OUTPUTS * OUTPUTS of them.
void finish_patch(__local float16* sums) {
  float16 columns[SIDE][OUTPUTS];
#pragma unroll
  for (int x = 0; x < SIDE; ++x) {
    float16 m[SIDE];
#pragma unroll
    for (int y = 0; y < SIDE; ++y) m[y] = sums[(y * SIDE + x) * TILE_SUMS];
    transform_output(m, columns[x]);
  }
#pragma unroll
  for (int y = 0; y < OUTPUTS; ++y) {
    float16 m[SIDE], pixels[OUTPUTS];
#pragma unroll
    for (int x = 0; x < SIDE; ++x) m[x] = columns[x][y];
    transform_output(m, pixels);
#pragma unroll
    for (int x = 0; x < OUTPUTS; ++x) sums[(y * OUTPUTS + x) * TILE_SUMS] = pixels[x];
  }
}

// The pixels of one panel of a patch that lie in the box, `height` x `width` of them. A loop for
// all functions, rather than each of them for every pixel.
void store_patch(__local const float16* pixels, int height, int width, int channel,
                 __global const float* bias, __global const float* residual, __global float* output,
                 struct TileArguments p) {
  const int count = min(PANEL, p.channels - channel);
  const float16 shift = load_bias(bias, channel, p);
  const bool simple = is_bounds(p.function) && count == PANEL;
  const float16 low = (float16)lower_bound(p.function, p.alpha);
  const float16 high = (float16)upper_bound(p.function, p.beta);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float16 v = pixels[(y * OUTPUTS + x) * TILE_SUMS] + shift;
      __global const float* added = residual + y * p.residual_line + x * p.residual_pixel;
      __global float* to = output + y * p.out_line + x * p.out_pixel;
      if (simple) {
        if (p.has_residual) v += vload16(0, added);
        vstore16(bound(v, low, high), 0, to);
      } else {
        if (p.has_residual) v += load_some(added, count);
        store_some(activate(v, p.function, p.alpha, p.beta), to, count);
      }
    }
  }
}

// `rows` of p are patches, counted along x, then y, then images. staged: [point][patch][TILE_PITCH]
// floats for tiles_per_group * TILE_ROWS patches. sums: [point][panel][row] vectors of one tile.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void winograd(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, __local float* staged,
    __local float16* sums, struct TileArguments p) {
  const int first_row = get_group_id(0) * (TILE_ROWS * p.tiles_per_group);
  const int group_rows = min(p.rows - first_row, TILE_ROWS * p.tiles_per_group);
  const int begin = get_group_id(1) * p.panels_per_group;
  const int end = min((p.channels + PANEL - 1) / PANEL, begin + p.panels_per_group);
  const int across = (p.box_width + OUTPUTS - 1) / OUTPUTS;
  const int down = (p.box_height + OUTPUTS - 1) / OUTPUTS;
  const int point_stride = TILE_ROWS * p.tiles_per_group * TILE_PITCH;

  for (int m = 0; m < group_rows; ++m) {
    const int row = first_row + m;
    const int top = row / across % down * OUTPUTS + p.first_y - p.pad_top;
    const int left = row % across * OUTPUTS + p.first_x - p.pad_left;
    struct Patch patch;
    patch.from = input + row / across / down * p.in_image + top * p.in_line + left * p.in_pixel;
    patch.first_y = max(0, -top);
    patch.last_y = min(SIDE, p.in_height - top);
    patch.first_x = max(0, -left);
    patch.last_x = min(SIDE, p.in_width - left);
    for (int c = 0; c < p.group_channels; c += 16) {
      stage_patch(patch, c, staged + m * TILE_PITCH + c, point_stride, p);
    }
  }

  for (int panel = begin; panel < end; panel += TILE_PANELS) {
    for (int tile = 0; tile < group_rows; tile += TILE_ROWS) {
      for (int point = 0; point < POINTS; ++point) {
        __local const float* a = staged + point * point_stride + tile * TILE_PITCH;
        __global const float* b =
            weights + ((long)(p.first_panel + panel) * POINTS + point) * p.group_channels * PANEL;
        __local float16* saved = sums + point * TILE_SUMS;
        float16 tile_sums[TILE_PANELS][TILE_ROWS];
        CLEAR_TILE(tile_sums)
        MULTIPLY_TILE(tile_sums, a, b, (long)POINTS * p.group_channels * PANEL, p.group_channels)
        SAVE_TILE(tile_sums, saved)
      }
      for (int m = 0; m < min(TILE_ROWS, group_rows - tile); ++m) {
        const int row = first_row + tile + m;
        const int image = row / across / down;
        const int y = row / across % down * OUTPUTS;
        const int x = row % across * OUTPUTS;
        for (int i = 0; i < min(TILE_PANELS, end - panel); ++i) {
          const int channel = (panel + i) * PANEL;
          __local float16* patch = sums + i * TILE_ROWS + m;
          finish_patch(patch);
          store_patch(patch, min(OUTPUTS, p.box_height - y), min(OUTPUTS, p.box_width - x), channel,
                      bias,
                      residual + image * p.residual_image + y * p.residual_line +
                          x * p.residual_pixel + channel,
                      output + image * p.out_image + y * p.out_line + x * p.out_pixel + channel, p);
        }
      }
    }
  }
}
