// Operators as implicit matrix products: what gemm_operators.cc runs.
#pragma once

#include <vector>

#include "lane/cpu/kernel.h"
#include "lane/cpu/loops/implicit_gemm.h"
#include "lane/cpu/loops/staging.h"

namespace tandem::cpu {

// What one slice comes down to: products that run one after another, after an optional copy.
struct GemmPlan {
  std::vector<ImplicitGemm> gemms;  // empty() ones included, so that they correspond to groups
  Staging staging;                  // of the input of all gemms
};

// The packed weights of one product: panels, then bias, at the offset noted here.
struct PackedGroup {
  int64_t depth, columns;
  int64_t panels_at, bias_at;
};

struct PackedLayout {
  std::vector<PackedGroup> groups;
  int64_t floats = 0;

  void add(int64_t depth, int64_t columns) {
    const int64_t panels = panel_floats(depth, columns);
    groups.push_back({depth, columns, floats, floats + panels});
    floats += panels + panel_floats(1, columns);
  }
};

// One operator kind in these terms.
struct GemmLowering {
  PackedLayout (*layout)(const Problem&);
  void (*pack)(const Problem&, float* packed);
  GemmPlan (*plan)(const Problem&);
};
extern const GemmLowering kConvLowering;
extern const GemmLowering kConvTransposeLowering;
extern const GemmLowering kLinearLowering;

inline const float* bias_of(const Problem& p, bool has_bias) {
  return has_bias ? p.inputs[2].as<float>() : nullptr;
}

inline const TensorView* residual_of(const Problem& p, bool has_residual) {
  return has_residual ? &p.inputs.back() : nullptr;
}

// Packs the groups in order; weight(group, depth index, column).
template <typename Weight>
void pack_groups(const PackedLayout& layout, const float* bias, Weight weight, int64_t bias_groups,
                 float* packed) {
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    const PackedGroup& group = layout.groups[i];
    pack_panels(
        group.depth, group.columns,
        [&](int64_t k, int64_t column) { return weight(static_cast<int64_t>(i), k, column); },
        packed + group.panels_at);
    if (bias != nullptr) {
      std::copy_n(bias + static_cast<int64_t>(i) % bias_groups * group.columns, group.columns,
                  packed + group.bias_at);
    }
  }
}

// The leading dimensions of a linear operator as few nested rows, those that are contiguous in all
// tensors merged.
struct RowDims {
  std::vector<int64_t> extents;
  std::vector<std::array<int64_t, 3>> strides;  // x, y, residual
};
RowDims merge_rows(const Problem& p, const TensorView* residual);

}  // namespace tandem::cpu
