// Reductions over any set of axes.
#include <algorithm>
#include <vector>

#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/nest.h"
#include "lane/cpu/loops/rows.h"

namespace tandem::cpu {
namespace {

// Results that are summed up side by side, on the stack.
constexpr int64_t kChunk = 256;

class ReduceLoops : public Implementation {
 public:
  const char* name() const override { return "loops_reduce"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() == OperatorKind::kReduce) return {};
    return unsupported(std::string("reduction loops do not do ") + to_string(p.op->kind()));
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources&) const override {
    const auto& a = p.op->as<ReduceAttributes>();
    const TensorView& x = p.inputs[0];
    std::vector<Nest<2>::Loop> kept_dims;     // output, input
    std::vector<Nest<1>::Loop> reduced_dims;  // input
    const float* from = x.as<float>();
    int64_t reduced_count = 1;
    size_t out = 0;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      const bool reduced =
          std::find(a.axes.begin(), a.axes.end(), static_cast<int>(d)) != a.axes.end();
      if (reduced) {
        reduced_dims.push_back({x.dims[d], {x.strides[d]}});
        reduced_count *= x.dims[d];
        if (a.keep_dims) ++out;
      } else {
        const Range range = p.region[out];
        kept_dims.push_back({range.size(), {p.output.strides[out], x.strides[d]}});
        from += range.begin * x.strides[d];
        ++out;
      }
    }
    return make_kernel([kept = Nest<2>::of(kept_dims), reduced = Nest<1>::of(reduced_dims),
                        reduced_count, from, to = at(p.output, p.region), kind = a.kind,
                        threads = p.threads] {
      const auto [y_stride, x_stride] = kept.inner().strides;
      const int64_t reduced_stride = reduced.inner().strides[0];
      const bool side_by_side = x_stride == 1 && kept.inner().extent > 1;
      kept.for_each_run(threads, [&](const Nest<2>::Offsets& at, int64_t count) {
        const float* x = from + at[1];
        float* y = to + at[0];
        if (!side_by_side) {
          for (int64_t i = 0; i < count; ++i) {
            float sum = neutral(kind);
            reduced.for_each_run(1, [&](const Nest<1>::Offsets& at_x, int64_t n) {
              const float part = reduce_row(kind, x + i * x_stride + at_x[0], reduced_stride, n);
              // Parts of kL2 are sums of squares already.
              accumulate(kind == ReduceAttributes::Kind::kL2 ? ReduceAttributes::Kind::kSum : kind,
                         &part, &sum, 1);
            });
            y[i * y_stride] = completed(kind, sum, reduced_count);
          }
          return;
        }
        float sums[kChunk];
        for (int64_t i = 0; i < count; i += kChunk) {
          const int64_t n = std::min(kChunk, count - i);
          std::fill_n(sums, n, neutral(kind));
          reduced.for_each_run(1, [&](const Nest<1>::Offsets& at_x, int64_t steps) {
            for (int64_t s = 0; s < steps; ++s) {
              accumulate(kind, x + i + at_x[0] + s * reduced_stride, sums, n);
            }
          });
          for (int64_t j = 0; j < n; ++j) {
            y[(i + j) * y_stride] = completed(kind, sums[j], reduced_count);
          }
        }
      });
      return Status();
    });
  }
};

}  // namespace

const Implementation& reduce_loops() {
  static const ReduceLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
