// Convolution, transposed convolution and linear operators on the implicit matrix product.
#include <algorithm>
#include <utility>

#include "lane/cpu/loops/gemm_plan.h"
#include "lane/cpu/loops/loops.h"

namespace tandem::cpu {
namespace {

const GemmLowering& lowering_of(const Problem& p) {
  switch (p.op->kind()) {
    case OperatorKind::kConv:
      return kConvLowering;
    case OperatorKind::kConvTranspose:
      return kConvTransposeLowering;
    default:
      return kLinearLowering;
  }
}

bool is_contiguous_along(const TensorView& view, size_t dim) {
  return view.strides[dim] == 1 || view.dims[dim] == 1;
}

class TiledGemm : public Implementation {
 public:
  const char* name() const override { return "loops_tiled_gemm"; }

  Status supports(const Problem& p) const override {
    const OperatorKind kind = p.op->kind();
    bool has_residual = false;
    size_t channel_dim = 1;
    if (kind == OperatorKind::kConv) {
      has_residual = p.op->as<ConvAttributes>().has_residual;
    } else if (kind == OperatorKind::kLinear) {
      has_residual = p.op->as<LinearAttributes>().has_residual;
      channel_dim = p.region.size() - 1;
      if (merge_rows(p, residual_of(p, has_residual)).extents.size() > 3) {
        return unsupported(p.op->name + ": rows in more than three nested strides");
      }
    } else if (kind != OperatorKind::kConvTranspose) {
      return unsupported(std::string("tiled_gemm does not do ") + to_string(kind));
    }
    if (!is_contiguous_along(p.inputs[0], channel_dim) ||
        !is_contiguous_along(p.output, channel_dim) ||
        (has_residual && !is_contiguous_along(p.inputs.back(), channel_dim))) {
      return unsupported(p.op->name + ": channels are not contiguous in memory; give its tensors " +
                         "the channels-last order");
    }
    return {};
  }

  void describe(const Problem& p, ImplementationInfo& info) const override {
    info.work_groups = 0;
    info.computed_flops = 0;
    const GemmPlan plan = lowering_of(p).plan(p);
    info.dispatches = plan.staging.used ? 2 : 1;
    for (const ImplicitGemm& g : plan.gemms) {
      if (g.empty()) continue;
      const TileCount count = count_tiles(g);
      info.local_size[0] = count.panels * kPanel;
      info.local_size[1] = count.rows;
      info.work_groups += count.tiles;
      info.computed_flops += 2 * count.multiply_adds;
    }
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    const GemmLowering& lowering = lowering_of(p);
    const PackedLayout layout = lowering.layout(p);
    const auto packed = resources.packed(p.op->name + ":panels", layout.floats,
                                         [&](float* to) { lowering.pack(p, to); });
    GemmPlan plan = lowering.plan(p);
    std::vector<GemmRunner> runners;
    for (size_t i = 0; i < plan.gemms.size(); ++i) {
      ImplicitGemm& g = plan.gemms[i];
      if (g.empty()) continue;
      g.panels = packed.get() + layout.groups[i].panels_at;
      g.bias = packed.get() + layout.groups[i].bias_at;
      runners.emplace_back(std::move(g));
    }
    resources.reserve_scratch(plan.staging.floats() * sizeof(float));
    return make_kernel([runners = std::move(runners), staging = plan.staging, packed, &resources,
                        threads = p.threads]() {
      float* staged = nullptr;
      if (staging.used) {
        staged = resources.scratch();
        stage(staging, threads, staged);
      }
      for (const GemmRunner& runner : runners) runner.run(staged, threads);
      return Status();
    });
  }
};

}  // namespace

const Implementation& tiled_gemm() {
  static const TiledGemm implementation;
  return implementation;
}

}  // namespace tandem::cpu
