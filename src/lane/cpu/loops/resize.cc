// Resizing of images: nearest, linear and cubic.
#include "graph/resize.h"

#include <vector>

#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/rows.h"

namespace tandem::cpu {
namespace {

class ResizeLoops : public Implementation {
 public:
  const char* name() const override { return "loops_resize"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() != OperatorKind::kResize) {
      return unsupported(std::string("resize loops do not do ") + to_string(p.op->kind()));
    }
    return check_channels_contiguous(p);
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources&) const override {
    const auto& a = p.op->as<ResizeAttributes>();
    const Region& r = p.region;
    std::vector<ResizeTaps> taps[2];
    for (int i = 0; i < 2; ++i) {
      for (int64_t o = r[2 + i].begin; o < r[2 + i].end; ++o) {
        taps[i].push_back(resize_taps(a, i, p.inputs[0].dims[2 + i], p.output.dims[2 + i], o));
      }
    }
    return make_kernel([ys = std::move(taps[0]), xs = std::move(taps[1]), x = p.inputs[0],
                        y = p.output, r, threads = p.threads] {
      const int64_t rows = r[0].size() * r[2].size();
      parallel(threads, [&](int index, int parts) {
        const Part part = part_of(rows, index, parts);
        for (int64_t i = part.begin; i < part.end; ++i) {
          const int64_t n = r[0].begin + i / r[2].size(), row = i % r[2].size();
          const float* image = x.as<float>() + n * x.strides[0] + r[1].begin;
          float* to = y.as<float>() + n * y.strides[0] + r[1].begin +
                      (r[2].begin + row) * y.strides[2] + r[3].begin * y.strides[3];
          for (const ResizeTaps& tx : xs) {
            const ResizeTaps& ty = ys[row];
            const float* pixels[16];
            float weights[16];
            int count = 0;
            for (int v = 0; v < ty.count; ++v) {
              for (int u = 0; u < tx.count; ++u, ++count) {
                pixels[count] = image + ty.index[v] * x.strides[2] + tx.index[u] * x.strides[3];
                weights[count] = static_cast<float>(ty.weight[v] * tx.weight[u]);
              }
            }
            weighted_sum_of_rows(pixels, weights, count, to, r[1].size());
            to += y.strides[3];
          }
        }
      });
      return Status();
    });
  }
};

}  // namespace

const Implementation& resize_loops() {
  static const ResizeLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
