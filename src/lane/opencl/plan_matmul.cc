#include "fmt/format.h"
#include "lane/opencl/box.h"
#include "lane/opencl/plan_internal.h"
#include "lane/opencl/tile_shape.h"

namespace tandem::opencl {
namespace {

// Strides of an operand over the output's leading dimensions: zero where it broadcasts.
int64_t batch_stride(const TensorView& view, size_t dimension) {
  return view.dims[dimension] == 1 ? 0 : view.strides[dimension];
}

}  // namespace

StatusOr<SlicePlan> plan_matmul(const PlanContext& context) {
  const auto& matmul = context.op.as<MatMulAttributes>();
  const TensorView& a = context.input(0);
  const TensorView& b = context.input(1);
  const TensorView& c = context.output();
  const size_t rank = c.dims.size();
  const size_t row = rank - 2;
  const size_t column = rank - 1;
  if (c.dims[column] != 1 && c.strides[column] != 1) {
    return context.unsupported_layout("a row-major output");
  }
  const Region& box = context.box;
  std::vector<BoxAxis> batch;
  for (size_t d = 0; d < row; ++d) {
    batch.push_back({box[d].size(), {c.strides[d], batch_stride(a, d), batch_stride(b, d)}});
  }
  batch = merge_axes(std::move(batch));
  if (batch.size() > 3) return context.unsupported_layout("at most three strides between matrices");
  batch.insert(batch.begin(), 3 - batch.size(), BoxAxis{1, {0, 0, 0}});

  MatMulArguments p{};
  int64_t matrices = 1;
  for (size_t d = 0; d < 3; ++d) {
    p.batch[d] = static_cast<int>(batch[d].extent);
    p.c_batch[d] = batch[d].strides[0];
    p.a_batch[d] = batch[d].strides[1];
    p.b_batch[d] = batch[d].strides[2];
    matrices *= batch[d].extent;
  }
  const size_t a_row = matmul.transpose_a ? column : row;
  const size_t a_depth = matmul.transpose_a ? row : column;
  const size_t b_depth = matmul.transpose_b ? column : row;
  const size_t b_column = matmul.transpose_b ? row : column;
  p.a_row = a.strides[a_row];
  p.a_depth = a.strides[a_depth];
  p.b_depth = b.strides[b_depth];
  p.b_column = b.strides[b_column];
  p.c_row = c.strides[row];
  p.rows = static_cast<int>(box[row].size());
  p.columns = static_cast<int>(box[column].size());
  p.depth = static_cast<int>(a.dims[a_depth]);
  p.scale = matmul.alpha;

  Dims a_begin(rank, 0);
  Dims b_begin(rank, 0);
  Dims c_begin(rank, 0);
  for (size_t d = 0; d < rank; ++d) c_begin[d] = box[d].begin;
  for (size_t d = 0; d < row; ++d) {
    a_begin[d] = a.dims[d] == 1 ? 0 : box[d].begin;
    b_begin[d] = b.dims[d] == 1 ? 0 : box[d].begin;
  }
  a_begin[a_row] = box[row].begin;
  b_begin[b_column] = box[column].begin;

  std::string options = fmt::format(" -DB_DEPTH_FIRST={}", int{p.b_column != 1});
  std::vector<Argument> arguments = {at(a, a_begin), at(b, b_begin), at(c, c_begin)};
  const int64_t panels = divide_up(p.columns, kPanel);
  SlicePlan plan;
  KernelPlan kernel;
  if (context.device.single_item_groups) {
    const TileShape shape = choose_tile(p.rows, panels, panels);
    TileCut cut = cut_tiles(shape, p.rows, panels, panels, context.device.compute_units);
    // b is brought into panels anew by every group: more rows to a group make up for that.
    if (matrices >= context.device.compute_units) {
      cut.tiles_per_group = std::min<int64_t>(divide_up(p.rows, shape.rows), 16);
    }
    p.tiles_per_group = static_cast<int>(cut.tiles_per_group);
    p.panels_per_group = static_cast<int>(cut.panels_per_group);
    const int64_t group_rows = cut.tiles_per_group * shape.rows;
    const int64_t sets =
        p.depth <= shape.k_block ? 1 : cut.tiles_per_group * cut.panels_per_group / shape.panels;
    options += fmt::format(" -DTILE_ROWS={} -DTILE_PANELS={} -DTILE_PITCH={} -DK_BLOCK={}",
                           shape.rows, shape.panels, shape.pitch(), shape.k_block);
    kernel = start_kernel("matmul.cl", "matmul", {1, 16}, options);
    arguments.push_back(
        LocalArgument{sizeof(float) * static_cast<size_t>(group_rows * shape.pitch())});
    arguments.push_back(
        LocalArgument{sizeof(float) * static_cast<size_t>(shape.panels * shape.k_block * kPanel)});
    arguments.push_back(LocalArgument{shape.sums_bytes(sets)});
    kernel.groups = {static_cast<size_t>(divide_up(p.rows, group_rows)),
                     static_cast<size_t>(divide_up(panels, cut.panels_per_group)),
                     static_cast<size_t>(matrices)};
    plan.name = fmt::format("cl_matmul_{}x{}", shape.rows, shape.panels * kPanel);
    plan.computed_flops = 2.0 * static_cast<double>(matrices * round_up(p.rows, shape.rows)) *
                          static_cast<double>(round_up(panels, shape.panels) * kPanel) * p.depth;
  } else {
    const GroupTile tile =
        *choose_group_tile(p.rows, p.columns, p.columns, matrices, context.device.compute_units);
    kernel = start_group_tile("matmul_items.cl", "matmul_items", tile,
                              fmt::format(" -DA_ROWS_FIRST={} -DB_COLUMNS_FIRST={}",
                                          int{p.a_depth != 1}, int{p.b_column == 1}));
    kernel.groups = {static_cast<size_t>(divide_up(p.rows, tile.rows())),
                     static_cast<size_t>(divide_up(p.columns, tile.columns())),
                     static_cast<size_t>(matrices)};
    plan.name = fmt::format("cl_matmul_items_{}x{}", tile.rows(), tile.columns());
    plan.computed_flops = 2.0 * static_cast<double>(matrices * round_up(p.rows, tile.rows())) *
                          static_cast<double>(round_up(p.columns, tile.columns())) * p.depth;
  }
  arguments.push_back(value_argument(p));
  kernel.arguments = std::move(arguments);
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace tandem::opencl
