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
  const float* input;  // under the first tap of the first pixel
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

// kTaps, kStep: width of the window and stride where known at compile time (with dilation one), so
// that inputs under several taps are loaded once; else 0.
template <int kWidth, int kCount, int kTaps, int kStep>
TANDEM_INLINE void pixels(const Run& r, int64_t pixel, int64_t c) {
  using Vector = typename VectorOf<kWidth>::Type;
  // By reference: returning a vector by value would depend on the instruction set.
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
      for (int i = 0; i < (kCount - 1) * kStep + kTaps; ++i) x[i] = load(input + i * r.pixel_stride);
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
        for (int p = 0; p < kCount; ++p) sum[p] += w * load(input + p * r.step + t * r.pixel_stride);
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) {
    Vector v = sum[p];
    if (r.residual != nullptr) v += load(r.residual + (pixel + p) * r.residual_stride + c);
    v = v < r.low ? Vector{} + r.low : v;
    v = v > r.high ? Vector{} + r.high : v;
    *reinterpret_cast<Vector*>(r.output + (pixel + p) * r.output_stride + c) = v;
  }
}

template <int kWidth, int kCount, int kTaps, int kStep>
TANDEM_INLINE void channels(const Run& r, int64_t pixel, int64_t count) {
  int64_t c = 0;
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
    case Shape::kAny: return run_pixels<kWidth, 0, 0>(r, count, channel_count);
    case Shape::k3Step1: return run_pixels<kWidth, 3, 1>(r, count, channel_count);
    case Shape::k3Step2: return run_pixels<kWidth, 3, 2>(r, count, channel_count);
    case Shape::k5Step1: return run_pixels<kWidth, 5, 1>(r, count, channel_count);
    case Shape::k5Step2: return run_pixels<kWidth, 5, 2>(r, count, channel_count);
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

struct Depthwise {
  ConvAttributes a;
  TensorView x, y;
  bool has_residual = false;
  TensorView residual;
  Region region;
  int64_t padded_channels = 0;  // per tap of the weights

  Shape shape() const {
    if (a.dilation[1] != 1) return Shape::kAny;
    if (a.kernel[1] == 3 && a.stride[1] == 1) return Shape::k3Step1;
    if (a.kernel[1] == 3 && a.stride[1] == 2) return Shape::k3Step2;
    if (a.kernel[1] == 5 && a.stride[1] == 1) return Shape::k5Step1;
    if (a.kernel[1] == 5 && a.stride[1] == 2) return Shape::k5Step2;
    return Shape::kAny;
  }

  void row(const float* packed, int64_t n, int64_t oh) const {
    static const RunFunction run_function = choose();
    const int64_t channel = region[1].begin;
    const int64_t position_y = oh * a.stride[0] - a.pads[0];
    const Range rows = taps_inside(position_y, a.kernel[0], a.dilation[0], x.dims[2]);
    const Clamp clamp = as_clamp(a.activation);

    Run common;
    common.row_stride = a.dilation[0] * x.strides[2];
    common.pixel_stride = a.dilation[1] * x.strides[3];
    common.step = a.stride[1] * x.strides[3];
    common.weight_tap = padded_channels;
    common.weight_row = a.kernel[1] * padded_channels;
    common.rows = rows.size();
    common.bias = packed + a.kernel[0] * common.weight_row + channel;
    common.output_stride = y.strides[3];
    common.residual_stride = has_residual ? residual.strides[3] : 0;
    common.low = clamp.low;
    common.high = clamp.high;

    const auto taps_at = [&](int64_t ow) {
      return taps_inside(ow * a.stride[1] - a.pads[1], a.kernel[1], a.dilation[1], x.dims[3]);
    };
    for (int64_t ow = region[3].begin; ow < region[3].end;) {
      const Range taps = taps_at(ow);
      int64_t end = ow + 1;
      while (end < region[3].end && taps_at(end) == taps) ++end;
      Run r = common;
      const int64_t in_y = position_y + rows.begin * a.dilation[0];
      const int64_t in_x = ow * a.stride[1] - a.pads[1] + taps.begin * a.dilation[1];
      r.input = x.as<float>() + n * x.strides[0] + channel + in_y * x.strides[2] +
                in_x * x.strides[3];
      r.weights = packed + rows.begin * common.weight_row + taps.begin * common.weight_tap + channel;
      r.taps = taps.size();
      r.output = y.as<float>() + n * y.strides[0] + channel + oh * y.strides[2] + ow * y.strides[3];
      r.residual = has_residual ? residual.as<float>() + n * residual.strides[0] + channel +
                                      oh * residual.strides[2] + ow * residual.strides[3]
                                : nullptr;
      const bool all_taps = taps.size() == a.kernel[1];
      run_function(all_taps ? shape() : Shape::kAny, r, end - ow, region[1].size());
      ow = end;
    }
    if (!clamp.exact) {
      for (int64_t ow = region[3].begin; ow < region[3].end; ++ow) {
        float* pixel = y.as<float>() + n * y.strides[0] + channel + oh * y.strides[2] +
                       ow * y.strides[3];
        apply(a.activation, pixel, pixel, region[1].size());
      }
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
    const bool contiguous = p.inputs[0].strides[1] == 1 && p.output.strides[1] == 1 &&
                            (!a.has_residual || p.inputs.back().strides[1] == 1);
    return contiguous ? Status()
                      : unsupported(p.op->name + ": channels are not contiguous in memory; give " +
                                    "its tensors the channels-last order");
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p,
                                            Resources& resources) const override {
    Depthwise d;
    d.a = p.op->as<ConvAttributes>();
    d.x = p.inputs[0];
    d.y = p.output;
    d.has_residual = d.a.has_residual;
    if (d.has_residual) d.residual = p.inputs.back();
    d.region = p.region;
    d.padded_channels = (d.a.groups + kLineFloats - 1) / kLineFloats * kLineFloats;
    const int64_t taps = d.a.kernel[0] * d.a.kernel[1];
    // [tap][channel], then the bias.
    const auto packed = resources.packed(
        p.op->name + ":depthwise", (taps + 1) * d.padded_channels, [&](float* to) {
          const float* weights = p.inputs[1].as<float>();
          for (int64_t c = 0; c < d.a.groups; ++c) {
            for (int64_t t = 0; t < taps; ++t) {
              to[t * d.padded_channels + c] = weights[c * taps + t];
            }
            if (d.a.has_bias) to[taps * d.padded_channels + c] = p.inputs[2].as<float>()[c];
          }
        });
    return make_kernel([d, packed, threads = p.threads] {
      const Range n = d.region[0], h = d.region[2];
      parallel(threads, [&](int index, int parts) {
        const Part part = part_of(n.size() * h.size(), index, parts);
        for (int64_t i = part.begin; i < part.end; ++i) {
          d.row(packed.get(), n.begin + i / h.size(), h.begin + i % h.size());
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
