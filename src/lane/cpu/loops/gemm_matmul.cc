// Batched products of two computed matrices. The right operand of each is packed while it is in
// cache, transposed or not; the left one is read where it lies.
#include <algorithm>
#include <utility>

#include "lane/cpu/loops/implicit_gemm.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/nest.h"
#include "lane/cpu/loops/pack.h"

namespace tandem::cpu {
namespace {

struct Product {
  GemmRunner runner;
  Nest<3> batches;              // output, a, b
  MatrixSource a = {}, b = {};  // of the first batch; a only where it is transposed
  const float* a_from = nullptr;
  bool copies_a = false;
  int64_t packed_floats = 0, copied_floats = 0;  // a thread

  int64_t floats() const { return packed_floats + copied_floats; }

  // The part of every batch's rows.
  void run(const Nest<3>::Offsets& at, int64_t count, const Nest<3>::Offsets& step, Part rows,
           float* scratch) const {
    float* const packed = scratch;
    float* const copied = scratch + packed_floats;
    const float* last_b = nullptr;
    for (int64_t i = 0; i < count; ++i) {
      MatrixSource source = b;
      source.data += at[2] + i * step[2];
      // A right operand that all batches share is packed once.
      if (source.data != last_b) pack_matrix(source, packed);
      last_b = source.data;
      GemmRunner::Operands operands;
      operands.panels = packed;
      operands.output = runner.gemm().output + at[0] + i * step[0];
      operands.input = a_from + at[1] + i * step[1];
      if (copies_a) {
        MatrixSource left = a;
        left.data += at[1] + i * step[1];
        transpose_matrix(left, copied, left.rows);
        operands.input = copied;
      }
      runner.run_part(operands, rows, runner.panels());
    }
  }
};

class BatchedGemm : public Implementation {
 public:
  const char* name() const override { return "loops_batched_gemm"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() != OperatorKind::kMatMul) {
      return unsupported(std::string("batched_gemm does not do ") + to_string(p.op->kind()));
    }
    for (const TensorView* view : {&p.inputs[0], &p.inputs[1], &p.output}) {
      if (view->dims.back() > 1 && view->strides.back() != 1) {
        return unsupported(p.op->name + ": rows are not contiguous in memory; give its tensors " +
                           "the row-major order");
      }
    }
    return {};
  }

  void describe(const Problem& p, ImplementationInfo& info) const override {
    const Product product = make(p, nullptr);
    const TileCount count = count_tiles(product.runner.gemm());
    double batches = 1;
    for (const auto& loop : product.batches.loops) batches *= static_cast<double>(loop.extent);
    info.local_size[0] = count.panels * kPanel;
    info.local_size[1] = count.rows;
    info.work_groups = static_cast<int64_t>(batches) * count.tiles;
    info.computed_flops = 2 * count.multiply_adds * batches;
    info.dispatches = product.copies_a ? 3 : 2;
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    const auto zeros = resources.packed("zeros" + std::to_string(p.region.back().size()),
                                        panel_floats(1, p.region.back().size()), [](float*) {});
    Product product = make(p, zeros.get());
    resources.reserve_scratch(product.floats() * p.threads * sizeof(float));
    return make_kernel([product = std::move(product), zeros, &resources, threads = p.threads] {
      float* const scratch = resources.scratch();
      const Nest<3>& batches = product.batches;
      const Nest<3>::Offsets step = batches.inner().strides;
      int64_t count = 1;
      for (const auto& loop : batches.loops) count *= loop.extent;
      const int64_t rows = product.runner.gemm().rows();
      if (count >= threads || threads == 1) {
        batches.for_each_run(
            threads,
            [&](const Nest<3>::Offsets& at, int64_t n) {
              product.run(at, n, step, {0, rows},
                          scratch + omp_get_thread_num() * product.floats());
            },
            1);
      } else {
        // Few batches: their rows are cut.
        parallel(threads, [&](int index, int parts) {
          batches.for_each_run(1, [&](const Nest<3>::Offsets& at, int64_t n) {
            product.run(at, n, step, part_of(rows, index, parts),
                        scratch + index * product.floats());
          });
        });
      }
      return Status();
    });
  }

 private:
  static Product make(const Problem& p, const float* zeros) {
    const auto& attributes = p.op->as<MatMulAttributes>();
    const size_t rank = p.region.size();
    const size_t last = rank - 1, second = rank - 2;
    const Range rows = p.region[second], columns = p.region[last];
    const TensorView &u = p.inputs[0], &v = p.inputs[1];
    const int64_t depth = u.dims[attributes.transpose_a ? second : last];

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
    // A dimension of extent one may have any stride.
    a_from += rows.begin * (attributes.transpose_a ? 1 : u.strides[second]);
    b_from += columns.begin * (attributes.transpose_b ? v.strides[second] : 1);

    ImplicitGemm g;
    g.segments = {{0, depth}};
    g.grid[2] = rows.size();
    g.input_strides[2] = attributes.transpose_a ? depth : u.strides[second];
    g.output = at(p.output, p.region);
    g.output_strides[2] = p.output.strides[second];
    g.bias = zeros;
    g.column_end = columns.size();
    Product product{.runner = GemmRunner(std::move(g)), .batches = Nest<3>::of(dims)};
    product.a_from = a_from;
    product.copies_a = attributes.transpose_a;
    product.a = {
        .data = a_from, .stride = u.strides[second], .rows = depth, .columns = rows.size()};
    product.b = {.data = b_from,
                 .stride = v.strides[second],
                 .rows = attributes.transpose_b ? columns.size() : depth,
                 .columns = attributes.transpose_b ? depth : columns.size(),
                 .transposed = attributes.transpose_b,
                 .factor = attributes.alpha};
    product.packed_floats = panel_floats(depth, columns.size());
    product.copied_floats = attributes.transpose_a ? rows.size() * depth : 0;
    product.copied_floats = (product.copied_floats + kLineFloats - 1) / kLineFloats * kLineFloats;
    return product;
  }
};

}  // namespace

const Implementation& batched_gemm() {
  static const BatchedGemm implementation;
  return implementation;
}

}  // namespace tandem::cpu
