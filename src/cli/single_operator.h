// One operator alone on one lane, with memory of its own.
#pragma once

#include <memory>

#include "graph/graph.h"
#include "lane/lane.h"
#include "profile/graph_memory.h"
#include "tandem/status.h"

namespace tandem::cli {

// The graph's last operator, whole, bound and ready. Make and use it on the lane's thread; `graph`
// outlives it.
class SingleOperator {
 public:
  static StatusOr<std::unique_ptr<SingleOperator>> create(const Graph& graph, Lane& lane);
  const ImplementationInfo& info() const { return task_->info(); }
  // Runs it `repetitions` times and waits for the last.
  Status run(int repetitions);

 private:
  SingleOperator(Lane& lane, GraphMemory memory) : lane_(lane), memory_(std::move(memory)) {}

  Lane& lane_;
  GraphMemory memory_;
  std::unique_ptr<LaneProgram> program_;
  std::unique_ptr<Task> task_;
};

}  // namespace tandem::cli
