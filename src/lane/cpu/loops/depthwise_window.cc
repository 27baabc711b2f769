#include "lane/cpu/loops/depthwise_window.h"

#include <algorithm>

#include "lane/cpu/loops/vectors.h"

namespace tandem::cpu {
namespace {

// Pixels of a row that are computed together: their sums, and the inputs that they share, stay in
// registers.
constexpr int kPixels = 4;

// kRows x kCount pixels, one vector of channels. kEdge: taps may lie beside the image.
template <int kWidth, int kSize, int kStep, int kRows, int kCount, bool kEdge>
TANDEM_INLINE void block(const WindowRun& r, int64_t pixel, int64_t c) {
  using Vector = typename VectorOf<kWidth>::Type;
  constexpr int kColumns = (kCount - 1) * kStep + kSize;
  Vector sum[kRows][kCount];
  const Vector bias = load<kWidth>(r.bias + c);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) sum[i][p] = bias;
  }
  const float* const corner = r.input + pixel * kStep * r.input_pixel + c;
  const int64_t column = r.first_column + pixel * kStep;
#pragma GCC unroll 16
  for (int y = 0; y < kSize + (kRows - 1) * kStep; ++y) {
    if (y < r.inside_begin || y >= r.inside_end) continue;
    const float* const input = corner + y * r.input_row;
    Vector x[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) {
      if (kEdge && (column + i < 0 || column + i >= r.image_width)) {
        x[i] = Vector{};
      } else {
        x[i] = load<kWidth>(input + i * r.input_pixel);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kRows; ++i) {
      const int tap_row = y - i * kStep;
      if (tap_row < 0 || tap_row >= kSize) continue;
#pragma GCC unroll 8
      for (int t = 0; t < kSize; ++t) {
        const Vector w = load<kWidth>(r.weights + (tap_row * kSize + t) * r.weight_tap + c);
#pragma GCC unroll 8
        for (int p = 0; p < kCount; ++p) sum[i][p] += w * x[p * kStep + t];
      }
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) {
      Vector v = sum[i][p];
      if (r.residual != nullptr) {
        v += load<kWidth>(r.residual + i * r.residual_row + (pixel + p) * r.residual_pixel + c);
      }
      limit<kWidth>(v, r.low, r.high);
      at_vector<kWidth>(r.output + i * r.output_row + (pixel + p) * r.output_pixel + c) = v;
    }
  }
}

template <int kWidth, int kSize, int kStep, int kRows, int kCount, bool kEdge>
TANDEM_INLINE void channels(const WindowRun& r, int64_t pixel) {
  int64_t c = 0;
  for (; c + kWidth <= r.channels; c += kWidth) {
    block<kWidth, kSize, kStep, kRows, kCount, kEdge>(r, pixel, c);
  }
  // The rest, and some channels once more.
  if (c < r.channels) {
    block<kWidth, kSize, kStep, kRows, kCount, kEdge>(r, pixel, r.channels - kWidth);
  }
}

template <int kWidth, int kSize, int kStep, int kRows>
TANDEM_INLINE void pixels(const WindowRun& r) {
  // Pixels whose windows lie within the image's columns.
  const int64_t begin = r.first_column >= 0 ? 0 : (-r.first_column + kStep - 1) / kStep;
  const int64_t room = r.image_width - kSize - r.first_column;
  const int64_t end = room < 0 ? 0 : room / kStep + 1;
  for (int64_t p = 0; p < r.pixels;) {
    const int64_t left = r.pixels - p;
    if (left >= kPixels && p >= begin && p + kPixels <= end) {
      channels<kWidth, kSize, kStep, kRows, kPixels, false>(r, p);
      p += kPixels;
    } else if (left >= kPixels) {
      channels<kWidth, kSize, kStep, kRows, kPixels, true>(r, p);
      p += kPixels;
    } else if (left >= 2) {
      channels<kWidth, kSize, kStep, kRows, 2, true>(r, p);
      p += 2;
    } else {
      channels<kWidth, kSize, kStep, kRows, 1, true>(r, p);
      p += 1;
    }
  }
}

template <int kWidth, int kSize, int kStep>
TANDEM_INLINE void rows(const WindowRun& r) {
  if (r.rows == 2) {
    pixels<kWidth, kSize, kStep, 2>(r);
  } else {
    pixels<kWidth, kSize, kStep, 1>(r);
  }
}

template <int kSize, int kStep>
void run_baseline(const WindowRun& r) {
  rows<4, kSize, kStep>(r);
}

#if defined(__x86_64__)
template <int kSize, int kStep>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void run_avx512(
    const WindowRun& r) {
  rows<16, kSize, kStep>(r);
}
template <int kSize, int kStep>
__attribute__((target("avx2,fma"))) void run_avx2(const WindowRun& r) {
  rows<8, kSize, kStep>(r);
}
#endif

template <int kSize, int kStep>
WindowKernel best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return {kSize, kStep, 16, run_avx512<kSize, kStep>};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {kSize, kStep, 8, run_avx2<kSize, kStep>};
  }
#endif
  return {kSize, kStep, 4, run_baseline<kSize, kStep>};
}

}  // namespace

WindowKernel window_kernel(int64_t size, int64_t step) {
  static const WindowKernel kernels[] = {best<3, 1>(), best<3, 2>(), best<5, 1>(), best<5, 2>()};
  for (const WindowKernel& kernel : kernels) {
    if (kernel.size == size && kernel.step == step) return kernel;
  }
  return {};
}

}  // namespace tandem::cpu
