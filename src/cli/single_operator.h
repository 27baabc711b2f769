// One operator alone on one lane, with memory of its own.
#pragma once

#include <cstddef>
#include <memory>

#include "graph/graph.h"
#include "lane/lane.h"
#include "tandem/status.h"

namespace tandem::cli {

// Memory for every tensor of a graph that is not packed by lanes, with random inputs.
class OperatorMemory {
 public:
  // In memory that the lane shares with the host, if it does; outlived by the lane.
  static StatusOr<OperatorMemory> create(const Graph& graph, Lane& lane);
  const TensorBindings& bindings() const { return bindings_; }

 private:
  std::shared_ptr<std::byte> block_;
  TensorBindings bindings_;
};

// The graph's last operator, whole, bound and ready. Make and use it on the lane's thread; `graph`
// outlives it.
class SingleOperator {
 public:
  static StatusOr<std::unique_ptr<SingleOperator>> create(const Graph& graph, Lane& lane);
  const ImplementationInfo& info() const { return task_->info(); }
  // Runs it `repetitions` times and waits for the last.
  Status run(int repetitions);

 private:
  SingleOperator(Lane& lane, OperatorMemory memory) : lane_(lane), memory_(std::move(memory)) {}

  Lane& lane_;
  OperatorMemory memory_;
  std::unique_ptr<LaneProgram> program_;
  std::unique_ptr<Task> task_;
};

}  // namespace tandem::cli
