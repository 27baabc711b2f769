// Depthwise convolution on channels-last tensors: a few neighbouring pixels and one vector of
// channels at a time, written straight to the destination.
#include <algorithm>
#include <vector>

#include "lane/cpu/loops/elementwise.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/multiversion.h"

namespace tandem::cpu {
namespace {

template <int kWidth>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));
};
template <>
struct VectorOf<1> {
  using Type = float;
};

// Pixels computed together: their sums, and the inputs that they share, stay in registers.
constexpr int kPixels = 4;

// A run of output pixels that all have the same taps inside the image.
struct Run {
  const float* input;                // under the first tap of the first pixel
  int64_t row_stride, pixel_stride;  // from tap to tap, dilation included
  int64_t step;                      // from output pixel to output pixel
  const float* weights;              // first tap
  int64_t weight_row, weight_tap;    // from tap to tap
  int64_t rows, taps;                // of the window, those inside
  const float* bias;
  float* output;
  int64_t output_stride;
  const float* residual;  // or null
  int64_t residual_stride;
  float low, high;
};

// The epilogue of one vector. By reference: passing vectors by value would depend on the
// instruction set.
template <int kWidth>
TANDEM_INLINE void store(const Run& r, int64_t pixel, int64_t c,
                         const typename VectorOf<kWidth>::Type& sum) {
  using Vector = typename VectorOf<kWidth>::Type;
  Vector v = sum;
  if (r.residual != nullptr) {
    v += *reinterpret_cast<const Vector*>(r.residual + pixel * r.residual_stride + c);
  }
  v = v < r.low ? Vector{} + r.low : v;
  v = v > r.high ? Vector{} + r.high : v;
  *reinterpret_cast<Vector*>(r.output + pixel * r.output_stride + c) = v;
}

// Vectors of channels computed together where a pixel is alone: one sum would wait for itself.
constexpr int kVectors = 4;

// kTaps, kStep: width of the window and stride where known at compile time (with dilation one), so
// that inputs under several taps are loaded once; else 0.
template <int kWidth, int kCount, int kTaps, int kStep>
TANDEM_INLINE void pixels(const Run& r, int64_t pixel, int64_t c) {
  using Vector = typename VectorOf<kWidth>::Type;
  const auto load = [](const float* p) TANDEM_LAMBDA_INLINE -> const Vector& {
    return *reinterpret_cast<const Vector*>(p);
  };
  Vector sum[kCount];
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) sum[p] = load(r.bias + c);
  const float* input = r.input + pixel * r.step + c;
  const float* weights = r.weights + c;
  for (int64_t y = 0; y < r.rows; ++y, input += r.row_stride, weights += r.weight_row) {
    if constexpr (kTaps > 0) {
      Vector x[(kCount - 1) * kStep + kTaps];
#pragma GCC unroll 16
      for (int i = 0; i < (kCount - 1) * kStep + kTaps; ++i)
        x[i] = load(input + i * r.pixel_stride);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        const Vector w = load(weights + t * r.weight_tap);
#pragma GCC unroll 8
        for (int p = 0; p < kCount; ++p) sum[p] += w * x[p * kStep + t];
      }
    } else {
      for (int64_t t = 0; t < r.taps; ++t) {
        const Vector w = load(weights + t * r.weight_tap);
#pragma GCC unroll 8
        for (int p = 0; p < kCount; ++p)
          sum[p] += w * load(input + p * r.step + t * r.pixel_stride);
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) store<kWidth>(r, pixel + p, c, sum[p]);
}

