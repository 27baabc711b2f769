#include "lane/opencl/winograd.h"

#include <array>
#include <cstddef>

namespace tandem::opencl {
namespace {

using FilterRow = std::array<double, 3>;

// Rows of G: for an interpolation point p, 1, p and p^2 over the product of its distances to the
// other finite points; the last row is that of infinity. Points as in kernels/winograd.cl.
constexpr std::array<FilterRow, 4> kFilter2 = {{{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}};

constexpr double kA = 0.625, kB = 1.5;
constexpr FilterRow finite(double p, double distances) {
  return {1 / distances, p / distances, p * p / distances};
}
constexpr double kDistancesA = 2 * kA * kA * (kA * kA - kB * kB);
constexpr double kDistancesB = 2 * kB * kB * (kB * kB - kA * kA);
constexpr std::array<FilterRow, 6> kFilter4 = {{finite(0, kA* kA* kB* kB), finite(kA, kDistancesA),
                                                finite(-kA, kDistancesA), finite(kB, kDistancesB),
                                                finite(-kB, kDistancesB), FilterRow{0, 0, 1}}};

template <size_t side>
void transform(const std::array<FilterRow, side>& g, const float* filter, double* points) {
  for (size_t y = 0; y < side; ++y) {
    FilterRow row{};
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) row[j] += g[y][i] * filter[i * 3 + j];
    }
    for (size_t x = 0; x < side; ++x) {
      points[y * side + x] = g[x][0] * row[0] + g[x][1] * row[1] + g[x][2] * row[2];
    }
  }
}

}  // namespace

void transform_filter(WinogradVariant variant, const float* filter, double* points) {
  if (variant.outputs == 2) {
    transform(kFilter2, filter, points);
  } else {
    transform(kFilter4, filter, points);
  }
}

}  // namespace tandem::opencl
