// Poolings, local and global.
#include <algorithm>
#include <utility>

#include "import/onnx/image.h"
#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

// Positions of the window in one direction. With ceil_mode the last one may reach past the pads,
// but does not start behind the image.
int64_t positions(const Window& window, int direction, int64_t extent, bool ceil_mode) {
  const int64_t stride = window.stride[direction];
  const int64_t before = window.pads[direction];
  const int64_t room =
      extent + before + window.pads[2 + direction] - window_extent(window, direction);
  if (room < 0) return ceil_mode && room > -stride ? 1 : 0;
  int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && count > 1 && (count - 1) * stride >= extent + before) --count;
  return count;
}

Status lower_pool(Node& node, PoolAttributes::Kind kind) {
  const int rank = node.value(0).rank();
  TANDEM_ASSIGN_OR_RETURN(const Value x, to_image(node, node.value(0), "input"));
  TANDEM_ASSIGN_OR_RETURN(Window window, read_window(node, rank, {}));
  resolve_auto_pad(window, x.dims);
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  PoolAttributes pool;
  pool.kind = kind;
  pool.kernel = window.kernel;
  pool.stride = window.stride;
  pool.dilation = window.dilation;
  pool.pads = window.pads;
  pool.count_include_pad =
      kind == PoolAttributes::Kind::kAverage && node.integer("count_include_pad", 0) != 0;
  Dims dims = {x.dims[0], x.dims[1]};
  for (int i = 0; i < 2; ++i) {
    if (std::max(window.pads[i], window.pads[2 + i]) >= window_extent(window, i)) {
      return invalid_argument("a window lies in the padding alone");
    }
    dims.push_back(positions(window, i, x.dims[2 + i], ceil_mode));
  }
  TANDEM_ASSIGN_OR_RETURN(const Value y, node.emit(pool, {x}, dims));
  TANDEM_ASSIGN_OR_RETURN(Value output, from_image(node, y, rank));
  node.set_output(0, std::move(output));
  return {};
}

Status lower_max_pool(Node& node) {
  if (node.wants(1)) return unsupported("the indices of the maxima");
  return lower_pool(node, PoolAttributes::Kind::kMax);
}

Status lower_average_pool(Node& node) { return lower_pool(node, PoolAttributes::Kind::kAverage); }

Status lower_global_pool(Node& node, PoolAttributes::Kind kind) {
  const int rank = node.value(0).rank();
  TANDEM_ASSIGN_OR_RETURN(const Value x, to_image(node, node.value(0), "input"));
  PoolAttributes pool;
  pool.kind = kind;
  pool.kernel = {x.dims[2], x.dims[3]};
  TANDEM_ASSIGN_OR_RETURN(const Value y, node.emit(pool, {x}));
  TANDEM_ASSIGN_OR_RETURN(Value output, from_image(node, y, rank));
  node.set_output(0, std::move(output));
  return {};
}

Status lower_global_max_pool(Node& node) {
  return lower_global_pool(node, PoolAttributes::Kind::kMax);
}

Status lower_global_average_pool(Node& node) {
  return lower_global_pool(node, PoolAttributes::Kind::kAverage);
}

constexpr Lowering kLowerings[] = {
    {"AveragePool", 22, lower_average_pool},
    {"GlobalAveragePool", 22, lower_global_average_pool},
    {"GlobalMaxPool", 22, lower_global_max_pool},
    {"MaxPool", 22, lower_max_pool},
};

}  // namespace

std::span<const Lowering> pool_lowerings() { return kLowerings; }

}  // namespace tandem
