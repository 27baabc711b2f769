// Depthwise convolution and pooling. Build options: DEPTHWISE, MAXIMUM or AVERAGE is 1;
// SHARED, for pooling by many work-items. For
// depthwise convolution: WINDOW_PIXELS, the number of neighbouring pixels whose sums a work-item
// keeps in registers; KERNEL_WIDTH, STRIDE_X, DILATION_X; LINE_WIDTH, the pixels of an output line
// where they are so few that each has code of its own, with IN_WIDTH, those of an input line, and
// LINE_LEFT, the pads left of the first; else 0.

// Taps [first, last) of one dimension that fall inside an image of `extent`.
int first_tap(int start, int dilation) {
  return start >= 0 ? 0 : (dilation - 1 - start) / dilation;
}

int last_tap(int start, int dilation, int extent, int taps) {
  return start >= extent ? 0 : min(taps, (extent - start + dilation - 1) / dilation);
}

// How the macros below reach memory: whole vectors, or what is left of the channels at `c`. Decided
// outside of all loops.
#define GET_ALL(from) LOAD(from)
#define PUT_ALL(v, to) STORE(v, to)
#define GET_SOME(from) load_some(from, p.channels - c)
#define PUT_SOME(v, to) store_some(v, to, p.channels - c)

#if DEPTHWISE

#define ALL_COLUMNS _Pragma("unroll") for (int kx = 0; kx < KERNEL_WIDTH; ++kx)
#define INNER_COLUMNS for (int kx = kx_begin; kx < kx_end; ++kx)

// Sums of `PIXELS` neighbouring pixels from x on at channel c, over those columns of the window
// that are INSIDE the image. Strides are constants, so that neighbours share what they load. Pixels
// that do not EXIST are not stored.
#define SUM_PIXELS(PIXELS, COLUMNS, INSIDE, EXISTS, GET, PUT)                                    \
  {                                                                                              \
    const VECTOR shift = p.has_bias ? LOAD(bias + c) : (VECTOR)0.0f;                             \
    VECTOR sums[PIXELS];                                                                         \
    _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) sums[i] = shift;                          \
    for (int ky = ky_begin; ky < ky_end; ++ky) {                                                 \
      __global const float* from =                                                               \
          image + (top + ky * p.dilation_y) * p.in_line + left * p.in_pixel + c * p.in_channel;  \
      __global const float* w = weights + ky * KERNEL_WIDTH * p.weight_stride + c;               \
      COLUMNS {                                                                                  \
        const VECTOR factor = LOAD(w + kx * p.weight_stride);                                    \
        _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) {                                     \
          if (INSIDE) {                                                                          \
            sums[i] =                                                                            \
                fma(GET(from + (kx * DILATION_X + i * STRIDE_X) * p.in_pixel), factor, sums[i]); \
          }                                                                                      \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    __global const float* added = residual_line + x * p.residual_pixel + c * p.residual_channel; \
    __global float* to = output_line + x * p.out_pixel + c * p.out_channel;                      \
    if (bounds) {                                                                                \
      _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) {                                       \
        if (EXISTS) {                                                                            \
          if (p.has_residual) sums[i] += GET(added + i * p.residual_pixel);                      \
          PUT(bound(sums[i], low, high), to + i * p.out_pixel);                                  \
        }                                                                                        \
      }                                                                                          \
    } else {                                                                                     \
      for (int i = 0; i < PIXELS && EXISTS; ++i) {                                               \
        VECTOR v = sums[i];                                                                      \
        if (p.has_residual) v += GET(added + i * p.residual_pixel);                              \
        PUT(activate(v, p.function, p.alpha, p.beta), to + i * p.out_pixel);                     \
      }                                                                                          \
    }                                                                                            \
  }

// All channels of `PIXELS` pixels: channels in the inner loop, as memory has them.
#define SUM_CHANNELS(PIXELS, COLUMNS, INSIDE, EXISTS)                 \
  {                                                                   \
    int c = first_channel;                                            \
    for (; c + LANES <= end_channel; c += LANES) {                    \
      SUM_PIXELS(PIXELS, COLUMNS, INSIDE, EXISTS, GET_ALL, PUT_ALL)   \
    }                                                                 \
    if (c < end_channel) {                                            \
      SUM_PIXELS(PIXELS, COLUMNS, INSIDE, EXISTS, GET_SOME, PUT_SOME) \
    }                                                                 \
  }

