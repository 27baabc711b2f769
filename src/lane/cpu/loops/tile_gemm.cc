#include "lane/cpu/loops/tile_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "lane/cpu/loops/vectors.h"

namespace tandem::cpu {
namespace {

// The right operand is fetched this many steps of the depth ahead.
constexpr int kPrefetch = 24;

// Rows are addressed as base, base + stride and base + 2 * stride: that many share one register.
constexpr int kRowsPerBase = 3;

// Steps of the depth between two adjustments of the pointers.
constexpr int kUnroll = 2;

// Fewer than kPanel floats.
TANDEM_INLINE void copy_tail(float* to, const float* from, int64_t count) {
  if (count & 8) {
    std::memcpy(to, from, 8 * sizeof(float));
    to += 8, from += 8;
  }
  if (count & 4) {
    std::memcpy(to, from, 4 * sizeof(float));
    to += 4, from += 4;
  }
  if (count & 2) {
    std::memcpy(to, from, 2 * sizeof(float));
    to += 2, from += 2;
  }
  if (count & 1) *to = *from;
}

// kRows rows at `stride`, walked along the depth.
template <int kRows>
struct Rows {
  static constexpr int kBases = (kRows + kRowsPerBase - 1) / kRowsPerBase;
  const float* base[kBases];

  TANDEM_INLINE void start(const float* first, int64_t stride) {
#pragma GCC unroll 16
    for (int i = 0; i < kBases; ++i) {
      base[i] = first + i * kRowsPerBase * stride;
      // Else the compiler keeps a pointer a row, and there are not enough registers for them.
      asm("" : "+r"(base[i]));
    }
  }
  TANDEM_INLINE float at(int row, int64_t stride, int step) const {
    return base[row / kRowsPerBase][row % kRowsPerBase * stride + step];
  }
  TANDEM_INLINE void advance(int steps) {
#pragma GCC unroll 16
    for (int i = 0; i < kBases; ++i) base[i] += steps;
  }
};

template <int kRows, int kPanels, int kWidth>
struct Multiply {
  using Vector = typename VectorOf<kWidth>::Type;
  static constexpr int kPerPanel = kPanel / kWidth;
  static constexpr int kVectors = kPanels * kPerPanel;
  static constexpr int kWholeVectors = kVectors - kPerPanel;  // before the last panel

  Vector sum[kRows][kVectors];

  static TANDEM_INLINE const Vector& load(const float* p) { return cpu::load<kWidth>(p); }

  // The last panel of a row of `from`, of which `columns` floats exist, in a buffer.
  struct Tail {
    float floats[kPanel] __attribute__((aligned(64)));
    TANDEM_INLINE const float* fill(const float* from, int64_t columns) {
      if (columns == kPanel) return from;
      copy_tail(floats, from, columns);
      return floats;
    }
  };

  TANDEM_INLINE void begin(const Tile& t) {
    if (t.bias != nullptr) {
#pragma GCC unroll 16
      for (int n = 0; n < kVectors; ++n) {
        const Vector bias = load(t.bias + n * kWidth);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) sum[m][n] = bias;
      }
      return;
    }
    Tail tail = {};
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const float* from = t.c + t.c_rows[m];
      const float* last = tail.fill(from + kWholeVectors * kWidth, t.last_columns);
#pragma GCC unroll 16
      for (int n = 0; n < kVectors; ++n) {
        sum[m][n] =
            n < kWholeVectors ? load(from + n * kWidth) : load(last + (n - kWholeVectors) * kWidth);
      }
    }
  }

  // What the end of the tile touches has the whole depth's time to arrive.
  TANDEM_INLINE void prefetch_ends(const Tile& t) {
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
  }

  TANDEM_INLINE void step(const Rows<kRows>& a, int64_t stride, const float* b,
                          int64_t panel_stride, int k) {
    Vector weights[kVectors];
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) {
      const float* from = b + n / kPerPanel * panel_stride + (k * kPanel + n % kPerPanel * kWidth);
      weights[n] = load(from);
      if (n % kPerPanel == 0) __builtin_prefetch(from + kPrefetch * kPanel);
    }
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const float x = a.at(m, stride, k);
#pragma GCC unroll 16
      for (int n = 0; n < kVectors; ++n) sum[m][n] += x * weights[n];
    }
  }

  TANDEM_INLINE void accumulate(const Tile& t) {
    const int64_t stride = t.a_stride, panel_stride = t.panel_stride;
    const float* b = t.b;
    for (int64_t i = 0; i < t.segment_count; ++i) {
      Rows<kRows> a;
      a.start(t.a + t.segments[i].offset, stride);
      int64_t left = t.segments[i].count;
      for (; left >= kUnroll; left -= kUnroll, b += kUnroll * kPanel, a.advance(kUnroll)) {
#pragma GCC unroll 16
        for (int k = 0; k < kUnroll; ++k) step(a, stride, b, panel_stride, k);
      }
      for (; left > 0; --left, b += kPanel, a.advance(1)) step(a, stride, b, panel_stride, 0);
    }
  }

  TANDEM_INLINE void end(const Tile& t) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const bool limited = t.low > -kInfinity || t.high < kInfinity;
    Tail tail = {};
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      if (t.residual != nullptr) {
        const float* from = t.residual + t.residual_rows[m];
        const float* last = tail.fill(from + kWholeVectors * kWidth, t.last_columns);
#pragma GCC unroll 16
        for (int n = 0; n < kVectors; ++n) {
          sum[m][n] += n < kWholeVectors ? load(from + n * kWidth)
                                         : load(last + (n - kWholeVectors) * kWidth);
        }
      }
      float* to = t.c + t.c_rows[m];
