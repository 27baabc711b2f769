// A schedule with its memory, ready to run.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "runtime/memory_plan.h"
#include "schedule/schedule.h"

namespace tandem {

// Empty, or made by allocate_memory() and then bound.
struct PreparedSchedule {
  Schedule schedule;
  MemoryPlan plan;
  std::shared_ptr<const Arena> arena;
  std::unique_ptr<Executor> executor;  // null: not bound; last: goes first

  // Makes the executor. The caller has the lease; the graph must outlive it.
  Status bind(const Graph& graph, std::shared_ptr<LaneCrew> crew, const ExecutorOptions& options);
  // Copies the inputs to where the schedule reads them, runs it, and copies the outputs from where
  // it leaves them; where `outputs` has room for one, into that. Inputs are as check_inputs() wants
  // them. `cancelled`: see Executor::run().
  Status run(const Graph& graph, const std::vector<HostTensor>& inputs,
             std::vector<HostTensor>* outputs, const std::atomic<bool>* cancelled);
};

// Memory for the graph's tensors, in which the schedule may run on the crew's lanes.
StatusOr<PreparedSchedule> allocate_memory(const Graph& graph, Schedule schedule,
                                           const LaneCrew& crew, const MemoryPlanOptions& options);

}  // namespace tandem