// What a line's remainder is taken in, before single pixels.
#define SOME_PIXELS (WINDOW_PIXELS / 2 + WINDOW_PIXELS % 2)

#if LINE_WIDTH
// Shares of a line, as equal as can be. What lies inside the image is known for each pixel.
#define BLOCKS ((LINE_WIDTH + WINDOW_PIXELS - 1) / WINDOW_PIXELS)
#define BLOCK_PIXELS ((LINE_WIDTH + BLOCKS - 1) / BLOCKS)
#define COLUMN ((x + i) * STRIDE_X + kx * DILATION_X - LINE_LEFT)
#define LINE_PIXEL (x + i < LINE_WIDTH)
#define LINE_INSIDE (LINE_PIXEL && COLUMN >= 0 && COLUMN < IN_WIDTH)
#endif

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void depthwise(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, struct WindowArguments p) {
  const int first_channel = FIRST_CHANNEL;
  const int end_channel = END_CHANNEL;
  const int end_line = END_LINE;
  const bool bounds = is_bounds(p.function);
  const VECTOR low = (VECTOR)lower_bound(p.function, p.alpha);
  const VECTOR high = (VECTOR)upper_bound(p.function, p.beta);
  for (int line = FIRST_LINE; line < end_line; ++line) {
    const int y = line % p.box_height;
    const int n = line / p.box_height;
    __global const float* image = input + n * p.in_image;
    __global float* output_line = output + n * p.out_image + y * p.out_line;
    __global const float* residual_line = residual + n * p.residual_image + y * p.residual_line;
    const int top = (y + p.first_y) * p.stride_y - p.pad_top;
    const int ky_begin = first_tap(top, p.dilation_y);
    const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
#if LINE_WIDTH
#pragma unroll
    for (int x = 0; x < LINE_WIDTH; x += BLOCK_PIXELS) {
      const int left = x * STRIDE_X - LINE_LEFT;
      SUM_CHANNELS(BLOCK_PIXELS, ALL_COLUMNS, LINE_INSIDE, LINE_PIXEL)
    }
#else
    const int reach = (KERNEL_WIDTH - 1) * DILATION_X;
    const int end_x = END_X;
    for (int x = FIRST_X; x < end_x;) {
      const int left = (x + p.first_x) * STRIDE_X - p.pad_left;
      // Pixels from x on with windows inside the image.
      const int spare = p.in_width - 1 - reach - left;
      const int room = left < 0 || spare < 0 ? 0 : min(end_x - x, spare / STRIDE_X + 1);
      if (room >= WINDOW_PIXELS) {
        SUM_CHANNELS(WINDOW_PIXELS, ALL_COLUMNS, true, true)
        x += WINDOW_PIXELS;
      } else if (room >= SOME_PIXELS) {
        SUM_CHANNELS(SOME_PIXELS, ALL_COLUMNS, true, true)
        x += SOME_PIXELS;
      } else {
        const int kx_begin = first_tap(left, DILATION_X);
        const int kx_end = last_tap(left, DILATION_X, p.in_width, KERNEL_WIDTH);
        SUM_CHANNELS(1, INNER_COLUMNS, true, true)
        x += 1;
      }
    }
#endif
  }
}

#else

#if MAXIMUM
#define FIRST_VALUE -INFINITY
#define TAKE(total, v) max(total, v)
#else
#define FIRST_VALUE 0.0f
#define TAKE(total, v) (total + (v))
#endif

// What the sum over a window is multiplied by. With pads counted, the window still ends where the
// bottom and right pads do.
#if AVERAGE
float average_factor(int top, int left, int taps, struct WindowArguments p) {
  if (!p.count_pads) return 1.0f / (float)taps;
  return 1.0f / (float)(last_tap(top, p.dilation_y, p.in_height + p.pad_bottom, p.kernel_height) *
                        last_tap(left, p.dilation_x, p.in_width + p.pad_right, p.kernel_width));
}
#define WINDOW_FACTOR \
  average_factor(top, left, max(0, ky_end - ky_begin) * max(0, kx_end - kx_begin), p)
