#include "graph/resize.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

// The output position in the input's coordinates.
double source_position(const ResizeAttributes& resize, double scale, int64_t input_extent,
                       int64_t output_extent, int64_t output_index) {
  const double x = static_cast<double>(output_index);
  switch (resize.coordinates) {
    case ResizeAttributes::Coordinates::kHalfPixel:
      return (x + 0.5) / scale - 0.5;
    case ResizeAttributes::Coordinates::kPytorchHalfPixel:
      return output_extent > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ResizeAttributes::Coordinates::kAlignCorners: {
      if (output_extent == 1) return 0;
      // ONNX aligns the corner of the extent before it is rounded down. A scale that stands for a
      // whole extent comes close to it only as far as a float can.
      double extent = scale * static_cast<double>(input_extent);
      const double rounded = static_cast<double>(output_extent);
      if (std::abs(extent - rounded) < 1e-5 * rounded) extent = rounded;
      return x * static_cast<double>(input_extent - 1) / (extent - 1);
    }
    case ResizeAttributes::Coordinates::kAsymmetric:
      return x / scale;
  }
  return 0;
}

int64_t nearest_index(ResizeAttributes::Nearest nearest, double position) {
  const double floor = std::floor(position);
  const bool tie = position - floor == 0.5;
  switch (nearest) {
    case ResizeAttributes::Nearest::kRoundPreferFloor:
      return static_cast<int64_t>(tie ? floor : std::round(position));
    case ResizeAttributes::Nearest::kRoundPreferCeil:
      return static_cast<int64_t>(tie ? floor + 1 : std::round(position));
    case ResizeAttributes::Nearest::kFloor:
      return static_cast<int64_t>(floor);
    case ResizeAttributes::Nearest::kCeil:
      return static_cast<int64_t>(std::ceil(position));
  }
  return 0;
}

// Keys' cubic convolution kernel.
double cubic_weight(double a, double distance) {
  const double t = std::abs(distance);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

}  // namespace

ResizeTaps resize_taps(const ResizeAttributes& resize, int direction, int64_t input_extent,
                       int64_t output_extent, int64_t output_index) {
  const double position =
      source_position(resize, resize.scale[direction], input_extent, output_extent, output_index);
  const int64_t floor = static_cast<int64_t>(std::floor(position));
  const double fraction = position - std::floor(position);
  ResizeTaps taps;
  switch (resize.mode) {
    case ResizeAttributes::Mode::kNearest:
      taps.count = 1;
      taps.index = {nearest_index(resize.nearest, position)};
      taps.weight = {1};
      break;
    case ResizeAttributes::Mode::kLinear:
      taps.count = 2;
      taps.index = {floor, floor + 1};
      taps.weight = {1 - fraction, fraction};
      break;
    case ResizeAttributes::Mode::kCubic:
      taps.count = 4;
      for (int i = 0; i < 4; ++i) {
        taps.index[i] = floor - 1 + i;
        taps.weight[i] = cubic_weight(resize.cubic_a, fraction - (i - 1));
      }
      break;
  }
  for (int i = 0; i < taps.count; ++i) {
    taps.index[i] = std::clamp<int64_t>(taps.index[i], 0, input_extent - 1);
  }
  return taps;
}

}  // namespace tandem
