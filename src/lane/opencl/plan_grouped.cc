// Convolutions whose groups are narrower than panels, or lie across them.
#include <algorithm>

#include "fmt/format.h"
#include "lane/opencl/tile_problem.h"
#include "lane/opencl/tile_shape.h"

namespace tandem::opencl {
namespace {

// Lines of the output that a group computes: as many as share input lines and leave room in the
// second-level cache.
constexpr int64_t kLinesPerGroup = 8;
constexpr size_t kStagedBytes = 256 << 10;
constexpr int64_t kGroupsPerUnit = 4;
constexpr int64_t kMostRows = 14;  // sums in registers

}  // namespace

std::optional<SlicePlan> plan_grouped(const TileProblem& problem, const DeviceTraits& device) {
  TileArguments p = problem.arguments;
  if (!device.single_item_groups || !problem.contiguous || problem.transposed ||
      problem.layout.shares_input()) {
    return std::nullopt;
  }
  const int64_t panels = divide_up(p.channels, kPanel);
  const int64_t images = p.rows / (int64_t{p.box_height} * p.box_width);
  const int64_t rows = divide_up(p.box_width, divide_up(p.box_width, kMostRows));
  const int64_t pixel_floats = int64_t{p.group_channels} * kPanel;
  // The tile at the end of a line reads beyond it: sums of no pixel.
  const int64_t line_floats =
      ((round_up(p.box_width, rows) - 1) * p.stride_x + (p.kernel_width - 1) * p.dilation_x + 1) *
      pixel_floats;
  int64_t lines = std::min<int64_t>(kLinesPerGroup, p.box_height);
  const auto staged_bytes = [&] {
    return sizeof(float) *
           static_cast<size_t>(
               ((lines - 1) * p.stride_y + (p.kernel_height - 1) * p.dilation_y + 1) * line_floats);
  };
  const auto too_few = [&] {
    return device.compute_units > 1 &&
           images * divide_up(p.box_height, lines) * panels < kGroupsPerUnit * device.compute_units;
  };
  while (lines > 1 && (staged_bytes() > kStagedBytes || too_few())) lines /= 2;
  const size_t sums_bytes = sizeof(float) * static_cast<size_t>(rows * kPanel);
  const size_t offset_bytes = 2 * sizeof(int64_t) * static_cast<size_t>(rows);
  if (staged_bytes() + sums_bytes + offset_bytes > device.local_bytes) return std::nullopt;
  p.tiles_per_group = static_cast<int>(lines);

  const bool alike = kPanel % p.group_outputs == 0 && problem.layout.outputs % kPanel == 0;
  KernelPlan kernel =
      start_kernel("grouped.cl", "grouped", {1, 16},
                   fmt::format(" -DTILE_ROWS={} -DTILE_PANELS=1 -DTILE_PITCH={} -DGROUP_OUTPUTS={} "
                               "-DGROUP_CHANNELS={}",
                               rows, p.stride_x * pixel_floats, alike ? p.group_outputs : 0,
                               alike ? p.group_channels : 0));
  kernel.arguments = {problem.input,
                      PackedArgument{PackedKind::kWeights},
                      PackedArgument{PackedKind::kBias},
                      problem.residual,
                      problem.output,
                      LocalArgument{staged_bytes()},
                      LocalArgument{sums_bytes},
                      LocalArgument{offset_bytes},
                      value_argument(static_cast<int>(line_floats)),
                      value_argument(p)};
  kernel.groups = {static_cast<size_t>(images * divide_up(p.box_height, lines)),
                   static_cast<size_t>(panels), 1};
  SlicePlan plan;
  plan.name = fmt::format("cl_{}_grouped_{}x{}", problem.name, rows, kPanel);
  plan.computed_flops = 2.0 * static_cast<double>(images * p.box_height) *
                        static_cast<double>(round_up(p.box_width, rows) * panels * kPanel) *
                        static_cast<double>(problem.layout.taps * p.group_channels);
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace tandem::opencl
