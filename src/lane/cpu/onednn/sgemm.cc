// Batched matrix multiplication by dnnl_sgemm, which takes leading dimensions on all sides.
#include <dnnl.h>

#include <atomic>
#include <vector>

#include "lane/cpu/loops/nest.h"
#include "lane/cpu/onednn/onednn.h"

namespace tandem::cpu {
namespace {

class OneDnnSgemm : public Implementation {
 public:
  const char* name() const override { return "onednn_sgemm"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() != OperatorKind::kMatMul) {
      return unsupported(std::string("onednn_sgemm does not do ") + to_string(p.op->kind()));
    }
    for (const TensorView* view : {&p.inputs[0], &p.inputs[1], &p.output}) {
      if (view->dims.back() > 1 && view->strides.back() != 1) {
        return unsupported(p.op->name + ": rows are not contiguous in memory; give its tensors " +
                           "the row-major order");
      }
    }
    return {};
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources&) const override {
    const auto& a = p.op->as<MatMulAttributes>();
    const size_t rank = p.region.size();
    const Range rows = p.region[rank - 2], columns = p.region[rank - 1];
    const TensorView &u = p.inputs[0], &v = p.inputs[1];

    std::vector<Nest<3>::Loop> dims;
    const float* a_from = u.as<float>();
    const float* b_from = v.as<float>();
    for (size_t d = 0; d + 2 < rank; ++d) {
      const int64_t a_stride = broadcast_stride(u, rank, d);
      const int64_t b_stride = broadcast_stride(v, rank, d);
      dims.push_back({p.region[d].size(), {p.output.strides[d], a_stride, b_stride}});
      a_from += p.region[d].begin * a_stride;
      b_from += p.region[d].begin * b_stride;
    }
    // Strides of rows (m, n) and of the summed dimension (k).
    const size_t last = rank - 1, second = rank - 2;
    const int64_t a_row = u.strides[a.transpose_a ? last : second];
    const int64_t b_column = v.strides[a.transpose_b ? second : last];
    a_from += rows.begin * a_row;
    b_from += columns.begin * b_column;

    return make_kernel([=, nest = Nest<3>::of(dims), to = at(p.output, p.region),
                        depth = u.dims[a.transpose_a ? second : last], lda = u.strides[second],
                        ldb = v.strides[second], ldc = p.output.strides[second], alpha = a.alpha,
                        ta = a.transpose_a ? 'T' : 'N', tb = a.transpose_b ? 'T' : 'N',
                        name = p.op->name, threads = p.threads] {
      std::atomic<bool> failed = false;
      const auto [to_step, a_step, b_step] = nest.inner().strides;
      int64_t batches = 1;
      for (const auto& loop : nest.loops) batches *= loop.extent;
      // Few batches: cut their rows. The library stays on the calling thread inside of a team.
      const int row_parts = batches < threads ? threads : 1;
      parallel(row_parts, [&](int index, int parts) {
        const Part part = part_of(rows.size(), index, parts);
        if (part.begin == part.end) return;
        nest.for_each_run(row_parts > 1 ? 1 : threads, [&](const Nest<3>::Offsets& at,
                                                           int64_t count) {
          for (int64_t i = 0; i < count; ++i) {
            const dnnl_status_t status = dnnl_sgemm(
                ta, tb, part.end - part.begin, columns.size(), depth, alpha,
                a_from + at[1] + i * a_step + part.begin * a_row, lda, b_from + at[2] + i * b_step,
                ldb, 0.0f, to + at[0] + i * to_step + part.begin * ldc, ldc);
            if (status != dnnl_success) failed = true;
          }
        });
      });
      if (!failed) return Status();
      return internal_error(name + ": dnnl_sgemm refused its arguments");
    });
  }
};

}  // namespace

const Implementation& onednn_sgemm() {
  static const OneDnnSgemm implementation;
  return implementation;
}

}  // namespace tandem::cpu
