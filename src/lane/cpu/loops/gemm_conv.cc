// Convolutions and transposed convolutions as implicit matrix products.
#include <algorithm>
#include <array>
#include <limits>

#include "lane/cpu/loops/gemm_plan.h"

namespace tandem::cpu {
namespace {

// Input channels below which the kernel window's rows are made contiguous by a copy of the input.
constexpr int64_t kFewChannels = 16;

// Where the rows of a product lie in the image: output (h, w) of its grid reads, for each pair of
// taps, the pixel origin + step * (h, w) + (taps[0][i], taps[1][j]).
struct Lattice {
  int64_t origin[2] = {0, 0};
  int64_t step[2] = {1, 1};
  std::vector<int64_t> taps[2];

  Range reach(int axis, int64_t extent) const {
    const auto [low, high] = std::minmax_element(taps[axis].begin(), taps[axis].end());
    return {origin[axis] + *low, origin[axis] + step[axis] * (extent - 1) + *high + 1};
  }
};

// One product before it is known whether the input is copied.
struct Product {
  ImplicitGemm gemm;
  Lattice lattice;
  int64_t first_channel = 0;

  bool reads() const {
    return !gemm.empty() && !lattice.taps[0].empty() && !lattice.taps[1].empty();
  }
};

// The pixels that any of the products reads; empty if none does.
std::array<Range, 2> box_of(const std::vector<Product>& products) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  std::array<Range, 2> box{Range{kFar, -kFar}, Range{kFar, -kFar}};
  for (const Product& product : products) {
    if (!product.reads()) continue;
    for (int i = 0; i < 2; ++i) {
      const Range reach = product.lattice.reach(i, product.gemm.grid[1 + i]);
      box[i] = {std::min(box[i].begin, reach.begin), std::max(box[i].end, reach.end)};
    }
  }
  return box;
}

Staging staging_of(const Problem& p, const std::array<Range, 2>& box) {
  const TensorView& x = p.inputs[0];
  Staging staging;
  staging.used = true;
  staging.from = x.as<float>() + p.region[0].begin * x.strides[0];
  staging.strides = x.strides;
  staging.size[0] = p.region[0].size();
  staging.size[3] = x.dims[1];
  for (int i = 0; i < 2; ++i) {
    staging.image[i] = x.dims[2 + i];
    staging.origin[i] = box[i].begin;
    staging.size[1 + i] = box[i].size();
  }
  return staging;
}

// `channels`: that each product sums up, per tap. `merge_taps`: the window is wider than a pixel.
GemmPlan lower(const Problem& p, std::vector<Product> products, int64_t channels, bool merge_taps) {
  const TensorView& x = p.inputs[0];
  GemmPlan plan;
  const std::array<Range, 2> box = box_of(products);
  const bool reads = !box[0].empty() && !box[1].empty();
  const bool inside = reads && box[0].begin >= 0 && box[1].begin >= 0 && box[0].end <= x.dims[2] &&
                      box[1].end <= x.dims[3];
  if (reads && (!inside || (merge_taps && x.dims[1] < kFewChannels))) {
    plan.staging = staging_of(p, box);
  }
  const Staging& s = plan.staging;
  int64_t strides[3] = {x.strides[0], x.strides[2], x.strides[3]};
  if (s.used) {
    strides[2] = s.size[3];
    strides[1] = s.size[2] * strides[2];
    strides[0] = s.size[1] * strides[1];
  }
  for (Product& product : products) {
    ImplicitGemm& g = product.gemm;
    const Lattice& l = product.lattice;
    if (!s.used) g.input = x.as<float>() + p.region[0].begin * x.strides[0];
    g.input_offset = product.first_channel;
    g.input_strides[0] = strides[0];
    for (int i = 0; i < 2; ++i) {
      g.input_strides[1 + i] = l.step[i] * strides[1 + i];
      g.input_offset += (l.origin[i] - s.origin[i]) * strides[1 + i];
    }
    for (const int64_t ty : l.taps[0]) {
      for (const int64_t tx : l.taps[1]) {
        const int64_t offset = ty * strides[1] + tx * strides[2];
        if (!g.segments.empty() && g.segments.back().offset + g.segments.back().count == offset) {
          g.segments.back().count += channels;
        } else {
          g.segments.push_back({offset, channels});
        }
      }
    }
    plan.gemms.push_back(std::move(g));
  }
  return plan;
}

// The columns of group `group` that lie in the channel range; empty if none.
Range columns_of(Range channels, int64_t group, int64_t columns) {
  const int64_t begin = std::max<int64_t>(channels.begin - group * columns, 0);
  return {begin, std::max(begin, std::min(channels.end - group * columns, columns))};
}

void set_output(const Problem& p, const TensorView* residual, ImplicitGemm& g) {
  const Region& r = p.region;
  const auto corner = [&](const TensorView& v) {
    return v.as<float>() + r[0].begin * v.strides[0] + r[2].begin * v.strides[2] +
           r[3].begin * v.strides[3];
  };
  const auto set_strides = [](const TensorView& v, int64_t strides[3]) {
    strides[0] = v.strides[0];
    strides[1] = v.strides[2];
    strides[2] = v.strides[3];
  };
  g.grid[0] = r[0].size();
  g.grid[1] = r[2].size();
  g.grid[2] = r[3].size();
  g.output = corner(p.output);
  set_strides(p.output, g.output_strides);
  if (residual == nullptr) return;
  g.residual = corner(*residual);
  set_strides(*residual, g.residual_strides);
}

// `common` once per group, each with its channels and columns.
void add_groups(const Problem& p, int64_t groups, const Product& common,
                std::vector<Product>& products) {
  const int64_t columns = p.output.dims[1] / groups;
  for (int64_t group = 0; group < groups; ++group) {
    Product product = common;
    const Range range = columns_of(p.region[1], group, columns);
    product.first_channel = group * (p.inputs[0].dims[1] / groups);
    product.gemm.output += group * columns;
    if (product.gemm.residual != nullptr) product.gemm.residual += group * columns;
    product.gemm.column_begin = range.begin;
    product.gemm.column_end = range.end;
    products.push_back(std::move(product));
  }
}

// --- Convolution ---

PackedLayout conv_layout(const Problem& p) {
  const auto& a = p.op->as<ConvAttributes>();
  const Dims& w = p.inputs[1].dims;
  PackedLayout layout;
  for (int64_t g = 0; g < a.groups; ++g) layout.add(w[1] * w[2] * w[3], w[0] / a.groups);
  return layout;
}

void pack_conv(const Problem& p, float* packed) {
  const auto& a = p.op->as<ConvAttributes>();
  const Dims w = p.inputs[1].dims;
  const float* weights = p.inputs[1].as<float>();
  const int64_t columns = w[0] / a.groups, taps = w[2] * w[3];
  pack_groups(
      conv_layout(p), bias_of(p, a.has_bias),
      [=](int64_t group, int64_t k, int64_t column) {
        const int64_t tap = k / w[1], channel = k % w[1];
        return weights[((group * columns + column) * w[1] + channel) * taps + tap];
      },
      a.groups, packed);
}

GemmPlan plan_conv(const Problem& p) {
  const auto& a = p.op->as<ConvAttributes>();
  Product common;
  common.gemm.activation = a.activation;
  set_output(p, residual_of(p, a.has_residual), common.gemm);
  for (int i = 0; i < 2; ++i) {
    common.lattice.origin[i] = p.region[2 + i].begin * a.stride[i] - a.pads[i];
    common.lattice.step[i] = a.stride[i];
    for (int64_t k = 0; k < a.kernel[i]; ++k) common.lattice.taps[i].push_back(k * a.dilation[i]);
  }
  std::vector<Product> products;
  add_groups(p, a.groups, common, products);
  const bool merge_taps = a.groups == 1 && a.dilation[1] == 1 && a.kernel[1] > 1;
  return lower(p, std::move(products), p.inputs[0].dims[1] / a.groups, merge_taps);
}

// --- Transposed convolution ---

// Outputs whose (position + pad) leaves the same remainder modulo the stride meet the same taps of
// the kernel: per remainder in height and width, a convolution of stride one.
struct Phase {
  int64_t remainder[2];
  std::vector<int64_t> kernel[2];  // indices of taps in height and width
};

std::vector<Phase> phases_of(const ConvTransposeAttributes& a) {
  std::vector<Phase> phases;
  for (int64_t ry = 0; ry < a.stride[0]; ++ry) {
    for (int64_t rx = 0; rx < a.stride[1]; ++rx) {
      Phase phase{{ry, rx}, {}};
      for (int i = 0; i < 2; ++i) {
        for (int64_t k = 0; k < a.kernel[i]; ++k) {
          if (k * a.dilation[i] % a.stride[i] == phase.remainder[i]) phase.kernel[i].push_back(k);
        }
      }
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

// Products in the order phase, group.
PackedLayout conv_transpose_layout(const Problem& p) {
  const auto& a = p.op->as<ConvTransposeAttributes>();
  const Dims& w = p.inputs[1].dims;
  PackedLayout layout;
  for (const Phase& phase : phases_of(a)) {
    const auto taps = static_cast<int64_t>(phase.kernel[0].size() * phase.kernel[1].size());
    for (int64_t g = 0; g < a.groups; ++g) layout.add(taps * w[0] / a.groups, w[1]);
  }
  return layout;
}

void pack_conv_transpose(const Problem& p, float* packed) {
  const auto& a = p.op->as<ConvTransposeAttributes>();
  const Dims w = p.inputs[1].dims;
  const float* weights = p.inputs[1].as<float>();
  const int64_t channels = w[0] / a.groups;
  const std::vector<Phase> phases = phases_of(a);
  pack_groups(
      conv_transpose_layout(p), bias_of(p, a.has_bias),
      [&](int64_t index, int64_t k, int64_t column) {
        const Phase& phase = phases[index / a.groups];
        const int64_t group = index % a.groups;
        const int64_t tap = k / channels, channel = k % channels;
        const auto width = static_cast<int64_t>(phase.kernel[1].size());
        const int64_t y = phase.kernel[0][tap / width], x = phase.kernel[1][tap % width];
        return weights[(((group * channels + channel) * w[1] + column) * w[2] + y) * w[3] + x];
      },
      a.groups, packed);
}

GemmPlan plan_conv_transpose(const Problem& p) {
  const auto& a = p.op->as<ConvTransposeAttributes>();
  std::vector<Product> products;
  for (const Phase& phase : phases_of(a)) {
    Product common;
    ImplicitGemm& g = common.gemm;
    g.activation = a.activation;
    set_output(p, nullptr, g);
    for (int i = 0; i < 2; ++i) {
      const Range range = p.region[2 + i];
      // The first position of the range that has this remainder.
      const int64_t offset = (range.begin + a.pads[i]) % a.stride[i];
      const int64_t skip = (phase.remainder[i] - offset + a.stride[i]) % a.stride[i];
      const int64_t first = range.begin + skip;
      g.grid[1 + i] = first < range.end ? (range.end - first + a.stride[i] - 1) / a.stride[i] : 0;
      g.output += skip * g.output_strides[1 + i];
      g.output_strides[1 + i] *= a.stride[i];
      for (const int64_t k : phase.kernel[i]) {
        common.lattice.taps[i].push_back((first + a.pads[i] - k * a.dilation[i]) / a.stride[i]);
      }
    }
    add_groups(p, a.groups, common, products);
  }
  return lower(p, std::move(products), p.inputs[0].dims[1] / a.groups, false);
}

}  // namespace

const GemmLowering kConvLowering = {conv_layout, pack_conv, plan_conv};
const GemmLowering kConvTransposeLowering = {conv_transpose_layout, pack_conv_transpose,
                                             plan_conv_transpose};

}  // namespace tandem::cpu
