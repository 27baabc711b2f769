// Depthwise convolution and pooling: rows are lines of output pixels, work-items of a group share
// the channels of a pixel. Build options: DEPTHWISE, MAXIMUM or AVERAGE is 1; WINDOW_PIXELS is the
// number of neighbouring pixels whose sums a work-item keeps in registers.

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

// Sums of `PIXELS` neighbouring pixels, of the first of which the window starts at column `left`;
// all of their taps [kx_begin, kx_end) lie inside the image.
#define SUM_PIXELS(PIXELS, kx_begin, kx_end, GET, PUT)                                          \
  {                                                                                             \
    VECTOR sums[PIXELS];                                                                        \
    _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) sums[i] = shift;                         \
    for (int ky = ky_begin; ky < ky_end; ++ky) {                                                \
      __global const float* from =                                                              \
          input + (top + ky * p.dilation_y) * p.in_line + left * p.in_pixel + c * p.in_channel; \
      __global const float* w = weights + ky * p.kernel_width * p.weight_stride + c;            \
      for (int kx = (kx_begin); kx < (kx_end); ++kx) {                                          \
        const VECTOR factor = LOAD(w + kx * p.weight_stride);                                   \
        _Pragma("unroll") for (int i = 0; i < PIXELS; ++i) {                                    \
          sums[i] = fma(GET(from + kx * tap_step + i * step), factor, sums[i]);                 \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
    for (int i = 0; i < PIXELS; ++i) {                                                          \
      VECTOR v = sums[i];                                                                       \
      if (p.has_residual) {                                                                     \
        v += GET(residual + (x + i) * p.residual_pixel + c * p.residual_channel);               \
      }                                                                                         \
      PUT(activate(v, p.function, p.alpha, p.beta),                                             \
          output + (x + i) * p.out_pixel + c * p.out_channel);                                  \
    }                                                                                           \
  }

// One line of output pixels, those channels from `c` on that GET and PUT take. `room` pixels from x
// on have windows inside the image.
#define SUM_LINE(GET, PUT)                                                                     \
  const VECTOR shift = p.has_bias ? LOAD(bias + c) : (VECTOR)0.0f;                             \
  for (int x = 0; x < p.box_width;) {                                                          \
    const int left = (x + p.first_x) * p.stride_x - p.pad_left;                                \
    const int spare = p.in_width - 1 - reach - left;                                           \
    const int room = left < 0 || spare < 0 ? 0 : min(p.box_width - x, spare / p.stride_x + 1); \
    if (room >= WINDOW_PIXELS) {                                                               \
      SUM_PIXELS(WINDOW_PIXELS, 0, p.kernel_width, GET, PUT)                                   \
      x += WINDOW_PIXELS;                                                                      \
    } else if (room >= SOME_PIXELS) {                                                          \
      SUM_PIXELS(SOME_PIXELS, 0, p.kernel_width, GET, PUT)                                     \
      x += SOME_PIXELS;                                                                        \
    } else {                                                                                   \
      SUM_PIXELS(1, first_tap(left, p.dilation_x),                                             \
                 last_tap(left, p.dilation_x, p.in_width, p.kernel_width), GET, PUT)           \
      x += 1;                                                                                  \
    }                                                                                          \
  }

// What a line's remainder is taken in, before single pixels.
#define SOME_PIXELS (WINDOW_PIXELS / 2 + WINDOW_PIXELS % 2)

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void depthwise(
    __global const float* input, __global const float* weights, __global const float* bias,
    __global const float* residual, __global float* output, struct WindowArguments p) {
  const int line = get_group_id(0);
  const int image = line / p.box_height;
  const int y = line % p.box_height;
  input += image * p.in_image;
  output += image * p.out_image + y * p.out_line;
  residual += image * p.residual_image + y * p.residual_line;
  const int top = (y + p.first_y) * p.stride_y - p.pad_top;
  const int ky_begin = first_tap(top, p.dilation_y);
  const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
  const int reach = (p.kernel_width - 1) * p.dilation_x;
  const long step = p.stride_x * p.in_pixel;
  const long tap_step = p.dilation_x * p.in_pixel;
  int c = get_local_id(0) * LANES;
  for (; c + LANES <= p.channels; c += WORK_ITEMS * LANES) {
    SUM_LINE(GET_ALL, PUT_ALL)
  }
  if (c < p.channels) {
    SUM_LINE(GET_SOME, PUT_SOME)
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
  const int line = get_group_id(0);
  const int image = line / p.box_height;
  const int y = line % p.box_height;
  input += image * p.in_image;
  output += image * p.out_image + y * p.out_line;
  const int top = (y + p.first_y) * p.stride_y - p.pad_top;
  const int ky_begin = first_tap(top, p.dilation_y);
  const int ky_end = last_tap(top, p.dilation_y, p.in_height, p.kernel_height);
  const long tap_step = p.dilation_x * p.in_pixel;
  for (int x = 0; x < p.box_width; ++x) {
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
    int c = get_local_id(0) * LANES;
    for (; c + LANES <= p.channels; c += WORK_ITEMS * LANES) {
      POOL_PIXEL(GET_ALL, PUT_ALL)
    }
    if (c < p.channels) {
      POOL_PIXEL(GET_SOME, PUT_SOME)
    }
  }
}

#endif
