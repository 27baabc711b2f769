// Memory for every tensor of a graph, without reuse: for measurements.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "lane/lane.h"

namespace tandem {

class GraphMemory {
 public:
  // Gives inputs the values that `value_of` makes of them, and constants theirs; tensors that lanes
  // pack get no memory. Where one of the lanes has memory that it shares with the host, it lies
  // there; outlived by that lane. kResourceExhausted if there is not enough.
  static StatusOr<GraphMemory> create(const Graph& graph, const std::vector<Lane*>& lanes,
                                      const std::function<HostTensor(const Tensor&)>& value_of);

  const TensorBindings& bindings() const { return bindings_; }

 private:
  std::shared_ptr<std::byte> block_;
  TensorBindings bindings_;
};

}  // namespace tandem