#pragma GCC unroll 16
      for (int n = 0; n < kVectors; ++n) {
        Vector v = sum[m][n];
        if (limited) limit<kWidth>(v, t.low, t.high);
        const bool whole = n < kWholeVectors || t.last_columns == kPanel;
        float* target = whole ? to + n * kWidth : tail.floats + (n - kWholeVectors) * kWidth;
        at_vector<kWidth>(target) = v;
      }
      if (t.last_columns < kPanel) {
        copy_tail(to + kWholeVectors * kWidth, tail.floats, t.last_columns);
      }
    }
  }
};

template <int kRows, int kPanels, int kWidth>
TANDEM_INLINE void multiply(const Tile& t) {
  Multiply<kRows, kPanels, kWidth> product;
  product.begin(t);
  product.prefetch_ends(t);
  product.accumulate(t);
  product.end(t);
}

// One row and one panel: the sum is spread over registers, since one would wait for itself, and the
// right operand, which is what such products are limited by, is read as a single stream.
template <int kWidth>
TANDEM_INLINE void multiply_row(const Tile& t) {
  using Vector = typename VectorOf<kWidth>::Type;
  constexpr int kPerPanel = kPanel / kWidth;
  constexpr int kSteps = kWidth == 16 ? 8 : kWidth == 8 ? 4 : 2;
  Multiply<1, 1, kWidth> product;
  product.begin(t);
  Vector sum[kSteps][kPerPanel] = {};
  const float* b = t.b;
  for (int64_t i = 0; i < t.segment_count; ++i) {
    const float* a = t.a + t.segments[i].offset;
    int64_t left = t.segments[i].count;
    for (; left >= kSteps; left -= kSteps, a += kSteps, b += kSteps * kPanel) {
#pragma GCC unroll 16
      for (int k = 0; k < kSteps; ++k) {
        __builtin_prefetch(b + (64 + k) * kPanel);
#pragma GCC unroll 16
        for (int n = 0; n < kPerPanel; ++n) {
          sum[k][n] += a[k] * load<kWidth>(b + k * kPanel + n * kWidth);
        }
      }
    }
    for (; left > 0; --left, ++a, b += kPanel) {
#pragma GCC unroll 16
      for (int n = 0; n < kPerPanel; ++n) sum[0][n] += *a * load<kWidth>(b + n * kWidth);
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 16
    for (int n = 0; n < kPerPanel; ++n) product.sum[0][n] += sum[k][n];
  }
  product.end(t);
}

using Function = void (*)(const Tile&);

#if defined(__x86_64__)

// 32 registers of 16 floats: up to 28 sums, up to 4 of the right operand, 1 factor.
template <int kRows, int kPanels>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void multiply_avx512(
    const Tile& t) {
  if constexpr (kRows == 1 && kPanels == 1) {
    multiply_row<16>(t);
  } else {
    multiply<kRows, kPanels, 16>(t);
  }
}

template <int kPanels, int... kRows>
constexpr std::array<Function, sizeof...(kRows)> avx512_row(std::integer_sequence<int, kRows...>) {
  return {multiply_avx512<kRows + 1, kPanels>...};
}

void run_avx512(const Tile& t, int rows, int panels) {
  static constexpr auto kOne = avx512_row<1>(std::make_integer_sequence<int, 14>());
  static constexpr auto kTwo = avx512_row<2>(std::make_integer_sequence<int, 14>());
  static constexpr auto kThree = avx512_row<3>(std::make_integer_sequence<int, 9>());
  static constexpr auto kFour = avx512_row<4>(std::make_integer_sequence<int, 6>());
  const Function* const table[] = {kOne.data(), kTwo.data(), kThree.data(), kFour.data()};
  table[panels - 1][rows - 1](t);
}

constexpr TileGemm kAvx512 = {
    .max_rows = 14, .max_panels = 4, .registers = 31, .vectors = 1, .run = run_avx512};

// 16 registers of 8 floats: 12 sums, 2 of the right operand, 1 factor.
template <int kRows, int kPanels>
__attribute__((target("avx2,fma"))) void multiply_avx2(const Tile& t) {
  if constexpr (kRows == 1 && kPanels == 1) {
    multiply_row<8>(t);
  } else {
    multiply<kRows, kPanels, 8>(t);
  }
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
    .max_rows = 6, .max_panels = 2, .registers = 15, .vectors = 2, .run = run_avx2};

#endif

// Registers of 4 floats: 16 of them at the least (SSE2), 32 on 64-bit Arm.
#if defined(__aarch64__)
constexpr int kBaselineRows = 6, kBaselineRegisters = 31;
#else
constexpr int kBaselineRows = 3, kBaselineRegisters = 16;
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

constexpr TileGemm kBaseline = {.max_rows = kBaselineRows,
                                .max_panels = 1,
                                .registers = kBaselineRegisters,
                                .vectors = 4,
                                .run = run_baseline};

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

int TileGemm::rows_of(int panels) const {
  if (panels > max_panels) return 0;
  const int wide = panels * vectors;
  return std::min(max_rows, (registers - wide) / wide);
}

const std::vector<TileGemm>& tile_gemms() {
  static const std::vector<TileGemm> list = usable();
  return list;
}

const TileGemm& tile_gemm() { return tile_gemms().front(); }

}  // namespace tandem::cpu
