// Which slices need which others, from the region rules alone; and orders that respect them.
#pragma once

#include <vector>

#include "schedule/placement.h"
#include "schedule/schedule.h"

namespace tandem {

// A slice of a schedule: the index-th of that lane.
struct Position {
  int lane = 0;
  int index = 0;

  bool operator==(const Position&) const = default;
};

// Knows which slice makes what, and so whose results a slice reads.
class Dependencies {
 public:
  // The graph is not copied.
  explicit Dependencies(const Graph& graph);
  // With every slice of the schedule added.
  Dependencies(const Graph& graph, const Schedule& schedule);

  void add(Position position, const Slice& slice);
  // The added slices that make what `slice` reads. One may occur more than once.
  std::vector<Position> of(const Slice& slice) const;
  const Placement& placement() const { return placement_; }

 private:
  struct Made {
    Position position;
    Region region;
  };
  const Graph& graph_;
  Placement placement_;
  std::vector<std::vector<Made>> made_;  // by operator
};

// For each lane and index, the slices that have to come before, those of the lane itself aside.
using Predecessors = std::vector<std::vector<std::vector<Position>>>;

// All slices, each after the one before it on its lane and after its predecessors.
struct SliceOrder {
  std::vector<Position> order;
  std::vector<Position> cycle;  // not empty: there is no such order, and this is why
};
SliceOrder order_slices(const Predecessors& predecessors);

}  // namespace tandem
