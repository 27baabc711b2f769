// Max and average pooling, global pooling included.
#include <algorithm>
#include <vector>

#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/rows.h"

namespace tandem::cpu {
namespace {

struct Pool {
  PoolAttributes a;
  TensorView x, y;
  Region region;

  // The elements under the window of output (n, oh, ow): pointers to channel 0.
  void window(int64_t n, int64_t oh, int64_t ow, std::vector<const float*>& taps) const {
    taps.clear();
    const float* image = x.as<float>() + n * x.strides[0];
    for (int64_t ky = 0; ky < a.kernel[0]; ++ky) {
      const int64_t iy = oh * a.stride[0] - a.pads[0] + ky * a.dilation[0];
      if (iy < 0 || iy >= x.dims[2]) continue;
      for (int64_t kx = 0; kx < a.kernel[1]; ++kx) {
        const int64_t ix = ow * a.stride[1] - a.pads[1] + kx * a.dilation[1];
        if (ix < 0 || ix >= x.dims[3]) continue;
        taps.push_back(image + iy * x.strides[2] + ix * x.strides[3]);
      }
    }
  }

  // What an average divides by.
  int64_t divisor(int64_t oh, int64_t ow, int64_t inside) const {
    if (!a.count_include_pad) return inside;
    const int64_t out[2] = {oh, ow};
    int64_t count = 1;
    for (int i = 0; i < 2; ++i) {
      // A window of ceil_mode may reach beyond the pads; what lies there does not count.
      const int64_t limit = x.dims[2 + i] + a.pads[2 + i];
      int64_t here = 0;
      for (int64_t k = 0; k < a.kernel[i]; ++k) {
        if (out[i] * a.stride[i] - a.pads[i] + k * a.dilation[i] < limit) ++here;
      }
      count *= here;
    }
    return count;
  }

  void pixel(int64_t n, int64_t oh, int64_t ow, Range channels,
             std::vector<const float*>& taps) const {
    window(n, oh, ow, taps);
    const int64_t inside = static_cast<int64_t>(taps.size());
    const bool max = a.kind == PoolAttributes::Kind::kMax;
    const float factor = max || inside == 0 ? 1.0f : 1.0f / divisor(oh, ow, inside);
    float* to =
        y.as<float>() + n * y.strides[0] + oh * y.strides[2] + ow * y.strides[3] + channels.begin;
    if (max) {
      max_of_rows(taps.data(), inside, channels.begin, to, channels.size());
    } else {
      sum_of_rows(taps.data(), inside, channels.begin, factor, to, channels.size());
    }
  }
};

class PoolLoops : public Implementation {
 public:
  const char* name() const override { return "loops_pool"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() != OperatorKind::kPool) {
      return unsupported(std::string("pooling loops do not do ") + to_string(p.op->kind()));
    }
    return check_channels_contiguous(p);
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources&) const override {
    const Pool pool{p.op->as<PoolAttributes>(), p.inputs[0], p.output, p.region};
    return make_kernel([pool, threads = p.threads] {
      const Region& r = pool.region;
      const int64_t pixels = r[0].size() * r[2].size() * r[3].size();
      const bool cut_pixels = pixels >= threads;
      parallel(threads, [&](int index, int parts) {
        Part part{0, pixels};
        Range channels = r[1];
        if (cut_pixels) {
          part = part_of(pixels, index, parts);
        } else {
          const Part c = part_of(channels.size(), index, parts, kLineFloats);
          channels = {r[1].begin + c.begin, r[1].begin + c.end};
        }
        if (channels.empty()) return;
        std::vector<const float*> taps;
        taps.reserve(pool.a.kernel[0] * pool.a.kernel[1]);
        for (int64_t i = part.begin; i < part.end; ++i) {
          const int64_t w = i % r[3].size(), row = i / r[3].size();
          pool.pixel(r[0].begin + row / r[2].size(), r[2].begin + row % r[2].size(), r[3].begin + w,
                     channels, taps);
        }
      });
      return Status();
    });
  }
};

}  // namespace

const Implementation& pool_loops() {
  static const PoolLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
