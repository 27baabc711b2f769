// Linear operators as matrix products.
#include "lane/cpu/loops/gemm_plan.h"

namespace tandem::cpu {
namespace {

PackedLayout linear_layout(const Problem& p) {
  PackedLayout layout;
  layout.add(p.inputs[1].dims[0], p.inputs[1].dims[1]);
  return layout;
}

void pack_linear(const Problem& p, float* packed) {
  const auto& a = p.op->as<LinearAttributes>();
  const float* weights = p.inputs[1].as<float>();
  const int64_t columns = p.inputs[1].dims[1];
  pack_groups(
      linear_layout(p), bias_of(p, a.has_bias),
      [=](int64_t, int64_t k, int64_t column) { return weights[k * columns + column]; }, 1, packed);
}

GemmPlan plan_linear(const Problem& p) {
  const auto& a = p.op->as<LinearAttributes>();
  const TensorView* residual = residual_of(p, a.has_residual);
  const RowDims rows = merge_rows(p, residual);
  const size_t last = p.region.size() - 1;

  ImplicitGemm g;
  g.segments = {{0, p.inputs[1].dims[0]}};
  g.activation = a.activation;
  Region corner = p.region;
  corner[last].begin = 0;
  g.input = at(p.inputs[0], corner);
  g.output = at(p.output, corner);
  if (residual != nullptr) g.residual = at(*residual, corner);
  for (size_t i = 0; i < rows.extents.size(); ++i) {
    const size_t to = 3 - rows.extents.size() + i;
    g.grid[to] = rows.extents[i];
    g.input_strides[to] = rows.strides[i][0];
    g.output_strides[to] = rows.strides[i][1];
    g.residual_strides[to] = rows.strides[i][2];
  }
  g.column_begin = p.region[last].begin;
  g.column_end = p.region[last].end;
  GemmPlan plan;
  plan.gemms.push_back(std::move(g));
  return plan;
}

}  // namespace

RowDims merge_rows(const Problem& p, const TensorView* residual) {
  RowDims rows;
  for (size_t d = 0; d + 1 < p.region.size(); ++d) {
    const int64_t extent = p.region[d].size();
    if (extent == 1) continue;
    const std::array<int64_t, 3> strides{p.inputs[0].strides[d], p.output.strides[d],
                                         residual != nullptr ? residual->strides[d] : 0};
    bool merges = !rows.extents.empty();
    for (int i = 0; merges && i < 3; ++i) merges = rows.strides.back()[i] == strides[i] * extent;
    if (merges) {
      rows.extents.back() *= extent;
      rows.strides.back() = strides;
    } else {
      rows.extents.push_back(extent);
      rows.strides.push_back(strides);
    }
  }
  return rows;
}

const GemmLowering kLinearLowering = {linear_layout, pack_linear, plan_linear};

}  // namespace tandem::cpu
