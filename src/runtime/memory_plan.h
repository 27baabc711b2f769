// Where every tensor of a graph lies while a schedule runs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "lane/lane.h"
#include "schedule/placement.h"
#include "schedule/schedule.h"
#include "tandem/session.h"

namespace tandem {

// Tensors that own memory (see Placement), with an offset each into one arena. Two of them overlap
// only if the schedule's waits, which are there anyway, order their lifetimes: every slice that
// touches the one has finished before any slice that touches the other starts. Inputs live from
// before the first slice, outputs to after the last. Constants that lanes do not pack have places
// that nothing reuses.
struct MemoryPlan {
  Placement placement;
  std::vector<int64_t> offsets;  // bytes, by TensorId; kNone: nothing in the arena
  SessionMemory memory;
  std::vector<bool> survives;  // by TensorId: what it holds after a run is its value
};

struct MemoryPlanOptions {
  bool reuse = true;
};

// The schedule must pass check_schedule().
MemoryPlan plan_memory(const Graph& graph, const Schedule& schedule,
                       const MemoryPlanOptions& options = {});

// A plan for no schedule in particular: nothing is reused.
MemoryPlan plan_memory(const Graph& graph);

// The memory itself.
class Arena {
 public:
  // Zeroed and 64-byte aligned memory.
  using Allocator = std::function<StatusOr<std::shared_ptr<std::byte>>(size_t bytes)>;
  static Allocator host_allocator();
  // Memory that all of the lanes can use, those aside that compute on their own: of the first queue
  // lane that shares any, else the host's.
  static Allocator allocator_for(const std::vector<Lane*>& lanes);

  // Allocates, and writes the constants that have a place.
  static StatusOr<Arena> create(const Graph& graph, const MemoryPlan& plan,
                                const Allocator& allocate);

  const TensorBindings& bindings() const { return bindings_; }

 private:
  std::shared_ptr<std::byte> memory_;
  TensorBindings bindings_;
};

}  // namespace tandem
