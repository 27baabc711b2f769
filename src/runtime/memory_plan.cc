#include "runtime/memory_plan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "support/memory_left.h"

namespace tandem {
namespace {

constexpr int64_t kAlignment = 64;

int64_t round_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A constant lies in shared memory if an operator that runs reads it there.
bool constant_needs_memory(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  if (graph.is_output(id)) return true;
  for (OperatorId consumer : tensor.consumers) {
    const Operator& op = graph.op(consumer);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == id && !is_packed_input(op, static_cast<int>(i))) return true;
    }
  }
  return false;
}

// When the memory of a tensor is in use, in terms of lanes' progress.
struct Lifetime {
  std::vector<int> last;    // per lane: its slices up to here touch the memory
  std::vector<int> before;  // per lane: slices known to have finished when any of them starts
  bool from_start = false;
  bool to_end = false;
  bool touched = false;
};

// The whole life of `a` lies before that of `b`.
bool is_before(const Lifetime& a, const Lifetime& b) {
  if (a.to_end || b.from_start || !b.touched) return false;
  for (size_t lane = 0; lane < a.last.size(); ++lane) {
    if (a.last[lane] > b.before[lane]) return false;
  }
  return true;
}

std::vector<Lifetime> lifetimes_of(const Graph& graph, const Placement& placement,
                                   const Schedule& schedule) {
  const size_t lanes = schedule.lanes.size();
  Lifetime unused;
  unused.last.assign(lanes, 0);
  unused.before.assign(lanes, std::numeric_limits<int>::max());
  std::vector<Lifetime> lifetimes(graph.tensors().size(), unused);

  const auto finished = finished_before(schedule);
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      // What is known once the slice has finished, less the slice itself, is known at its start.
      std::vector<int> at_start = finished[lane][i];
      at_start[lane] = static_cast<int>(i);
      const Operator& op = graph.op(schedule.lanes[lane][i].slice.op);
      const auto touch = [&](TensorId tensor) {
        Lifetime& life = lifetimes[placement.tensors[tensor].root];
        life.touched = true;
        life.last[lane] = std::max(life.last[lane], static_cast<int>(i) + 1);
        for (size_t l = 0; l < lanes; ++l) life.before[l] = std::min(life.before[l], at_start[l]);
      };
      touch(op.output);
      for (TensorId input : op.inputs) touch(input);
    }
  }
  for (TensorId input : graph.inputs()) lifetimes[placement.tensors[input].root].from_start = true;
  for (TensorId output : graph.outputs()) lifetimes[placement.tensors[output].root].to_end = true;
  return lifetimes;
}

int64_t bytes_of(const Tensor& tensor) {
  return round_up(span_of(tensor.dims, tensor.layout) *
                  static_cast<int64_t>(element_size(tensor.type)));
}

// Tensors with memory of their own in the arena; constants first.
struct Residents {
  std::vector<TensorId> constants;
  std::vector<TensorId> others;
};

Residents residents_of(const Graph& graph, const Placement& placement) {
  Residents residents;
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (!placement.owns_memory(id)) continue;
    if (graph.tensor(id).kind != TensorKind::kConstant) {
      residents.others.push_back(id);
    } else if (constant_needs_memory(graph, id)) {
      residents.constants.push_back(id);
    }
  }
  return residents;
}

// The most of `others` that is in use at once, if a single lane touches any of them; else zero.
int64_t most_alive(const Graph& graph, const Residents& residents,
                   const std::vector<Lifetime>& lifetimes) {
  std::set<size_t> lanes;
  for (TensorId id : residents.others) {
    for (size_t l = 0; l < lifetimes[id].last.size(); ++l) {
      if (lifetimes[id].last[l] > 0) lanes.insert(l);
    }
  }
  if (lanes.size() != 1) return 0;
  const size_t lane = *lanes.begin();
  // By position in the lane's order: what begins to be in use there, less what has ceased to be.
  std::map<int, int64_t> changes;
  constexpr int kEnd = std::numeric_limits<int>::max();
  for (TensorId id : residents.others) {
    const Lifetime& life = lifetimes[id];
    if (!life.touched && !life.from_start) continue;
    changes[life.from_start ? 0 : life.before[lane]] += bytes_of(graph.tensor(id));
    changes[life.to_end ? kEnd : life.last[lane]] -= bytes_of(graph.tensor(id));
  }
  int64_t alive = 0;
  int64_t most = 0;
  for (const auto& [at, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return most;
}

// All of SessionMemory but the arena.
SessionMemory demand_of(const Graph& graph, const Residents& residents,
                        const std::vector<Lifetime>* lifetimes) {
  SessionMemory memory;
  const auto add = [&](TensorId id) {
    const Tensor& tensor = graph.tensor(id);
    memory.without_reuse += bytes_of(tensor);
    memory.padding += bytes_of(tensor) - element_count(tensor.dims) * element_size(tensor.type);
  };
  for (TensorId id : residents.constants) {
    add(id);
    memory.constants += bytes_of(graph.tensor(id));
  }
  for (TensorId id : residents.others) add(id);
  const int64_t alive = lifetimes ? most_alive(graph, residents, *lifetimes) : 0;
  if (alive > 0) memory.least = memory.constants + static_cast<size_t>(alive);
  return memory;
}

// The lowest place where `bytes` fit between the [begin, end) of `taken`.
int64_t lowest_gap(std::vector<std::pair<int64_t, int64_t>> taken, int64_t from, int64_t bytes) {
  std::sort(taken.begin(), taken.end());
  int64_t at = from;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) break;
    at = std::max(at, end);
  }
  return at;
}

