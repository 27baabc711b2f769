#include "schedule/cost_table.h"

namespace tandem {

CopySize copy_size(const Graph& graph, const TensorRegion& what) {
  const Tensor& tensor = graph.tensor(what.tensor);
  CopySize size{1, static_cast<int64_t>(element_size(tensor.type))};
  bool together = true;  // so far, from the innermost dimension outwards
  for (size_t d = what.region.size(); d-- > 0;) {
    const int64_t extent = what.region[d].end - what.region[d].begin;
    size.bytes *= extent;
    if (!together) size.pieces *= extent;
    together &= extent == tensor.dims[d];
  }
  return size;
}

StartCosts CostModel::start(int lane, int host) const {
  const double seen_us = host == kNone ? 0 : crossing_us(lane, host);
  return {enqueue_us(lane), enqueue_us(lane) + seen_us};
}

}  // namespace tandem
