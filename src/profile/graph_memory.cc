#include "profile/graph_memory.h"

#include <cstdlib>
#include <cstring>

#include "support/memory_left.h"

namespace tandem {
namespace {

constexpr size_t kAlignment = 64;

size_t rounded_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Zeroed, so that all of it is mapped before anything is timed.
StatusOr<std::shared_ptr<std::byte>> allocate(const std::vector<Lane*>& lanes, size_t bytes) {
  TANDEM_RETURN_IF_ERROR(check_memory(bytes, "the tensors of what is measured take"));
  for (Lane* lane : lanes) {
    auto* queue = dynamic_cast<QueueLane*>(lane);
    if (queue != nullptr && !computes_on_own_memory(*queue)) return queue->allocate(bytes);
  }
  void* block = std::aligned_alloc(kAlignment, rounded_up(bytes));
  if (block == nullptr) {
    return resource_exhausted("no " + std::to_string(bytes) + " bytes of memory");
  }
  std::memset(block, 0, bytes);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(block), std::free);
}

bool needs_memory(const Graph& graph, TensorId id) {
  for (const OperatorId consumer : graph.tensor(id).consumers) {
    const Operator& op = graph.op(consumer);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == id && !is_packed_input(op, static_cast<int>(i))) return true;
    }
  }
  return graph.tensor(id).consumers.empty();
}

}  // namespace

StatusOr<GraphMemory> GraphMemory::create(
    const Graph& graph, const std::vector<Lane*>& lanes,
    const std::function<HostTensor(const Tensor&)>& value_of) {
  std::vector<size_t> offsets;
  size_t bytes = kAlignment;
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    offsets.push_back(bytes);
    if (!needs_memory(graph, static_cast<TensorId>(i))) continue;
    bytes += rounded_up(static_cast<size_t>(span_of(tensor.dims, tensor.layout)) *
                        element_size(tensor.type));
  }
  GraphMemory memory;
  TANDEM_ASSIGN_OR_RETURN(memory.block_, allocate(lanes, bytes));
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto id = static_cast<TensorId>(i);
    const Tensor& tensor = graph.tensor(id);
    void* data = needs_memory(graph, id) ? memory.block_.get() + offsets[i] : nullptr;
    memory.bindings_.views.push_back(view_of(tensor, data));
    if (data == nullptr) continue;
    if (tensor.kind == TensorKind::kConstant) {
      copy_to_view(*tensor.value, memory.bindings_[id]);
    } else if (tensor.kind == TensorKind::kInput) {
      copy_to_view(value_of(tensor), memory.bindings_[id]);
    }
  }
  return memory;
}

}  // namespace tandem
