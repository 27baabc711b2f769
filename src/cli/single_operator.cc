#include "cli/single_operator.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cli/random_tensor.h"
#include "fmt/format.h"
#include "support/clock.h"

namespace tandem::cli {
namespace {

constexpr size_t kAlignment = 64;
constexpr std::chrono::seconds kDeadline{60};

size_t rounded_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Zeroed, so that all of it is mapped before anything is timed.
StatusOr<std::shared_ptr<std::byte>> allocate(Lane& lane, size_t bytes) {
  auto* queue = dynamic_cast<QueueLane*>(&lane);
  if (queue != nullptr && !computes_on_own_memory(*queue)) {
    return queue->allocate(bytes);
  }
  void* block = std::aligned_alloc(kAlignment, rounded_up(bytes));
  if (block == nullptr) return resource_exhausted(fmt::format("no {} bytes of memory", bytes));
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

StatusOr<OperatorMemory> OperatorMemory::create(const Graph& graph, Lane& lane) {
  std::vector<size_t> offsets;
  size_t bytes = 0;
  for (const Tensor& tensor : graph.tensors()) {
    offsets.push_back(bytes);
    bytes += rounded_up(static_cast<size_t>(span_of(tensor.dims, tensor.layout)) *
                        element_size(tensor.type));
  }
  OperatorMemory memory;
  TANDEM_ASSIGN_OR_RETURN(memory.block_, allocate(lane, bytes));
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto id = static_cast<TensorId>(i);
    const Tensor& tensor = graph.tensor(id);
    void* data = needs_memory(graph, id) ? memory.block_.get() + offsets[i] : nullptr;
    memory.bindings_.views.push_back(view_of(tensor, data));
    if (data == nullptr) continue;
    if (tensor.kind == TensorKind::kConstant) {
      copy_to_view(*tensor.value, memory.bindings_[id]);
    } else if (tensor.kind == TensorKind::kInput) {
      copy_to_view(random_tensor(tensor.type, tensor.dims, tensor.name), memory.bindings_[id]);
    }
  }
  return memory;
}

StatusOr<std::unique_ptr<SingleOperator>> SingleOperator::create(const Graph& graph, Lane& lane) {
  TANDEM_ASSIGN_OR_RETURN(OperatorMemory memory, OperatorMemory::create(graph, lane));
  std::unique_ptr<SingleOperator> result(new SingleOperator(lane, std::move(memory)));
  TANDEM_ASSIGN_OR_RETURN(result->program_, lane.load(graph, result->memory_.bindings()));
  for (const TensorId input : graph.inputs()) {
    TANDEM_RETURN_IF_ERROR(
        result->program_->enqueue_upload(input, whole_region(graph.tensor(input).dims)));
  }
  Slice whole;
  whole.op = static_cast<OperatorId>(graph.operators().size()) - 1;
  TANDEM_ASSIGN_OR_RETURN(result->task_, result->program_->bind(whole, lane.info().max_threads));
  return result;
}

Status SingleOperator::run(int repetitions) {
  for (int i = 0; i < repetitions; ++i) TANDEM_RETURN_IF_ERROR(task_->launch());
  if (auto* queue = dynamic_cast<QueueLane*>(&lane_)) TANDEM_RETURN_IF_ERROR(queue->flush());
  return lane_.drain(Clock::now() + kDeadline);
}

}  // namespace tandem::cli