// One pixel, kVectors vectors of channels.
template <int kWidth>
TANDEM_INLINE void single_pixel(const Run& r, int64_t pixel, int64_t c) {
  using Vector = typename VectorOf<kWidth>::Type;
  const auto load = [](const float* p) TANDEM_LAMBDA_INLINE -> const Vector& {
    return *reinterpret_cast<const Vector*>(p);
  };
  Vector sum[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sum[v] = load(r.bias + c + v * kWidth);
  const float* input = r.input + pixel * r.step + c;
  const float* weights = r.weights + c;
  for (int64_t y = 0; y < r.rows; ++y, input += r.row_stride, weights += r.weight_row) {
    for (int64_t t = 0; t < r.taps; ++t) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sum[v] += load(weights + t * r.weight_tap + v * kWidth) *
                  load(input + t * r.pixel_stride + v * kWidth);
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    store<kWidth>(r, pixel, c + v * kWidth, sum[v]);
  }
}

template <int kWidth, int kCount, int kTaps, int kStep>
TANDEM_INLINE void channels(const Run& r, int64_t pixel, int64_t count) {
  int64_t c = 0;
  if constexpr (kCount == 1) {
    for (; c + kVectors * kWidth <= count; c += kVectors * kWidth) {
      single_pixel<kWidth>(r, pixel, c);
    }
  }
  for (; c + kWidth <= count; c += kWidth) pixels<kWidth, kCount, kTaps, kStep>(r, pixel, c);
  for (; c + 4 <= count; c += 4) pixels<4, kCount, 0, 0>(r, pixel, c);
  for (; c < count; ++c) pixels<1, kCount, 0, 0>(r, pixel, c);
}

template <int kWidth, int kTaps, int kStep>
TANDEM_INLINE void run_pixels(const Run& r, int64_t count, int64_t channel_count) {
  int64_t pixel = 0;
  for (; pixel + kPixels <= count; pixel += kPixels) {
    channels<kWidth, kPixels, kTaps, kStep>(r, pixel, channel_count);
  }
  for (; pixel < count; ++pixel) channels<kWidth, 1, kTaps, kStep>(r, pixel, channel_count);
}

// Window width and stride of the run, as far as there is special code for them.
enum class Shape { kAny, k3Step1, k3Step2, k5Step1, k5Step2 };

template <int kWidth>
TANDEM_INLINE void run_shape(Shape shape, const Run& r, int64_t count, int64_t channel_count) {
  switch (shape) {
    case Shape::kAny:
      return run_pixels<kWidth, 0, 0>(r, count, channel_count);
    case Shape::k3Step1:
      return run_pixels<kWidth, 3, 1>(r, count, channel_count);
    case Shape::k3Step2:
      return run_pixels<kWidth, 3, 2>(r, count, channel_count);
    case Shape::k5Step1:
      return run_pixels<kWidth, 5, 1>(r, count, channel_count);
    case Shape::k5Step2:
      return run_pixels<kWidth, 5, 2>(r, count, channel_count);
  }
}

using RunFunction = void (*)(Shape, const Run&, int64_t count, int64_t channel_count);

void run_baseline(Shape shape, const Run& r, int64_t count, int64_t channel_count) {
  run_shape<4>(shape, r, count, channel_count);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void run_avx512(
    Shape shape, const Run& r, int64_t count, int64_t channel_count) {
  run_shape<16>(shape, r, count, channel_count);
}
__attribute__((target("avx2,fma"))) void run_avx2(Shape shape, const Run& r, int64_t count,
                                                  int64_t channel_count) {
  run_shape<8>(shape, r, count, channel_count);
}
#endif

RunFunction choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return run_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2;
#endif
  return run_baseline;
}

// Taps of a window at `position` (of its first tap) that lie within [0, extent).
Range taps_inside(int64_t position, int64_t taps, int64_t dilation, int64_t extent) {
  const int64_t begin = position >= 0 ? 0 : (-position + dilation - 1) / dilation;
  const int64_t end = position >= extent ? 0 : (extent - position + dilation - 1) / dilation;
  return {std::min(begin, taps), std::clamp<int64_t>(end, std::min(begin, taps), taps)};
}

// Neighbouring output columns that have the same taps inside the image.
struct Columns {
  Range outputs, taps;
};

// Bytes of input rows under a window that should stay in a first-level cache while the window moves
// down: channels are cut into blocks accordingly. Not where the image comes from beyond a
// second-level cache, since the pieces of pixels then defeat the prefetcher.
constexpr int64_t kCachedBytes = 24 * 1024;
constexpr int64_t kStreamedBytes = 768 * 1024;

struct Depthwise {
  ConvAttributes a;
  TensorView x, y;
  bool has_residual = false;
  TensorView residual;
  Region region;
  int64_t padded_channels = 0;  // per tap of the weights
  std::vector<Columns> columns;

  void find_columns() {
    for (int64_t ow = region[3].begin; ow < region[3].end; ++ow) {
      const Range taps =
          taps_inside(ow * a.stride[1] - a.pads[1], a.kernel[1], a.dilation[1], x.dims[3]);
      if (columns.empty() || columns.back().taps != taps) columns.push_back({{ow, ow}, taps});
      columns.back().outputs.end = ow + 1;
    }
  }

  Shape shape() const {
    if (a.dilation[1] != 1) return Shape::kAny;
    if (a.kernel[1] == 3 && a.stride[1] == 1) return Shape::k3Step1;
    if (a.kernel[1] == 3 && a.stride[1] == 2) return Shape::k3Step2;
    if (a.kernel[1] == 5 && a.stride[1] == 1) return Shape::k5Step1;
    if (a.kernel[1] == 5 && a.stride[1] == 2) return Shape::k5Step2;
    return Shape::kAny;
  }

  int64_t channel_block() const {
    constexpr int64_t kUnit = kVectors * kLineFloats;
    constexpr int64_t kFloat = sizeof(float);
    if (region[2].size() * a.stride[0] * x.dims[3] * region[1].size() * kFloat > kStreamedBytes) {
      return region[1].size();
    }
    const int64_t per_channel = a.kernel[0] * x.dims[3] * kFloat;
    return std::max(kUnit, kCachedBytes / per_channel / kUnit * kUnit);
  }

  // Row oh of image n, the given channels.
  void row(const float* packed, int64_t n, int64_t oh, Range channels) const {
    static const RunFunction run_function = choose();
    const int64_t position_y = oh * a.stride[0] - a.pads[0];
    const Range rows = taps_inside(position_y, a.kernel[0], a.dilation[0], x.dims[2]);
    const Clamp clamp = as_clamp(a.activation);
    const auto pixel = [&](const TensorView& view, int64_t h, int64_t w) {
      return view.as<float>() + n * view.strides[0] + channels.begin + h * view.strides[2] +
             w * view.strides[3];
    };

    Run r;
    r.row_stride = a.dilation[0] * x.strides[2];
    r.pixel_stride = a.dilation[1] * x.strides[3];
    r.step = a.stride[1] * x.strides[3];
    r.weight_tap = padded_channels;
    r.weight_row = a.kernel[1] * padded_channels;
    r.rows = rows.size();
    r.bias = packed + a.kernel[0] * r.weight_row + channels.begin;
    r.output_stride = y.strides[3];
    r.residual_stride = has_residual ? residual.strides[3] : 0;
    r.low = clamp.low;
    r.high = clamp.high;
    for (const Columns& c : columns) {
      const int64_t ow = c.outputs.begin;
      r.input = pixel(x, position_y + rows.begin * a.dilation[0],
                      ow * a.stride[1] - a.pads[1] + c.taps.begin * a.dilation[1]);
      r.weights = packed + rows.begin * r.weight_row + c.taps.begin * r.weight_tap + channels.begin;
      r.taps = c.taps.size();
      r.output = pixel(y, oh, ow);
      r.residual = has_residual ? pixel(residual, oh, ow) : nullptr;
      const bool all_taps = c.taps.size() == a.kernel[1];
      run_function(all_taps ? shape() : Shape::kAny, r, c.outputs.size(), channels.size());
    }
    if (clamp.exact) return;
    for (int64_t ow = region[3].begin; ow < region[3].end; ++ow) {
      apply(a.activation, pixel(y, oh, ow), pixel(y, oh, ow), channels.size());
    }
  }
};

class DepthwiseLoops : public Implementation {
 public:
  const char* name() const override { return "loops_depthwise"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() != OperatorKind::kConv) return unsupported("depthwise: not a convolution");
    const auto& a = p.op->as<ConvAttributes>();
    if (a.groups != p.inputs[0].dims[1] || a.groups != p.output.dims[1]) {
      return unsupported(p.op->name + ": not a depthwise convolution");
    }
    return check_channels_contiguous(p);
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    Depthwise d;
    d.a = p.op->as<ConvAttributes>();
    d.x = p.inputs[0];
    d.y = p.output;
    d.has_residual = d.a.has_residual;
    if (d.has_residual) d.residual = p.inputs.back();
    d.region = p.region;
    d.padded_channels = (d.a.groups + kLineFloats - 1) / kLineFloats * kLineFloats;
    d.find_columns();
    const int64_t taps = d.a.kernel[0] * d.a.kernel[1];
    // [tap][channel], then the bias.
    const auto packed =
        resources.packed(p.op->name + ":depthwise", (taps + 1) * d.padded_channels, [&](float* to) {
          const float* weights = p.inputs[1].as<float>();
          for (int64_t c = 0; c < d.a.groups; ++c) {
            for (int64_t t = 0; t < taps; ++t) {
              to[t * d.padded_channels + c] = weights[c * taps + t];
            }
            if (d.a.has_bias) to[taps * d.padded_channels + c] = p.inputs[2].as<float>()[c];
          }
        });
    return make_kernel([d, packed, block = d.channel_block(), threads = p.threads] {
      const Range n = d.region[0], h = d.region[2];
      parallel(threads, [&](int index, int parts) {
        const Part part = part_of(n.size() * h.size(), index, parts);
        for (int64_t c = d.region[1].begin; c < d.region[1].end; c += block) {
          const Range channels{c, std::min(c + block, d.region[1].end)};
          for (int64_t i = part.begin; i < part.end; ++i) {
            d.row(packed.get(), n.begin + i / h.size(), h.begin + i % h.size(), channels);
          }
        }
      });
      return Status();
    });
  }
};

}  // namespace

const Implementation& depthwise_loops() {
  static const DepthwiseLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
