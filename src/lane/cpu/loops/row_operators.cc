// Softmax and layer normalisation: row by row.
#include <vector>

#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/nest.h"
#include "lane/cpu/loops/rows.h"

namespace tandem::cpu {
namespace {

// The other dimensions of the region than `row_dim`, as loops over x and y.
Nest<2> rows_besides(const Problem& p, size_t row_dim) {
  std::vector<Nest<2>::Loop> dims;
  for (size_t d = 0; d < p.region.size(); ++d) {
    if (d == row_dim) continue;
    dims.push_back({p.region[d].size(), {p.output.strides[d], p.inputs[0].strides[d]}});
  }
  return Nest<2>::of(dims);
}

std::unique_ptr<Kernel> prepare_softmax(const Problem& p, Resources& resources) {
  const auto& a = p.op->as<SoftmaxAttributes>();
  const size_t axis = a.axis;
  const int64_t length = p.region[axis].size();
  const int64_t x_stride = length == 1 ? 1 : p.inputs[0].strides[axis];
  const int64_t y_stride = length == 1 ? 1 : p.output.strides[axis];
  const int64_t row_floats = (length + kLineFloats - 1) / kLineFloats * kLineFloats;
  resources.reserve_scratch(p.threads * row_floats * sizeof(float));
  return make_kernel([=, nest = rows_besides(p, axis), y = at(p.output, p.region),
                      x = at<const float>(p.inputs[0], p.region), log = a.log, threads = p.threads,
                      &resources] {
    float* const scratch = resources.scratch();
    const auto [y_step, x_step] = nest.inner().strides;
    nest.for_each_run(threads, [&](const Nest<2>::Offsets& at, int64_t count) {
      float* const row = scratch + omp_get_thread_num() * row_floats;
      for (int64_t i = 0; i < count; ++i) {
        const float* from = x + at[1] + i * x_step;
        float* to = y + at[0] + i * y_step;
        if (x_stride == 1 && y_stride == 1) {
          softmax_row(log, from, to, length);
          continue;
        }
        for (int64_t j = 0; j < length; ++j) row[j] = from[j * x_stride];
        softmax_row(log, row, row, length);
        for (int64_t j = 0; j < length; ++j) to[j * y_stride] = row[j];
      }
    });
    return Status();
  });
}

std::unique_ptr<Kernel> prepare_layer_norm(const Problem& p) {
  const size_t last = p.region.size() - 1;
  return make_kernel([nest = rows_besides(p, last), y = at(p.output, p.region),
                      x = at<const float>(p.inputs[0], p.region), length = p.region[last].size(),
                      scale = p.inputs[1].as<float>(), bias = p.inputs[2].as<float>(),
                      epsilon = p.op->as<LayerNormAttributes>().epsilon, threads = p.threads] {
    const auto [y_step, x_step] = nest.inner().strides;
    nest.for_each_run(threads, [&](const Nest<2>::Offsets& at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        layer_norm_row(x + at[1] + i * x_step, scale, bias, epsilon, y + at[0] + i * y_step,
                       length);
      }
    });
    return Status();
  });
}

class RowLoops : public Implementation {
 public:
  const char* name() const override { return "loops_rows"; }

  Status supports(const Problem& p) const override {
    const OperatorKind kind = p.op->kind();
    if (kind == OperatorKind::kSoftmax) return {};
    if (kind != OperatorKind::kLayerNorm) {
      return unsupported(std::string("row loops do not do ") + to_string(kind));
    }
    const size_t last = p.region.size() - 1;
    const bool contiguous = p.region[last].size() == 1 ||
                            (p.inputs[0].strides[last] == 1 && p.output.strides[last] == 1);
    return contiguous ? Status()
                      : unsupported(p.op->name + ": rows are not contiguous in memory; give its " +
                                    "tensors the row-major order");
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    return p.op->kind() == OperatorKind::kSoftmax ? prepare_softmax(p, resources)
                                                  : prepare_layer_norm(p);
  }
};

}  // namespace

const Implementation& row_loops() {
  static const RowLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
