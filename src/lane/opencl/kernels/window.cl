// Depthwise convolution and pooling. Build options: DEPTHWISE, MAXIMUM or AVERAGE is 1. For
// depthwise convolution: WINDOW_PIXELS, the number of neighbouring pixels whose sums a work-item
// keeps in registers; KERNEL_WIDTH, STRIDE_X, DILATION_X.

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
// that lie inside the image. Strides are constants, so that neighbours share what they load.
#define SUM_PIXELS(PIXELS, COLUMNS, GET, PUT)                                                   \
  {                                                                                             \
    const VECTOR shift = p.has_bias ? LOAD(bias + c) : (VECTOR)0.0f;                            \
    VECTOR sums[PIXELS];                                                                        \
    _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) sums[i] = shift;                         \
    for (int ky = ky_begin; ky < ky_end; ++ky) {                                                \
      __global const float* from =                                                              \
          input + (top + ky * p.dilation_y) * p.in_line + left * p.in_pixel + c * p.in_channel; \
      __global const float* w = weights + ky * KERNEL_WIDTH * p.weight_stride + c;              \
      COLUMNS {                                                                                 \
        const VECTOR factor = LOAD(w + kx * p.weight_stride);                                   \
        _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) {                                    \
          sums[i] =                                                                             \
              fma(GET(from + (kx * DILATION_X + i * STRIDE_X) * p.in_pixel), factor, sums[i]);  \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
    __global const float* added = residual + x * p.residual_pixel + c * p.residual_channel;     \
    __global float* to = output + x * p.out_pixel + c * p.out_channel;                          \
    if (bounds) {                                                                               \
      _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) {                                      \
        if (p.has_residual) sums[i] += GET(added + i * p.residual_pixel);                       \
        PUT(bound(sums[i], low, high), to + i * p.out_pixel);                                   \
      }                                                                                         \
    } else {                                                                                    \
      for (int i = 0; i < PIXELS; ++i) {                                                        \
        VECTOR v = sums[i];                                                                     \
        if (p.has_residual) v += GET(added + i * p.residual_pixel);                             \
        PUT(activate(v, p.function, p.alpha, p.beta), to + i * p.out_pixel);                    \
      }                                                                                         \
    }                                                                                           \
  }

// All channels of `PIXELS` pixels: channels in the inner loop, as memory has them.
#define SUM_CHANNELS(PIXELS, COLUMNS)                 \
  {                                                   \
    int c = first_channel;                            \
    for (; c + LANES <= end_channel; c += LANES) {    \
      SUM_PIXELS(PIXELS, COLUMNS, GET_ALL, PUT_ALL)   \
    }                                                 \
    if (c < end_channel) {                            \
      SUM_PIXELS(PIXELS, COLUMNS, GET_SOME, PUT_SOME) \
    }                                                 \
  }

// What a line's remainder is taken in, before single pixels.
#define SOME_PIXELS (WINDOW_PIXELS / 2 + WINDOW_PIXELS % 2)

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void depthwise(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, struct WindowArguments p) {
  const int line = LINE;
  if (line >= p.images * p.box_height) return;
  const int end_x = END_X;
  const int first_channel = FIRST_CHANNEL;
  const int end_channel = END_CHANNEL;
  const int image = line / p.box_height;
  const int y = line % p.box_height;
  input += image * p.in_image;
  output += image * p.out_image + y * p.out_line;
  residual += image * p.residual_image + y * p.residual_line;
  const int top = (y + p.first_y) * p.stride_y - p.pad_top;
  const int ky_begin = first_tap(top, p.dilation_y);
  const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
  const int reach = (KERNEL_WIDTH - 1) * DILATION_X;
  const bool bounds = is_bounds(p.function);
  const VECTOR low = (VECTOR)lower_bound(p.function, p.alpha);
  const VECTOR high = (VECTOR)upper_bound(p.function, p.beta);
  for (int x = FIRST_X; x < end_x;) {
    const int left = (x + p.first_x) * STRIDE_X - p.pad_left;
    // Pixels from x on with windows inside the image.
    const int spare = p.in_width - 1 - reach - left;
    const int room = left < 0 || spare < 0 ? 0 : min(end_x - x, spare / STRIDE_X + 1);
    if (room >= WINDOW_PIXELS) {
      SUM_CHANNELS(WINDOW_PIXELS, ALL_COLUMNS)
      x += WINDOW_PIXELS;
    } else if (room >= SOME_PIXELS) {
      SUM_CHANNELS(SOME_PIXELS, ALL_COLUMNS)
      x += SOME_PIXELS;
    } else {
      const int kx_begin = first_tap(left, DILATION_X);
      const int kx_end = last_tap(left, DILATION_X, p.in_width, KERNEL_WIDTH);
      SUM_CHANNELS(1, INNER_COLUMNS)
      x += 1;
    }
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

// The window of one pixel at channel `c`; `factor` is 1 for maxima.
#define POOL_PIXEL(GET, PUT)                                                                    \
  {                                                                                             \
    VECTOR total = (VECTOR)FIRST_VALUE;                                                         \
    for (int ky = ky_begin; ky < ky_end; ++ky) {                                                \
      __global const float* from =                                                              \
          input + (top + ky * p.dilation_y) * p.in_line + left * p.in_pixel + c * p.in_channel; \
      for (int kx = kx_begin; kx < kx_end; ++kx) {                                              \
        total = TAKE(total, GET(from + kx * tap_step));                                         \
      }                                                                                         \
    }                                                                                           \
    PUT(total* factor, output + x * p.out_pixel + c * p.out_channel);                           \
  }

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void pool(
    __global const float* input, __global float* output, struct WindowArguments p) {
  const int line = LINE;
  if (line >= p.images * p.box_height) return;
  const int end_x = END_X;
  const int first_channel = FIRST_CHANNEL;
  const int end_channel = END_CHANNEL;
  const int image = line / p.box_height;
  const int y = line % p.box_height;
  input += image * p.in_image;
  output += image * p.out_image + y * p.out_line;
  const int top = (y + p.first_y) * p.stride_y - p.pad_top;
  const int ky_begin = first_tap(top, p.dilation_y);
  const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
  const long tap_step = p.dilation_x * p.in_pixel;
  for (int x = FIRST_X; x < end_x; ++x) {
    const int left = (x + p.first_x) * p.stride_x - p.pad_left;
    const int kx_begin = first_tap(left, p.dilation_x);
    const int kx_end = last_tap(left, p.dilation_x, p.in_width, p.kernel_width);
    float factor = 1.0f;
#if AVERAGE
    // With pads counted, the window still ends where the bottom and right pads do.
    const int rows = p.count_pads
                         ? last_tap(top, p.dilation_y, p.in_height + p.pad_bottom, p.kernel_height)
                         : max(0, ky_end - ky_begin);
    const int columns = p.count_pads
                            ? last_tap(left, p.dilation_x, p.in_width + p.pad_right, p.kernel_width)
                            : max(0, kx_end - kx_begin);
    factor = 1.0f / (float)(rows * columns);
#endif
    int c = first_channel;
    for (; c + LANES <= end_channel; c += LANES) {
      POOL_PIXEL(GET_ALL, PUT_ALL)
    }
    if (c < end_channel) {
      POOL_PIXEL(GET_SOME, PUT_SOME)
    }
  }
}

#endif
