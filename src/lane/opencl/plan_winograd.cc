// The rule that picks Winograd kernels, and how their work is cut.
#include <algorithm>
#include <array>
#include <tuple>

#include "fmt/format.h"
#include "lane/opencl/tile_problem.h"
#include "lane/opencl/tile_shape.h"
#include "lane/opencl/winograd.h"

namespace tandem::opencl {
namespace {

constexpr std::array<WinogradVariant, 2> kVariants = {{{2}, {4}}};

// Fewer do not pay for the transforms.
constexpr int kLeastChannels = 16;

// Costs in multiplications, measured on a Zen 5 core with PoCL over 7x7 to 224x224 pixels and 16 to
// 512 channels: of transforming a point of 16 channels, to or from; and of a byte of weights, which
// in a network come from memory, as those of other layers have taken their place in the caches.
// F(4x4) thus wins except where its large weights meet few pixels: F(2x2) has the layers of 256
// channels and 14x14 pixels, and of 512 and 7x7.
constexpr double kTransformCost = 100;
constexpr double kWeightByteCost = 5;

// Transformed input that a group keeps: a part of the second-level cache, the rest of which is for
// weights passing through.
constexpr int64_t kStagedBytes = 256 << 10;
constexpr int64_t kGroupsPerUnit = 4;
constexpr int64_t kMostPanels = 4;  // of any tile

struct WinogradPlan {
  WinogradVariant variant{};
  TileShape shape{};
  int64_t patches = 0;
  int64_t panels = 0;
  int64_t tiles_per_group = 0;
  int64_t panels_per_group = 0;
  double cost = 0;

