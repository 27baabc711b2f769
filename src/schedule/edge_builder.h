// Edges of a mode problem from region rules.
#pragma once

#include <utility>
#include <vector>

#include "schedule/mode_problem.h"
#include "schedule/placement.h"
#include "schedule/scheduler.h"

namespace tandem {

// Fills in edges: which parts wait for which.
class EdgeBuilder {
 public:
  // `launched`: what operators of `result` stand for, in order. Everything must outlive this.
  EdgeBuilder(const Problem& problem, const Placement& placement,
              const std::vector<OperatorId>& launched, ModeProblem* result);

  // From all operators that this one reads; modes of these and of it must be there.
  void add_edges_to(int to);

 private:
  // What the slice reads that operators make. Modes share many slices.
  const std::vector<TensorRegion>& reads_of(const Slice& slice);
  void add(ModeEdge* edge, int to_mode, int to_part, const TensorRegion& read);

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  ModeProblem* result_;
  std::vector<int> index_of_;  // by OperatorId
  bool any_own_memory_ = false;
  std::vector<std::pair<Slice, std::vector<TensorRegion>>> reads_;  // of one operator
};

}  // namespace tandem
