#include "lane/cpu/loops/tile_gemm.h"

#include <array>
#include <utility>

#include "lane/cpu/multiversion.h"

namespace tandem::cpu {
namespace {

// kWidth floats in one register. May lie at any address of a float.
template <int kWidth>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));
};

// Weights are fetched this many steps of the depth ahead.
constexpr int kPrefetch = 24;

template <int kRows, int kPanels, int kWidth>
TANDEM_INLINE void multiply(const Tile& t) {
  using Vector = typename VectorOf<kWidth>::Type;
  constexpr int kPerPanel = kPanel / kWidth;
  constexpr int kVectors = kPanels * kPerPanel;
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) {
      const float* from = t.bias != nullptr ? t.bias : t.c + t.c_rows[m];
      sum[m][n] = *reinterpret_cast<const Vector*>(from + n * kWidth);
    }
  }
  // What the end of the tile touches has the whole depth's time to arrive.
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int n = 0; n < kPanels; ++n) {
      if (t.bias != nullptr) __builtin_prefetch(t.c + t.c_rows[m] + n * kPanel, 1);
      if (t.residual != nullptr) {
        __builtin_prefetch(t.residual + t.residual_rows[m] + n * kPanel);
      }
    }
  }
  const float* a = t.a;
  const float* b = t.b;
  for (int64_t k = 0; k < t.depth; ++k, ++a, b += kPanel) {
    Vector weights[kVectors];
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) {
      const float* from = b + n / kPerPanel * t.panel_stride + n % kPerPanel * kWidth;
      weights[n] = *reinterpret_cast<const Vector*>(from);
      if (n % kPerPanel == 0) __builtin_prefetch(from + kPrefetch * kPanel);
    }
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const float x = a[m * kPackedStride];
#pragma GCC unroll 16
      for (int n = 0; n < kVectors; ++n) sum[m][n] += x * weights[n];
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) {
      Vector v = sum[m][n];
      if (t.residual != nullptr) {
        v += *reinterpret_cast<const Vector*>(t.residual + t.residual_rows[m] + n * kWidth);
      }
      v = v < t.low ? Vector{} + t.low : v;
      v = v > t.high ? Vector{} + t.high : v;
      *reinterpret_cast<Vector*>(t.c + t.c_rows[m] + n * kWidth) = v;
    }
  }
}

using Function = void (*)(const Tile&);

#if defined(__x86_64__)

// 32 registers of 16 floats: 28 sums, 2 vectors of weights, 1 factor.
template <int kRows, int kPanels>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void multiply_avx512(
    const Tile& t) {
  multiply<kRows, kPanels, 16>(t);
}

template <int kPanels, int... kRows>
constexpr std::array<Function, sizeof...(kRows)> avx512_row(std::integer_sequence<int, kRows...>) {
  return {multiply_avx512<kRows + 1, kPanels>...};
}

void run_avx512(const Tile& t, int rows, int panels) {
  static constexpr auto kOne = avx512_row<1>(std::make_integer_sequence<int, 14>());
  static constexpr auto kTwo = avx512_row<2>(std::make_integer_sequence<int, 14>());
  static constexpr auto kThree = avx512_row<3>(std::make_integer_sequence<int, 8>());
  static constexpr auto kFour = avx512_row<4>(std::make_integer_sequence<int, 6>());
  const Function* const table[] = {kOne.data(), kTwo.data(), kThree.data(), kFour.data()};
  table[panels - 1][rows - 1](t);
}

constexpr TileGemm kAvx512 = {
    .max_rows = 14,
    .panels = [](int rows) { return rows <= 6   ? 4
                                    : rows <= 8 ? 3
                                                : 2; },
    .run = run_avx512,
};

// 16 registers of 8 floats: 12 sums, 2 vectors of weights, 1 factor.
template <int kRows, int kPanels>
__attribute__((target("avx2,fma"))) void multiply_avx2(const Tile& t) {
  multiply<kRows, kPanels, 8>(t);
}

template <int kPanels, int... kRows>
constexpr std::array<Function, sizeof...(kRows)> avx2_row(std::integer_sequence<int, kRows...>) {
  return {multiply_avx2<kRows + 1, kPanels>...};
}

void run_avx2(const Tile& t, int rows, int panels) {
  static constexpr auto kOne = avx2_row<1>(std::make_integer_sequence<int, 6>());
  static constexpr auto kTwo = avx2_row<2>(std::make_integer_sequence<int, 2>());
  (panels == 1 ? kOne[rows - 1] : kTwo[rows - 1])(t);
}

constexpr TileGemm kAvx2 = {
    .max_rows = 6,
    .panels = [](int rows) { return rows <= 2 ? 2 : 1; },
    .run = run_avx2,
};

#endif

// Registers of 4 floats: 16 of them at the least (SSE2), 32 on 64-bit Arm.
#if defined(__aarch64__)
constexpr int kBaselineRows = 6;
#else
constexpr int kBaselineRows = 3;
#endif

template <int... kRows>
constexpr std::array<Function, sizeof...(kRows)> baseline_row(
    std::integer_sequence<int, kRows...>) {
  return {multiply<kRows + 1, 1, 4>...};
}

void run_baseline(const Tile& t, int rows, int) {
  static constexpr auto kOne = baseline_row(std::make_integer_sequence<int, kBaselineRows>());
  kOne[rows - 1](t);
}

constexpr TileGemm kBaseline = {
    .max_rows = kBaselineRows,
    .panels = [](int) { return 1; },
    .run = run_baseline,
};

std::vector<TileGemm> usable() {
  std::vector<TileGemm> list;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    list.push_back(kAvx512);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list.push_back(kAvx2);
#endif
  list.push_back(kBaseline);
  return list;
}

}  // namespace

const std::vector<TileGemm>& tile_gemms() {
  static const std::vector<TileGemm> list = usable();
  return list;
}

const TileGemm& tile_gemm() { return tile_gemms().front(); }

}  // namespace tandem::cpu
