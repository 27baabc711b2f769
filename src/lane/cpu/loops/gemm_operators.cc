// Convolution, transposed convolution and linear operators on the implicit matrix product.
#include <algorithm>
#include <array>
#include <cstring>

#include "lane/cpu/loops/implicit_gemm.h"
#include "lane/cpu/loops/loops.h"

namespace tandem::cpu {
namespace {

// Input channels below which a convolution's input is copied into a dense, zero-padded buffer
// first: a row of the kernel window is then one contiguous run.
constexpr int64_t kFewChannels = 16;

// A dense copy [n][height][width][channels] of the box of the input that a slice reads, zero
// outside of the image, with slack behind it.
struct Staging {
  bool used = false;
  const float* from = nullptr;  // element (n begin, channel 0, 0, 0)
  Dims strides;                 // n, c, h, w
  int64_t image[2] = {0, 0};    // extents of the input
  int64_t origin[2] = {0, 0};
  int64_t size[4] = {0, 0, 0, 0};  // n, h, w, c

  int64_t floats() const {
    return used ? size[0] * size[1] * size[2] * size[3] + kPackedStride : 0;
  }
};

// kChannels: 0 where it is not known at compile time.
template <int kChannels>
void stage_row(const Staging& s, const float* from, float* to) {
  const int64_t channels = kChannels > 0 ? kChannels : s.size[3];
  const int64_t begin = std::clamp<int64_t>(-s.origin[1], 0, s.size[2]);
  const int64_t end = std::clamp<int64_t>(s.image[1] - s.origin[1], begin, s.size[2]);
  std::fill_n(to, begin * channels, 0.0f);
  std::fill(to + end * channels, to + s.size[2] * channels, 0.0f);
  for (int64_t w = begin; w < end; ++w) {
    const float* pixel = from + (s.origin[1] + w) * s.strides[3];
    for (int64_t c = 0; c < channels; ++c) to[w * channels + c] = pixel[c];
  }
}

void stage(const Staging& s, int threads, float* to) {
  const int64_t rows = s.size[0] * s.size[1];
  const int64_t row_floats = s.size[2] * s.size[3];
  parallel(threads, [&](int index, int parts) {
    const Part part = part_of(rows, index, parts);
    for (int64_t row = part.begin; row < part.end; ++row) {
      const int64_t y = s.origin[0] + row % s.size[1];
      float* target = to + row * row_floats;
      if (y < 0 || y >= s.image[0]) {
        std::fill_n(target, row_floats, 0.0f);
        continue;
      }
      const float* from = s.from + row / s.size[1] * s.strides[0] + y * s.strides[2];
      s.size[3] == 3 ? stage_row<3>(s, from, target) : stage_row<0>(s, from, target);
    }
  });
}

// What one slice comes down to: products that run one after another, after an optional copy.
struct GemmPlan {
  std::vector<ImplicitGemm> gemms;
  Staging staging;
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

const float* bias_of(const Problem& p, bool has_bias) {
  return has_bias ? p.inputs[2].as<float>() : nullptr;
}

const TensorView* residual_of(const Problem& p, bool has_residual) {
  return has_residual ? &p.inputs.back() : nullptr;
}

// Packs `groups` in order; weight(group, depth index, column).
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

// The columns of group `group` that lie in the channel range; empty if none.
Range columns_of(Range channels, int64_t group, int64_t columns) {
  return {std::max<int64_t>(channels.begin - group * columns, 0),
          std::min(channels.end - group * columns, columns)};
}

void set_output(const Problem& p, const TensorView* residual, ImplicitGemm& g) {
  const Region& r = p.region;
  const Dims& s = p.output.strides;
  const auto corner = [&](const TensorView& v) {
    return v.as<float>() + r[0].begin * v.strides[0] + r[2].begin * v.strides[2] +
           r[3].begin * v.strides[3];
  };
  g.grid[0] = r[0].size();
  g.grid[1] = r[2].size();
  g.grid[2] = r[3].size();
  g.output = corner(p.output);
  std::copy_n(std::array{s[0], s[2], s[3]}.begin(), 3, g.output_strides);
  if (residual != nullptr) {
    g.residual = corner(*residual);
    std::copy_n(
        std::array{residual->strides[0], residual->strides[2], residual->strides[3]}.begin(), 3,
        g.residual_strides);
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
  const TensorView& x = p.inputs[0];
  const Region& r = p.region;
  const int64_t channels = x.dims[1] / a.groups;
  const int64_t columns = p.output.dims[1] / a.groups;

  GemmPlan plan;
  ImplicitGemm common;
  common.channels = channels;
  common.activation = a.activation;
  set_output(p, residual_of(p, a.has_residual), common);
  for (int i = 0; i < 2; ++i) {
    common.origin[i] = r[2 + i].begin * a.stride[i] - a.pads[i];
    common.step[i] = a.stride[i];
  }

  const bool merge_row =
      a.groups == 1 && a.dilation[1] == 1 && x.dims[1] < kFewChannels && a.kernel[1] > 1;
  Staging& staging = plan.staging;
  staging.used = merge_row;
  if (staging.used) {
    staging.from = x.as<float>() + r[0].begin * x.strides[0];
    staging.strides = x.strides;
    staging.size[0] = r[0].size();
    staging.size[3] = x.dims[1];
    for (int i = 0; i < 2; ++i) {
      staging.image[i] = x.dims[2 + i];
      staging.origin[i] = common.origin[i];
      staging.size[1 + i] =
          (r[2 + i].size() - 1) * a.stride[i] + (a.kernel[i] - 1) * a.dilation[i] + 1;
      common.origin[i] = 0;
      common.input_size[i] = staging.size[1 + i];
    }
    common.input_strides[2] = staging.size[3];
    common.input_strides[1] = staging.size[2] * staging.size[3];
    common.input_strides[0] = staging.size[1] * common.input_strides[1];
    common.input_has_slack = true;
  } else {
    common.input = x.as<float>() + r[0].begin * x.strides[0];
    std::copy_n(std::array{x.strides[0], x.strides[2], x.strides[3]}.begin(), 3,
                common.input_strides);
    common.input_size[0] = x.dims[2];
    common.input_size[1] = x.dims[3];
  }
  if (merge_row) {
    common.channels = a.kernel[1] * channels;
    for (int64_t y = 0; y < a.kernel[0]; ++y) common.taps.push_back({y * a.dilation[0], 0});
  } else {
    for (int64_t y = 0; y < a.kernel[0]; ++y) {
      for (int64_t x_tap = 0; x_tap < a.kernel[1]; ++x_tap) {
        common.taps.push_back({y * a.dilation[0], x_tap * a.dilation[1]});
      }
    }
  }

  const PackedLayout layout = conv_layout(p);
  for (int64_t group = 0; group < a.groups; ++group) {
    const Range range = columns_of(r[1], group, columns);
    // Keeps its place even where the slice has none of it: gemms and packed groups correspond.
    ImplicitGemm g = common;
    g.channel_offset = group * channels;
    g.output += group * columns;
    if (g.residual != nullptr) g.residual += group * columns;
    g.column_begin = range.begin;
    g.column_end = std::max(range.begin, range.end);
    plan.gemms.push_back(std::move(g));
  }
  return plan;
}

// --- Transposed convolution ---

// Outputs whose (position + pad) leaves the same remainder modulo the stride meet the same taps of
// the kernel: per remainder in height and width, a convolution of stride one.
struct Phase {
  std::vector<int64_t> kernel[2];  // indices of taps in height and width
};

std::vector<Phase> phases_of(const ConvTransposeAttributes& a) {
  std::vector<Phase> phases;
  for (int64_t ry = 0; ry < a.stride[0]; ++ry) {
    for (int64_t rx = 0; rx < a.stride[1]; ++rx) {
      Phase phase;
      const int64_t remainder[2] = {ry, rx};
      for (int i = 0; i < 2; ++i) {
        for (int64_t k = 0; k < a.kernel[i]; ++k) {
          if (k * a.dilation[i] % a.stride[i] == remainder[i]) phase.kernel[i].push_back(k);
        }
      }
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

// Products in the order phase, group. One without taps still gives bias and activation: it has one
// tap of zero weights, outside of the image.
int64_t taps_of(const Phase& phase) {
  return std::max<int64_t>(1, phase.kernel[0].size() * phase.kernel[1].size());
}

PackedLayout conv_transpose_layout(const Problem& p) {
  const auto& a = p.op->as<ConvTransposeAttributes>();
  const Dims& w = p.inputs[1].dims;
  PackedLayout layout;
  for (const Phase& phase : phases_of(a)) {
    for (int64_t g = 0; g < a.groups; ++g) layout.add(taps_of(phase) * w[0] / a.groups, w[1]);
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
        const int64_t width = phase.kernel[1].size();
        if (phase.kernel[0].empty() || width == 0) return 0.0f;
        const int64_t y = phase.kernel[0][tap / width], x = phase.kernel[1][tap % width];
        return weights[(((group * channels + channel) * w[1] + column) * w[2] + y) * w[3] + x];
      },
      a.groups, packed);
}

GemmPlan plan_conv_transpose(const Problem& p) {
  const auto& a = p.op->as<ConvTransposeAttributes>();
  const TensorView& x = p.inputs[0];
  const Region& r = p.region;
  const int64_t channels = x.dims[1] / a.groups;
  const int64_t columns = p.output.dims[1] / a.groups;
  GemmPlan plan;
  const std::vector<Phase> phases = phases_of(a);
  for (size_t index = 0; index < phases.size(); ++index) {
    const Phase& phase = phases[index];
    const int64_t remainder[2] = {static_cast<int64_t>(index) / a.stride[1],
                                  static_cast<int64_t>(index) % a.stride[1]};
    ImplicitGemm common;
    common.channels = channels;
    common.activation = a.activation;
    common.input = x.as<float>() + r[0].begin * x.strides[0];
    std::copy_n(std::array{x.strides[0], x.strides[2], x.strides[3]}.begin(), 3,
                common.input_strides);
    set_output(p, nullptr, common);
    std::vector<int64_t> shift[2];
    for (int i = 0; i < 2; ++i) {
      common.input_size[i] = x.dims[2 + i];
      const Range range = r[2 + i];
      // The first position of the range that has this remainder.
      const int64_t offset = (range.begin + a.pads[i]) % a.stride[i];
      const int64_t skip = (remainder[i] - offset + a.stride[i]) % a.stride[i];
      const int64_t first = range.begin + skip;
      common.grid[1 + i] =
          first < range.end ? (range.end - first + a.stride[i] - 1) / a.stride[i] : 0;
      common.output += skip * common.output_strides[1 + i];
      common.output_strides[1 + i] *= a.stride[i];
      for (const int64_t k : phase.kernel[i]) {
        shift[i].push_back((first + a.pads[i] - k * a.dilation[i]) / a.stride[i]);
      }
    }
    for (const int64_t y : shift[0]) {
      for (const int64_t x_shift : shift[1]) common.taps.push_back({y, x_shift});
    }
    if (common.taps.empty()) common.taps.push_back({INT32_MIN, INT32_MIN});
    for (int64_t group = 0; group < a.groups; ++group) {
      const Range range = columns_of(r[1], group, columns);
      ImplicitGemm g = common;
      g.channel_offset = group * channels;
      g.output += group * columns;
      g.column_begin = range.begin;
      g.column_end = std::max(range.begin, range.end);
      plan.gemms.push_back(std::move(g));
    }
  }
  return plan;
}

// --- Linear ---

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

// The leading dimensions as few nested rows, those that are contiguous in all tensors merged.
struct RowDims {
  std::vector<int64_t> extents;
  std::vector<std::array<int64_t, 3>> strides;  // x, y, residual
};

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

GemmPlan plan_linear(const Problem& p) {
  const auto& a = p.op->as<LinearAttributes>();
  const TensorView* residual = residual_of(p, a.has_residual);
  const RowDims rows = merge_rows(p, residual);
  const size_t last = p.region.size() - 1;

  ImplicitGemm g;
  g.taps = {{0, 0}};
  g.channels = p.inputs[1].dims[0];
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
  g.input_size[0] = g.grid[1];
  g.input_size[1] = g.grid[2];
  g.column_begin = p.region[last].begin;
  g.column_end = p.region[last].end;
  GemmPlan plan;
  plan.gemms.push_back(std::move(g));
  return plan;
}

// --- All three ---

GemmPlan plan_of(const Problem& p) {
  switch (p.op->kind()) {
    case OperatorKind::kConv:
      return plan_conv(p);
    case OperatorKind::kConvTranspose:
      return plan_conv_transpose(p);
    default:
      return plan_linear(p);
  }
}

PackedLayout layout_of(const Problem& p) {
  switch (p.op->kind()) {
    case OperatorKind::kConv:
      return conv_layout(p);
    case OperatorKind::kConvTranspose:
      return conv_transpose_layout(p);
    default:
      return linear_layout(p);
  }
}

void pack(const Problem& p, float* packed) {
  switch (p.op->kind()) {
    case OperatorKind::kConv:
      return pack_conv(p, packed);
    case OperatorKind::kConvTranspose:
      return pack_conv_transpose(p, packed);
    default:
      return pack_linear(p, packed);
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
    for (const ImplicitGemm& g : plan_of(p).gemms) {
      if (g.column_begin == g.column_end) continue;
      const TileCount count = count_tiles(g);
      info.work_groups += count.tiles;
      info.computed_flops += 2 * count.multiply_adds;
    }
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    const PackedLayout layout = layout_of(p);
    const auto packed =
        resources.packed(p.op->name + ":panels", layout.floats, [&](float* to) { pack(p, to); });
    GemmPlan plan = plan_of(p);
    int64_t gemm_floats = 0;
    std::vector<ImplicitGemm> gemms;
    for (size_t i = 0; i < plan.gemms.size(); ++i) {
      ImplicitGemm& g = plan.gemms[i];
      const bool empty = g.column_begin == g.column_end || g.grid[0] * g.grid[1] * g.grid[2] == 0;
      if (empty) continue;
      g.panels = packed.get() + layout.groups[i].panels_at;
      g.bias = packed.get() + layout.groups[i].bias_at;
      gemm_floats = std::max(gemm_floats, scratch_floats(g, p.threads));
      gemms.push_back(std::move(g));
    }
    plan.gemms = std::move(gemms);
    resources.reserve_scratch((gemm_floats + plan.staging.floats()) * sizeof(float));

    return make_kernel(
        [plan = std::move(plan), packed, gemm_floats, &resources, threads = p.threads]() {
          float* scratch = resources.scratch();
          float* staged = scratch + gemm_floats;
          if (plan.staging.used) stage(plan.staging, threads, staged);
          for (const ImplicitGemm& g : plan.gemms) {
            cpu::run(g, plan.staging.used ? staged : g.input, threads, scratch);
          }
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
