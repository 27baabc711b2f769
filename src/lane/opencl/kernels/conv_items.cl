// Convolution, transposed convolution and linear as matrix products (tile.cl) on devices with many
// work-items to a group. The summed index is the place in a panel of weights: taps, and within them
// the input channels of the group.
//
// Build options: those of item_product.cl; POINTWISE, TRANSPOSED as for tile.cl; QUADS: channels
// come in aligned fours, none of which lies in two taps; ALIGNED_OUTPUT: whole fours of the output
// and the residual are aligned.

// An output pixel as the input sees it.
struct Pixel {
  __global const float* image;
  int y, x;  // of the first tap; transposed convolution: of the output
  bool exists;
};

// The input channels under a tap of a pixel, null where it falls into padding.
__global const float* tap_of(struct Pixel pixel, int ky, int kx, struct TileArguments p) {
#if POINTWISE
  return pixel.exists ? pixel.image + pixel.y * p.in_line + pixel.x * p.in_pixel : 0;
#else
#if TRANSPOSED
  const int spread_y = pixel.y - ky * p.dilation_y;
  const int spread_x = pixel.x - kx * p.dilation_x;
  const int y = spread_y / p.stride_y;
  const int x = spread_x / p.stride_x;
  const bool hit =
      spread_y >= 0 && spread_x >= 0 && y * p.stride_y == spread_y && x * p.stride_x == spread_x;
#else
  const int y = pixel.y + ky * p.dilation_y;
  const int x = pixel.x + kx * p.dilation_x;
  const bool hit = y >= 0 && x >= 0;
#endif
  return hit && pixel.exists && y < p.in_height && x < p.in_width
             ? pixel.image + y * p.in_line + x * p.in_pixel
             : 0;
#endif
}

struct Pixel pixel_of(__global const float* input, int row, struct TileArguments p) {
  struct Pixel pixel;
  const int x = row % p.box_width + p.first_x;
  const int y = row / p.box_width % p.box_height + p.first_y;
  pixel.image = input + row / p.box_width / p.box_height * p.in_image;
  pixel.exists = row < p.rows;
#if TRANSPOSED
  pixel.y = y + p.pad_top;
  pixel.x = x + p.pad_left;
#else
  pixel.y = y * p.stride_y - p.pad_top;
  pixel.x = x * p.stride_x - p.pad_left;
#endif
  return pixel;
}

// Element `k` of the summed index, and the three behind it.
float4 load_taps(struct Pixel pixel, int k, int depth, struct TileArguments p) {
  float4 v = (float4)0.0f;
#if QUADS
  const int tap = k / p.group_channels;
  const int ky = tap / p.kernel_width;
  __global const float* from = k < depth ? tap_of(pixel, ky, tap - ky * p.kernel_width, p) : 0;
  if (from) v = *(__global const float4*)(from + (k - tap * p.group_channels));
#else
  float each[4];
  for (int i = 0; i < 4; ++i) {
    const int tap = (k + i) / p.group_channels;
    const int ky = tap / p.kernel_width;
    __global const float* from =
        k + i < depth ? tap_of(pixel, ky, tap - ky * p.kernel_width, p) : 0;
    each[i] = from ? from[k + i - tap * p.group_channels] : 0.0f;
  }
  v = (float4)(each[0], each[1], each[2], each[3]);
#endif
  return v;
}

