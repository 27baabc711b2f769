// Depthwise convolution with the frequent windows: 3x3 and 5x5, without dilation.
#pragma once

#include <cstdint>

namespace tandem::cpu {

// A run of output pixels in one row, or in two rows below each other.
struct WindowRun {
  int64_t pixels = 0, channels = 0;
  int rows = 1;  // of the output, 1 or 2
  // Under the first tap of the first pixel. May lie outside of the image: what does is not read.
  const float* input = nullptr;
  int64_t input_row = 0, input_pixel = 0;  // strides
  int64_t first_column = 0, image_width = 0;
  int inside_begin = 0, inside_end = 0;  // rows under the window(s) that lie in the image

  const float* weights = nullptr;  // [tap][channel]
  int64_t weight_tap = 0;
  const float* bias = nullptr;
  float* output = nullptr;
  int64_t output_row = 0, output_pixel = 0;
  const float* residual = nullptr;  // or null
  int64_t residual_row = 0, residual_pixel = 0;
  float low = 0, high = 0;
};

// Runs of one kernel size and stride.
struct WindowKernel {
  int size = 0, step = 0;
  int least_channels = 0;  // that a run must have
  void (*run)(const WindowRun& run) = nullptr;
};

// The kernel for windows of size x size with the given stride on this processor; none (run is null)
// for others.
WindowKernel window_kernel(int64_t size, int64_t step);

}  // namespace tandem::cpu