MemoryPlan place(const Graph& graph, Placement placement, const std::vector<Lifetime>* lifetimes) {
  MemoryPlan plan;
  plan.placement = std::move(placement);
  plan.offsets.assign(graph.tensors().size(), kNone);
  const Residents residents = residents_of(graph, plan.placement);
  int64_t end = 0;
  for (TensorId id : residents.constants) {
    plan.offsets[id] = end;
    end += bytes_of(graph.tensor(id));
  }
  const int64_t reusable_from = end;
  plan.memory = demand_of(graph, residents, lifetimes);

  // Largest first, each to the lowest place that no tensor alive with it has taken.
  std::vector<TensorId> by_size = residents.others;
  std::stable_sort(by_size.begin(), by_size.end(), [&](TensorId a, TensorId b) {
    return bytes_of(graph.tensor(a)) > bytes_of(graph.tensor(b));
  });
  std::vector<TensorId> placed;
  std::vector<bool> overwritten(graph.tensors().size(), false);
  for (TensorId id : by_size) {
    const int64_t bytes = bytes_of(graph.tensor(id));
    std::vector<std::pair<int64_t, int64_t>> taken;
    std::vector<TensorId> others;
    for (TensorId other : placed) {
      const bool ordered = lifetimes && (is_before((*lifetimes)[id], (*lifetimes)[other]) ||
                                         is_before((*lifetimes)[other], (*lifetimes)[id]));
      if (ordered) {
        others.push_back(other);
      } else {
        taken.emplace_back(plan.offsets[other],
                           plan.offsets[other] + bytes_of(graph.tensor(other)));
      }
    }
    const int64_t at = lowest_gap(std::move(taken), reusable_from, bytes);
    plan.offsets[id] = at;
    end = std::max(end, at + bytes);
    for (TensorId other : others) {
      const int64_t begin = plan.offsets[other];
      if (begin >= at + bytes || at >= begin + bytes_of(graph.tensor(other))) continue;
      overwritten[is_before((*lifetimes)[id], (*lifetimes)[other]) ? id : other] = true;
    }
    placed.push_back(id);
  }
  plan.memory.arena = static_cast<size_t>(end);

  for (const TensorPlace& tensor : plan.placement.tensors) {
    plan.survives.push_back(plan.offsets[tensor.root] != kNone && !overwritten[tensor.root]);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Schedule& schedule,
                       const MemoryPlanOptions& options) {
  if (!options.reuse) return plan_memory(graph);
  Placement placement = analyse(graph);
  const std::vector<Lifetime> lifetimes = lifetimes_of(graph, placement, schedule);
  return place(graph, std::move(placement), &lifetimes);
}

MemoryPlan plan_memory(const Graph& graph) { return place(graph, analyse(graph), nullptr); }

Arena::Allocator Arena::host_allocator() {
  return [](size_t bytes) -> StatusOr<std::shared_ptr<std::byte>> {
    const auto rounded = static_cast<size_t>(round_up(static_cast<int64_t>(bytes)));
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (!memory) {
      return resource_exhausted("cannot allocate " + std::to_string(rounded) + " bytes");
    }
    std::memset(memory, 0, rounded);
    return std::shared_ptr<std::byte>(memory, [](std::byte* p) { std::free(p); });
  };
}

Arena::Allocator Arena::allocator_for(const std::vector<Lane*>& lanes) {
  for (Lane* lane : lanes) {
    auto* queue_lane = dynamic_cast<QueueLane*>(lane);
    if (queue_lane && !computes_on_own_memory(*queue_lane)) {
      return [queue_lane](size_t bytes) { return queue_lane->allocate(bytes); };
    }
  }
  return host_allocator();
}

StatusOr<Arena> Arena::create(const Graph& graph, const MemoryPlan& plan,
                              const Allocator& allocate) {
  Arena arena;
  // Kernels may read, not write, a little past the last row that they use.
  const size_t bytes = plan.memory.arena + kAlignment;
  TANDEM_RETURN_IF_ERROR(check_memory(bytes, "activations need"));
  StatusOr<std::shared_ptr<std::byte>> memory = allocate(bytes);
  if (!memory.ok()) return memory.status().with_context("memory for activations");
  arena.memory_ = *std::move(memory);
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const Tensor& tensor = graph.tensor(id);
    const TensorPlace& place = plan.placement.tensors[t];
    TensorView view{tensor.type, tensor.dims, place.strides, nullptr};
    if (plan.offsets[place.root] != kNone) {
      view.data = arena.memory_.get() + plan.offsets[place.root] +
                  place.offset * static_cast<int64_t>(element_size(tensor.type));
      if (tensor.kind == TensorKind::kConstant) copy_to_view(*tensor.value, view);
    }
    arena.bindings_.views.push_back(std::move(view));
  }
  return arena;
}

}  // namespace tandem
