// Matrix products on devices with many work-items to a group.
#include <algorithm>
#include <array>
#include <numeric>

#include "fmt/format.h"
#include "lane/opencl/tile_problem.h"
#include "lane/opencl/tile_shape.h"

namespace tandem::opencl {
namespace {

constexpr int64_t kQuad = 4;  // floats that are loaded or stored at once where they are aligned

bool is_aligned(const SharedArgument& pointer, std::array<int64_t, 3> strides) {
  return reinterpret_cast<uintptr_t>(pointer.data) % (kQuad * sizeof(float)) == 0 &&
         std::all_of(strides.begin(), strides.end(),
                     [](int64_t stride) { return stride % kQuad == 0; });
}

}  // namespace

KernelPlan start_group_tile(const char* file, const char* kernel, const GroupTile& tile,
                            const std::string& options) {
  KernelPlan plan = start_kernel(
      file, kernel, {tile.items(), static_cast<int>(kQuad)},
      fmt::format(" -DITEMS_X={} -DITEMS_Y={} -DROW_QUADS={} -DCOLUMN_QUADS={} -DK_SLICES={}{}",
                  tile.items_x, tile.items_y, tile.row_quads, tile.column_quads, tile.slices,
                  options));
  plan.files.insert(plan.files.end() - 1, "item_product.cl");
  return plan;
}

// Winograd is left to devices with one work-item to a group: fused as kernels/winograd.cl is, a
// group of a GPU would hold the transformed inputs and sums of too few patches in local memory to
// pay, and in separate kernels they make a round trip through global memory.
std::optional<SlicePlan> plan_conv_items(const TileProblem& problem, const DeviceTraits& device) {
  const TileArguments& p = problem.arguments;
  if (device.single_item_groups || !problem.contiguous || !problem.layout.shares_input()) {
    return std::nullopt;
  }
  const int64_t same_input = problem.layout.groups == 1
                                 ? p.channels
                                 : std::gcd(problem.layout.group_outputs, p.first_panel * kPanel);
  const std::optional<GroupTile> tile =
      choose_group_tile(p.rows, p.channels, same_input, 1, device.compute_units);
  if (!tile) return std::nullopt;
  const bool quads = p.group_channels % kQuad == 0 &&
                     is_aligned(problem.input, {p.in_image, p.in_line, p.in_pixel});
  const bool aligned_output =
      is_aligned(problem.output, {p.out_image, p.out_line, p.out_pixel}) &&
      is_aligned(problem.residual, {p.residual_image, p.residual_line, p.residual_pixel});
  KernelPlan kernel =
      start_group_tile("conv_items.cl", "conv_items", *tile,
                       fmt::format(" -DPOINTWISE={} -DTRANSPOSED={} -DQUADS={} -DALIGNED_OUTPUT={}",
                                   int{problem.pointwise}, int{problem.transposed}, int{quads},
                                   int{aligned_output}));
  kernel.arguments = {problem.input,
                      PackedArgument{PackedKind::kWeights},
                      PackedArgument{PackedKind::kBias},
                      problem.residual,
                      problem.output,
                      value_argument(p)};
  const int64_t row_groups = divide_up(p.rows, tile->rows());
  const int64_t column_groups = divide_up(p.channels, tile->columns());
  kernel.groups = {static_cast<size_t>(row_groups), static_cast<size_t>(column_groups), 1};
  SlicePlan plan;
  plan.name = fmt::format("cl_{}_items_{}x{}", problem.name, tile->rows(), tile->columns());
  plan.computed_flops = 2.0 * static_cast<double>(row_groups * tile->rows()) *
                        static_cast<double>(column_groups * tile->columns()) *
                        static_cast<double>(problem.layout.taps * p.group_channels);
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace tandem::opencl