  int64_t group_patches() const { return tiles_per_group * shape.rows; }
  size_t staged_bytes() const {
    return sizeof(float) * static_cast<size_t>(variant.points() * group_patches() * shape.pitch());
  }
  size_t sums_bytes() const { return shape.sums_bytes(variant.points()); }
  int64_t row_groups() const { return divide_up(patches, group_patches()); }
  int64_t panel_groups() const { return divide_up(panels, panels_per_group); }
};

double weight_bytes(int64_t panels, int points, int channels) {
  return static_cast<double>(panels * kPanel) * points * channels * sizeof(float);
}

double direct_cost(const TileArguments& p) {
  constexpr int kTaps = 9;
  const int64_t panels = divide_up(p.channels, kPanel);
  return tile_cost(choose_tile(p.rows, panels, panels), p.rows, panels) * kPanel * kTaps *
             p.group_channels +
         kWeightByteCost * weight_bytes(panels, kTaps, p.group_channels);
}

std::optional<WinogradPlan> make_plan(const TileArguments& p, WinogradVariant variant,
                                      const DeviceTraits& device) {
  WinogradPlan plan{.variant = variant};
  const int64_t images = p.rows / (int64_t{p.box_height} * p.box_width);
  plan.patches =
      images * divide_up(p.box_height, variant.outputs) * divide_up(p.box_width, variant.outputs);
  plan.panels = divide_up(p.channels, kPanel);
  // A few block sizes rather than one for every number of channels: each is a kernel to compile.
  int k_block = 64;
  while (k_block < p.group_channels) k_block *= 2;
  const size_t row_bytes =
      sizeof(float) *
      static_cast<size_t>(variant.points() * (k_block + kPanel + kMostPanels * kPanel));
  const std::optional<TileShape> shape = choose_winograd_tile(
      plan.patches, plan.panels, static_cast<int64_t>(device.local_bytes / row_bytes));
  if (!shape) return std::nullopt;
  plan.shape = *shape;
  plan.shape.k_block = k_block;
  plan.cost = variant.points() *
                  (tile_cost(plan.shape, plan.patches, plan.panels) * kPanel * p.group_channels +
                   kTransformCost * static_cast<double>(plan.patches) *
                       static_cast<double>(plan.panels + divide_up(p.group_channels, kPanel))) +
              kWeightByteCost * weight_bytes(plan.panels, variant.points(), p.group_channels);

  const int64_t tiles = divide_up(plan.patches, plan.shape.rows);
  const int64_t tile_bytes =
      variant.points() * plan.shape.rows * p.group_channels * int64_t{sizeof(float)};
  plan.tiles_per_group = std::clamp<int64_t>(kStagedBytes / tile_bytes, 1, tiles);
  while (plan.tiles_per_group > 1 && plan.staged_bytes() + plan.sums_bytes() > device.local_bytes) {
    --plan.tiles_per_group;
  }
  plan.panels_per_group = round_up(plan.panels, plan.shape.panels);
  if (device.compute_units > 1) {
    // Few patches are transformed several times, for some of the outputs each, rather than leaving
    // compute units without work.
    const auto too_few = [&plan, &device] {
      return plan.row_groups() * plan.panel_groups() < kGroupsPerUnit * device.compute_units;
    };
    while (plan.tiles_per_group > 1 && too_few()) plan.tiles_per_group /= 2;
    while (plan.panels_per_group > plan.shape.panels && too_few()) {
      plan.panels_per_group = round_up(plan.panels_per_group / 2, plan.shape.panels);
    }
  }
  // Equal shares, so that no group is left with a remainder.
  plan.tiles_per_group = divide_up(tiles, divide_up(tiles, plan.tiles_per_group));
  return plan;
}

std::optional<WinogradPlan> choose(const TileArguments& p, const DeviceTraits& device) {
  std::optional<WinogradPlan> best;
  double least = direct_cost(p);
  for (const WinogradVariant variant : kVariants) {
    const std::optional<WinogradPlan> plan = make_plan(p, variant, device);
    if (!plan) continue;
    if (device.winograd_outputs) {
      if (*device.winograd_outputs == variant.outputs) best = plan;
    } else if (plan->cost < least) {
      best = plan;
      least = plan->cost;
    }
  }
  return best;
}

}  // namespace

std::optional<SlicePlan> plan_winograd(const TileProblem& problem, const DeviceTraits& device) {
  TileArguments p = problem.arguments;
  const bool possible = device.single_item_groups && problem.contiguous && !problem.transposed &&
                        problem.layout.groups == 1 && p.kernel_height == 3 && p.kernel_width == 3 &&
                        p.stride_y == 1 && p.stride_x == 1 && p.dilation_y == 1 &&
                        p.dilation_x == 1 && p.group_channels >= kLeastChannels &&
                        (!p.exact_input || p.group_channels % kPanel == 0);
  if (!possible) return std::nullopt;
  const std::optional<WinogradPlan> chosen = choose(p, device);
  if (!chosen) return std::nullopt;
  const auto& [variant, shape] = std::tie(chosen->variant, chosen->shape);
  p.rows = static_cast<int>(chosen->patches);
  p.tiles_per_group = static_cast<int>(chosen->tiles_per_group);
  p.panels_per_group = static_cast<int>(chosen->panels_per_group);
  KernelPlan kernel =
      start_kernel("winograd.cl", "winograd", {1, 16},
                   fmt::format(" -DOUTPUTS={} -DTILE_ROWS={} -DTILE_PANELS={} -DTILE_PITCH={}",
                               variant.outputs, shape.rows, shape.panels, shape.pitch()));
  kernel.arguments = {
      problem.input,
      PackedArgument{variant.outputs == 2 ? PackedKind::kWinograd2 : PackedKind::kWinograd4},
      PackedArgument{PackedKind::kBias},
      problem.residual,
      problem.output,
      LocalArgument{chosen->staged_bytes()},
      LocalArgument{chosen->sums_bytes()},
      value_argument(p)};
  kernel.groups = {static_cast<size_t>(chosen->row_groups()),
                   static_cast<size_t>(chosen->panel_groups()), 1};
  SlicePlan plan;
  plan.name = fmt::format("cl_winograd_{0}x{0}_{1}x{2}", variant.outputs, shape.rows,
                          shape.panels * kPanel);
  plan.computed_flops =
      2.0 * variant.points() * static_cast<double>(round_up(chosen->patches, shape.rows)) *
      static_cast<double>(round_up(chosen->panels, shape.panels) * kPanel) * p.group_channels;
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace tandem::opencl