#define QUADS_PER_ROW (DEPTH / 4)
#define LOADED_ROWS (GROUP_ROWS * QUADS_PER_ROW / SLICE_ITEMS)
#define LOADED_COLUMNS (GROUP_COLUMNS * QUADS_PER_ROW / SLICE_ITEMS)
#define PANEL_QUADS (DEPTH * PANEL / 4)

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void conv_items(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, struct TileArguments p) {
  __local float4 memory[K_SLICES * LOCAL_FLOATS / 4];
  __local float* staged = (__local float*)memory;
  const int item = get_local_id(0) % SLICE_ITEMS;
  const int slice = get_local_id(0) / SLICE_ITEMS;
  const int item_x = item % ITEMS_X;
  const int item_y = item / ITEMS_X;
  __local float* rows = staged + slice * LOCAL_FLOATS;
  __local float* columns = rows + DEPTH * ROW_PITCH;
  const int first_row = get_group_id(0) * GROUP_ROWS;
  const int first_column = get_group_id(1) * GROUP_COLUMNS;
  const int depth = p.kernel_height * p.kernel_width * p.group_channels;
  const int panels = (p.channels + PANEL - 1) / PANEL;
  input += (p.first_panel * PANEL + first_column) / p.group_outputs * p.group_channels;
  weights += (long)(p.first_panel + first_column / PANEL) * depth * PANEL;

  struct Pixel pixels[LOADED_ROWS];
#pragma unroll
  for (int i = 0; i < LOADED_ROWS; ++i) {
    pixels[i] = pixel_of(input, first_row + (item + i * SLICE_ITEMS) / QUADS_PER_ROW, p);
  }
  float4 sums[ITEM_SUMS];
#pragma unroll
  for (int n = 0; n < ITEM_SUMS; ++n) sums[n] = (float4)0.0f;

  for (int block = 0; block < depth; block += DEPTH * K_SLICES) {
    const int k = block + slice * DEPTH;
#pragma unroll
    for (int i = 0; i < LOADED_ROWS; ++i) {
      const int row = (item + i * SLICE_ITEMS) / QUADS_PER_ROW;
      const int quad = item % QUADS_PER_ROW * 4;
      const float4 v = load_taps(pixels[i], k + quad, depth, p);
      rows[quad * ROW_PITCH + row] = v.x;
      rows[(quad + 1) * ROW_PITCH + row] = v.y;
      rows[(quad + 2) * ROW_PITCH + row] = v.z;
      rows[(quad + 3) * ROW_PITCH + row] = v.w;
    }
#pragma unroll
    for (int i = 0; i < LOADED_COLUMNS; ++i) {
      const int panel = (item + i * SLICE_ITEMS) / PANEL_QUADS;
      const int quad = (item + i * SLICE_ITEMS) % PANEL_QUADS;
      const bool exists = k + quad / (PANEL / 4) < depth && first_column / PANEL + panel < panels;
      const float4 v =
          exists ? ((__global const float4*)(weights + ((long)panel * depth + k) * PANEL))[quad]
                 : (float4)0.0f;
      *(__local float4*)(columns + quad / (PANEL / 4) * COLUMN_PITCH + panel * PANEL +
                         quad % (PANEL / 4) * 4) = v;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    MULTIPLY_STAGED(sums, rows, columns, item_x, item_y)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  add_slices(sums, staged, slice, item);
  if (slice > 0) return;

#pragma unroll
  for (int i = 0; i < ROW_QUADS * 4; ++i) {
    const int row = first_row + ROW_OF(i, item_y);
    if (row >= p.rows) continue;
    const int x = row % p.box_width;
    const int y = row / p.box_width % p.box_height;
    const int image = row / p.box_width / p.box_height;
    __global const float* added =
        residual + image * p.residual_image + y * p.residual_line + x * p.residual_pixel;
    __global float* to = output + image * p.out_image + y * p.out_line + x * p.out_pixel;
#pragma unroll
    for (int j = 0; j < COLUMN_QUADS; ++j) {
      const int channel = first_column + COLUMN_OF(j, item_x);
      const int count = p.channels - channel;
      if (count <= 0) continue;
      float4 v = sums[i * COLUMN_QUADS + j];
      if (p.has_bias) v += vload4(0, bias + p.first_panel * PANEL + channel);
#if ALIGNED_OUTPUT
      if (count >= 4) {
        if (p.has_residual) v += *(__global const float4*)(added + channel);
        *(__global float4*)(to + channel) = activate(v, p.function, p.alpha, p.beta);
        continue;
      }
#endif
      if (p.has_residual) v += load_some(added + channel, count);
      store_some(activate(v, p.function, p.alpha, p.beta), to + channel, count);
    }
  }
}
