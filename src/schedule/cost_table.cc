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

}  // namespace tandem
