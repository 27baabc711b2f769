// Resampling of images: each output pixel mixes taps x taps input pixels.

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void resize(
    __global const float* input, __global const int* lines, __global const float* line_weights,
    __global const int* columns, __global const float* column_weights, __global float* output,
    struct ResizeArguments p) {
  const int line = get_group_id(0);
  const int image = line / p.box_height;
  const int y = line % p.box_height;
  const int first_line = (y + p.first_y) * p.taps;
  for (int x = 0; x < p.box_width; ++x) {
    const int first_column = (x + p.first_x) * p.taps;
    for (int c = get_local_id(0) * LANES; c < p.channels; c += WORK_ITEMS * LANES) {
      const int count = min(LANES, p.channels - c);
      __global const float* from = input + image * p.in_image + c * p.in_channel;
      VECTOR v = (VECTOR)0.0f;
      for (int i = first_line; i < first_line + p.taps; ++i) {
        VECTOR sum = (VECTOR)0.0f;
        for (int j = first_column; j < first_column + p.taps; ++j) {
          sum = fma(load_some(from + lines[i] * p.in_line + columns[j] * p.in_pixel, count),
                    (VECTOR)column_weights[j], sum);
        }
        v = fma(sum, (VECTOR)line_weights[i], v);
      }
      store_some(v, output + image * p.out_image + y * p.out_line + x * p.out_pixel +
                        c * p.out_channel,
                 count);
    }
  }
}
