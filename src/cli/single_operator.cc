#include "cli/single_operator.h"

#include <chrono>
#include <utility>

#include "cli/random_tensor.h"
#include "support/clock.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kDeadline{60};

}  // namespace

StatusOr<std::unique_ptr<SingleOperator>> SingleOperator::create(const Graph& graph, Lane& lane) {
  TANDEM_ASSIGN_OR_RETURN(GraphMemory memory, GraphMemory::create(graph, {&lane}, random_value));
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
