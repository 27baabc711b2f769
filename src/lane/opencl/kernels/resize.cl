// Resampling of images: each output pixel mixes taps x taps input pixels.

// How memory is reached: whole vectors, or what is left of the channels at `c`.
#define GET_ALL(from) LOAD(from)
#define PUT_ALL(v, to) STORE(v, to)
#define GET_SOME(from) load_some(from, p.channels - c)
#define PUT_SOME(v, to) store_some(v, to, p.channels - c)

#define MIX_PIXEL(GET, PUT)                                                             \
  {                                                                                     \
    VECTOR v = (VECTOR)0.0f;                                                            \
    for (int i = first_line; i < first_line + p.taps; ++i) {                            \
      __global const float* from = image + lines[i] * p.in_line + c * p.in_channel;     \
      VECTOR sum = (VECTOR)0.0f;                                                        \
      for (int j = first_column; j < first_column + p.taps; ++j) {                      \
        sum = fma(GET(from + columns[j] * p.in_pixel), (VECTOR)column_weights[j], sum); \
      }                                                                                 \
      v = fma(sum, (VECTOR)line_weights[i], v);                                         \
    }                                                                                   \
    PUT(v, to + x * p.out_pixel + c * p.out_channel);                                   \
  }

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void resize(
    __global const float* input, __global const int* lines, __global const float* line_weights,
    __global const int* columns, __global const float* column_weights, __global float* output,
    struct ResizeArguments p) {
  const int first_channel = FIRST_CHANNEL;
  const int end_channel = END_CHANNEL;
  const int first_x = FIRST_X;
  const int end_x = END_X;
  const int end_line = END_LINE;
  for (int line = FIRST_LINE; line < end_line; ++line) {
    const int y = line % p.box_height;
    const int first_line = (y + p.first_y) * p.taps;
    __global const float* image = input + line / p.box_height * p.in_image;
    __global float* to = output + line / p.box_height * p.out_image + y * p.out_line;
    for (int x = first_x; x < end_x; ++x) {
      const int first_column = (x + p.first_x) * p.taps;
      int c = first_channel;
      for (; c + LANES <= end_channel; c += LANES) {
        MIX_PIXEL(GET_ALL, PUT_ALL)
      }
      if (c < end_channel) {
        MIX_PIXEL(GET_SOME, PUT_SOME)
      }
    }
  }
}
