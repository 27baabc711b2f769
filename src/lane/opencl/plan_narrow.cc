// Convolutions of few input channels.
#include <algorithm>

#include "fmt/format.h"
#include "lane/opencl/tile_problem.h"
#include "lane/opencl/tile_shape.h"

namespace tandem::opencl {
namespace {

constexpr int kMostChannels = 8;
// Lines of the output that a group computes: enough to share the input lines that they have in
// common.
constexpr int64_t kLinesPerGroup = 8;
constexpr int64_t kGroupsPerUnit = 4;

}  // namespace

std::optional<SlicePlan> plan_narrow(const TileProblem& problem, const DeviceTraits& device) {
  TileArguments p = problem.arguments;
  const bool possible = device.single_item_groups && problem.contiguous && !problem.transposed &&
                        !problem.pointwise && problem.layout.groups == 1 && p.dilation_x == 1 &&
                        p.group_channels <= kMostChannels && p.box_width > 1;
  if (!possible) return std::nullopt;
  const int64_t panels = divide_up(p.channels, kPanel);
  const TileShape shape = choose_tile(p.box_width, panels, panels);
  const int64_t images = p.rows / (int64_t{p.box_height} * p.box_width);

  int64_t lines = std::min<int64_t>(kLinesPerGroup, p.box_height);
  while (lines > 1 && device.compute_units > 1 &&
         images * divide_up(p.box_height, lines) < kGroupsPerUnit * device.compute_units) {
    lines /= 2;
  }
  p.tiles_per_group = static_cast<int>(lines);
  // Tiles at the end of a line read beyond it: sums of no pixel. Staged vectors reach beyond it.
  const int64_t line_floats = round_up(
      ((round_up(p.box_width, shape.rows) - 1) * p.stride_x + p.kernel_width) * p.group_channels +
          4,
      kLineFloats);
  const int64_t staged_lines = (lines - 1) * p.stride_y + (p.kernel_height - 1) * p.dilation_y + 1;
  const size_t staged_bytes = sizeof(float) * static_cast<size_t>(staged_lines * line_floats);
  const size_t offset_bytes = 2 * sizeof(int64_t) * static_cast<size_t>(shape.rows);
  if (staged_bytes + shape.sums_bytes(1) + offset_bytes > device.local_bytes) return std::nullopt;

  KernelPlan kernel = start_kernel(
      "narrow.cl", "narrow", {1, 16},
      fmt::format(
          " -DCHANNELS={} -DWHOLE_VECTORS={} -DTILE_ROWS={} -DTILE_PANELS={} -DTILE_PITCH={}",
          p.group_channels, int{p.group_channels <= 4 && !p.exact_input}, shape.rows, shape.panels,
          p.stride_x * p.group_channels));
  kernel.arguments = {problem.input,
                      PackedArgument{PackedKind::kWeights},
                      PackedArgument{PackedKind::kBias},
                      problem.residual,
                      problem.output,
                      LocalArgument{staged_bytes},
                      LocalArgument{shape.sums_bytes(1)},
                      LocalArgument{offset_bytes},
                      value_argument(static_cast<int>(line_floats)),
                      value_argument(p)};
  kernel.groups[0] = static_cast<size_t>(images * divide_up(p.box_height, lines));
  SlicePlan plan;
  plan.name = fmt::format("cl_{}_narrow_{}x{}", problem.name, shape.rows, shape.panels * kPanel);
  plan.computed_flops = 2.0 * static_cast<double>(images * p.box_height) *
                        static_cast<double>(round_up(p.box_width, shape.rows)) *
                        static_cast<double>(round_up(panels, shape.panels) * kPanel) *
                        static_cast<double>(problem.layout.taps * p.group_channels);
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace tandem::opencl
