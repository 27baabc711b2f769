// Depthwise convolution on channels-last tensors: a few neighbouring pixels and one vector of
// channels at a time, written straight to the destination.
#include <algorithm>
#include <vector>

#include "lane/cpu/loops/depthwise_window.h"
#include "lane/cpu/loops/elementwise.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/vectors.h"

namespace tandem::cpu {
namespace {

// Pixels computed together: their sums stay in registers.
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

// The epilogue of one vector.
template <int kWidth>
TANDEM_INLINE void store(const Run& r, int64_t pixel, int64_t c,
                         const typename VectorOf<kWidth>::Type& sum) {
  typename VectorOf<kWidth>::Type v = sum;
  if (r.residual != nullptr) v += load<kWidth>(r.residual + pixel * r.residual_stride + c);
  limit<kWidth>(v, r.low, r.high);
  at_vector<kWidth>(r.output + pixel * r.output_stride + c) = v;
}

template <int kWidth, int kCount>
TANDEM_INLINE void pixels(const Run& r, int64_t pixel, int64_t c) {
  using Vector = typename VectorOf<kWidth>::Type;
  Vector sum[kCount];
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) sum[p] = load<kWidth>(r.bias + c);
  const float* input = r.input + pixel * r.step + c;
  const float* weights = r.weights + c;
  for (int64_t y = 0; y < r.rows; ++y, input += r.row_stride, weights += r.weight_row) {
    for (int64_t t = 0; t < r.taps; ++t) {
      const Vector w = load<kWidth>(weights + t * r.weight_tap);
#pragma GCC unroll 8
      for (int p = 0; p < kCount; ++p) {
        sum[p] += w * load<kWidth>(input + p * r.step + t * r.pixel_stride);
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) store<kWidth>(r, pixel + p, c, sum[p]);
}

template <int kWidth, int kCount>
TANDEM_INLINE void channels(const Run& r, int64_t pixel, int64_t count) {
  int64_t c = 0;
  for (; c + kWidth <= count; c += kWidth) pixels<kWidth, kCount>(r, pixel, c);
  for (; c + 4 <= count; c += 4) pixels<4, kCount>(r, pixel, c);
  for (; c < count; ++c) pixels<1, kCount>(r, pixel, c);
}

template <int kWidth>
TANDEM_INLINE void run_pixels(const Run& r, int64_t count, int64_t channel_count) {
  int64_t pixel = 0;
  for (; pixel + kPixels <= count; pixel += kPixels) {
    channels<kWidth, kPixels>(r, pixel, channel_count);
  }
  for (; pixel < count; ++pixel) channels<kWidth, 1>(r, pixel, channel_count);
}

using RunFunction = void (*)(const Run&, int64_t count, int64_t channel_count);

void run_baseline(const Run& r, int64_t count, int64_t channel_count) {
  run_pixels<4>(r, count, channel_count);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void run_avx512(
    const Run& r, int64_t count, int64_t channel_count) {
  run_pixels<16>(r, count, channel_count);
}
__attribute__((target("avx2,fma"))) void run_avx2(const Run& r, int64_t count,
                                                  int64_t channel_count) {
  run_pixels<8>(r, count, channel_count);
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

  // The kernel for windows that are frequent enough to have one; run is null if this is not one.
  WindowKernel window() const {
    if (a.kernel[0] != a.kernel[1] || a.stride[0] != a.stride[1]) return {};
    if (a.dilation[0] != 1 || a.dilation[1] != 1) return {};
    return window_kernel(a.kernel[0], a.stride[0]);
  }

  static float* pixel(const TensorView& view, int64_t n, int64_t c, int64_t h, int64_t w) {
    return view.as<float>() + n * view.strides[0] + c + h * view.strides[2] + w * view.strides[3];
  }

  int64_t channel_block() const {
    constexpr int64_t kUnit = 4 * kLineFloats;
    constexpr int64_t kFloat = sizeof(float);
    if (region[2].size() * a.stride[0] * x.dims[3] * region[1].size() * kFloat > kStreamedBytes) {
      return region[1].size();
    }
    // Two rows of the output are computed together.
    const int64_t per_channel = (a.kernel[0] + a.stride[0]) * x.dims[3] * kFloat;
    return std::max(kUnit, kCachedBytes / per_channel / kUnit * kUnit);
  }

  // Rows [oh, oh + count) of image n, the given channels; one row or two.
  void rows(const WindowKernel& kernel, const float* packed, int64_t n, int64_t oh, int count,
            Range channels) const {
    const Clamp clamp = as_clamp(a.activation);
    const int64_t y_first = oh * a.stride[0] - a.pads[0];
    const int64_t reach = a.kernel[0] + (count - 1) * a.stride[0];
    const Range inside = taps_inside(y_first, reach, 1, x.dims[2]);
    WindowRun r;
    r.pixels = region[3].size();
    r.channels = channels.size();
    r.rows = count;
    r.first_column = region[3].begin * a.stride[1] - a.pads[1];
    r.image_width = x.dims[3];
    r.inside_begin = static_cast<int>(inside.begin);
    r.inside_end = static_cast<int>(inside.end);
    r.input = pixel(x, n, channels.begin, y_first, r.first_column);
    r.input_row = x.strides[2];
    r.input_pixel = x.strides[3];
    r.weights = packed + channels.begin;
    r.weight_tap = padded_channels;
    r.bias = packed + a.kernel[0] * a.kernel[1] * padded_channels + channels.begin;
    r.output = pixel(y, n, channels.begin, oh, region[3].begin);
    r.output_row = y.strides[2];
    r.output_pixel = y.strides[3];
    if (has_residual) {
      r.residual = pixel(residual, n, channels.begin, oh, region[3].begin);
      r.residual_row = residual.strides[2];
      r.residual_pixel = residual.strides[3];
    }
    r.low = clamp.low;
    r.high = clamp.high;
    kernel.run(r);
    if (clamp.exact) return;
    for (int i = 0; i < count; ++i) activate_row(n, oh + i, channels);
  }

  // Row oh of image n, the given channels, any window.
  void row(const float* packed, int64_t n, int64_t oh, Range channels) const {
    static const RunFunction run_function = choose();
    const int64_t position_y = oh * a.stride[0] - a.pads[0];
    const Range rows = taps_inside(position_y, a.kernel[0], a.dilation[0], x.dims[2]);
    const Clamp clamp = as_clamp(a.activation);
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
      r.input = pixel(x, n, channels.begin, position_y + rows.begin * a.dilation[0],
                      ow * a.stride[1] - a.pads[1] + c.taps.begin * a.dilation[1]);
      r.weights = packed + rows.begin * r.weight_row + c.taps.begin * r.weight_tap + channels.begin;
      r.taps = c.taps.size();
      r.output = pixel(y, n, channels.begin, oh, ow);
      r.residual = has_residual ? pixel(residual, n, channels.begin, oh, ow) : nullptr;
      run_function(r, c.outputs.size(), channels.size());
    }
    if (!clamp.exact) activate_row(n, oh, channels);
  }

  void activate_row(int64_t n, int64_t oh, Range channels) const {
    for (int64_t ow = region[3].begin; ow < region[3].end; ++ow) {
      float* const values = pixel(y, n, channels.begin, oh, ow);
      apply(a.activation, values, values, channels.size());
    }
  }

  // Output rows [begin, end) of all images, numbered through.
  void run(const float* packed, int64_t begin, int64_t end, Range channels) const {
    const WindowKernel kernel = window();
    const bool special = kernel.run != nullptr && channels.size() >= kernel.least_channels;
    const int64_t height = region[2].size();
    for (int64_t i = begin; i < end;) {
      const int64_t n = region[0].begin + i / height, h = i % height;
      if (!special) {
        row(packed, n, region[2].begin + h, channels);
        ++i;
        continue;
      }
      const int count = h + 1 < height && i + 1 < end ? 2 : 1;
      rows(kernel, packed, n, region[2].begin + h, count, channels);
      i += count;
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

  void describe(const Problem& p, ImplementationInfo& info) const override {
    Implementation::describe(p, info);
    const int64_t channels = p.region[1].size();
    const int64_t vectors = (channels + kLineFloats - 1) / kLineFloats;
    info.work_groups = vectors * p.region[0].size() * p.region[2].size();
    info.computed_flops *= static_cast<double>(vectors * kLineFloats) /
                           static_cast<double>(std::max<int64_t>(channels, 1));
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
          d.run(packed.get(), part.begin, part.end, channels);
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
