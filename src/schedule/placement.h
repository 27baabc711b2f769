// Which tensors have memory of their own and which lie inside another's, and which operators
// therefore have nothing to do. Decided from the graph alone, before anything is scheduled.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/partition.h"

namespace tandem {

// Where a tensor lies: inside the memory of `root`, which is the tensor itself if it has its own.
struct TensorPlace {
  TensorId root = kNone;
  int64_t offset = 0;  // elements from the root's element (0, 0, ...)
  Dims strides;        // elements, per logical dimension
};

// Four cases share memory: a reshape or copy that is a view of its source (alias_strides()); the
// operands of a concat that their producers write straight into its output; the source of a
// permutation that a kMatMul writes straight into its output, where nothing else reads it and rows
// stay whole (has_whole_rows()); and all of them in chains.
struct Placement {
  std::vector<TensorPlace> tensors;  // by TensorId
  std::vector<bool> launched;        // by OperatorId; false: the operator never runs

  bool owns_memory(TensorId id) const { return tensors[id].root == id; }
};

// An operand of a concat is written in place where
// - an operator that is launched, or another concat, makes it, in the concat's layout; and neither
//   it nor, as a view, anything else depends on the strides that it would have had (no alias
//   reads it);
// - no other concat reads it, and this one reads it once;
// - it starts on a cache line, and if the concat is along the innermost axis, ends on one or at the
//   end of the output: its producers write whole lines;
// - its rows keep one pitch, which kernels rely on: the concat is along the innermost axis, or the
//   extents outside of its axis are 1.
// A concat with all of its operands in place is not launched. With some, it is launched as if there
// were none, and lanes skip the operands that already lie where they belong.
Placement analyse(const Graph& graph);

// Whether one operator is all that is launched: run after run it follows itself, and finds its data
// where it left them, as the operators of a network, which have others between their runs, do not.
bool is_alone(const Placement& placement);

// A tensor and a region of it.
struct TensorRegion {
  TensorId tensor = kNone;
  Region region;
};

// The parts of tensors with a launched producer, inputs and constants among which a region of
// `tensor` is made of: what it needs to have been computed. Looks through operators that are not
// launched. Appends to `parts`.
void resolve(const Graph& graph, const Placement& placement, TensorId tensor, const Region& region,
             std::vector<TensorRegion>* parts);

}  // namespace tandem