#else
#define WINDOW_FACTOR 1.0f
#endif

// The window of one pixel at channel `c`.
#define POOL_PIXEL(GET, PUT)                                                                    \
  {                                                                                             \
    VECTOR total = (VECTOR)FIRST_VALUE;                                                         \
    for (int ky = ky_begin; ky < ky_end; ++ky) {                                                \
      __global const float* from =                                                              \
          image + (top + ky * p.dilation_y) * p.in_line + left * p.in_pixel + c * p.in_channel; \
      for (int kx = kx_begin; kx < kx_end; ++kx) {                                              \
        total = TAKE(total, GET(from + kx * tap_step));                                         \
      }                                                                                         \
    }                                                                                           \
    PUT(total* factor, to + x * p.out_pixel + c * p.out_channel);                               \
  }

#if SHARED

// For large windows, a few outputs of which are a whole image: a group to each vector of outputs,
// whose work-items take turns along the window.
__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void pool(
    __global const float* input, __global float* output, struct WindowArguments p) {
  __local VECTOR shares[WORK_ITEMS];
  const int item = get_local_id(0);
  const int vectors = (p.channels + LANES - 1) / LANES;
  const int c = get_group_id(0) % vectors * LANES;
  const int x = get_group_id(0) / vectors % p.box_width;
  const int y = get_group_id(0) / vectors / p.box_width % p.box_height;
  const int n = get_group_id(0) / vectors / p.box_width / p.box_height;
  const int top = (y + p.first_y) * p.stride_y - p.pad_top;
  const int left = (x + p.first_x) * p.stride_x - p.pad_left;
  const int ky_begin = first_tap(top, p.dilation_y);
  const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
  const int kx_begin = first_tap(left, p.dilation_x);
  const int kx_end = last_tap(left, p.dilation_x, p.in_width, p.kernel_width);
  const int columns = max(0, kx_end - kx_begin);
  const int taps = max(0, ky_end - ky_begin) * columns;
  __global const float* image = input + n * p.in_image + c * p.in_channel;
  VECTOR total = (VECTOR)FIRST_VALUE;
  for (int tap = item; tap < taps; tap += WORK_ITEMS) {
    const int in_y = top + (ky_begin + tap / columns) * p.dilation_y;
    const int in_x = left + (kx_begin + tap % columns) * p.dilation_x;
    total = TAKE(total, GET_SOME(image + in_y * p.in_line + in_x * p.in_pixel));
  }
  shares[item] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int distance = WORK_ITEMS / 2; distance > 0; distance /= 2) {
    if (item < distance) shares[item] = TAKE(shares[item], shares[item + distance]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) {
    PUT_SOME(shares[0] * WINDOW_FACTOR,
             output + n * p.out_image + y * p.out_line + x * p.out_pixel + c * p.out_channel);
  }
}

#else

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void pool(
    __global const float* input, __global float* output, struct WindowArguments p) {
  const int end_x = END_X;
  const int first_channel = FIRST_CHANNEL;
  const int end_channel = END_CHANNEL;
  const int end_line = END_LINE;
  const long tap_step = p.dilation_x * p.in_pixel;
  for (int line = FIRST_LINE; line < end_line; ++line) {
    const int y = line % p.box_height;
    __global const float* image = input + line / p.box_height * p.in_image;
    __global float* to = output + line / p.box_height * p.out_image + y * p.out_line;
    const int top = (y + p.first_y) * p.stride_y - p.pad_top;
    const int ky_begin = first_tap(top, p.dilation_y);
    const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
    for (int x = FIRST_X; x < end_x; ++x) {
      const int left = (x + p.first_x) * p.stride_x - p.pad_left;
      const int kx_begin = first_tap(left, p.dilation_x);
      const int kx_end = last_tap(left, p.dilation_x, p.in_width, p.kernel_width);
      const float factor = WINDOW_FACTOR;
      int c = first_channel;
      for (; c + LANES <= end_channel; c += LANES) {
        POOL_PIXEL(GET_ALL, PUT_ALL)
      }
      if (c < end_channel) {
        POOL_PIXEL(GET_SOME, PUT_SOME)
      }
    }
  }
}

#endif

#endif
