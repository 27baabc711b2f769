// Copies between memories, where lanes do not all compute on the same: derived from the regions
// that waits are derived from.
#pragma once

#include <vector>

#include "schedule/dependencies.h"

namespace tandem {

// Regions that are copied around each slice of a lane that has memory of its own. Everything that a
// slice reads from another memory is copied to its lane's once, at the latest right before it:
//
// - after a slice has run, what anybody reads elsewhere of what it made goes to the host's memory,
//   before the lane signals;
// - before the first slice that reads of it runs, and after that slice's waits, what any slice of
//   the lane reads of another memory's slice, or of an input, comes from the host's memory. (From
//   another device's, it was put there when it was made.)
//
// Each region is made by one slice and copied as part of that slice's, so that copies never write
// what anything else writes: an element has one writer in each memory.
//
// Why reuse of memory stays safe, although copies touch it besides the slices. A plan reuses the
// memory of tensor T for tensor V only if all slices that touch T, in any memory, have finished
// before any slice starts that touches V (see MemoryPlan). A copy of a region of T belongs to a
// slice that touches T, its maker or a reader, is enqueued between the queue's slices beside it,
// and runs in the order of the queue: before the signal that says that this slice has finished, or
// that a later one of the queue has. So whoever knows that the slice has finished knows that of its
// copies. And it runs after what the queue had before: a copy before reader S of T overwrites
// nothing that the lane still needs, because what lay there was touched last by slices that had
// finished before T's maker started, and S waits for that one; the same goes for the host's memory
// and the copy after T's maker. That waits are fewer than dependencies does not matter: what is
// left out is implied by the order of the queue, which holds for copies too.
struct Transfers {
  struct Around {
    std::vector<TensorRegion> before;  // from the host's memory to the lane's
    std::vector<TensorRegion> after;   // from the lane's memory to the host's
  };
  std::vector<std::vector<Around>> lanes;  // by lane and slice; empty for the lanes of the host
};

// `own_memory`: by lane, whether it computes on memory of its own; all others on the host's. What
// the outputs are made of ends up in the host's memory, and with `everything`, all that is made.
Transfers plan_transfers(const Graph& graph, const Schedule& schedule,
                         const std::vector<bool>& own_memory, bool everything = false);

}  // namespace tandem
