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

// What a reader needs that one slice makes, or that comes with the model's inputs or constants.
struct Need {
  Position maker;  // lane kNone: no slice does
  TensorId tensor = kNone;
  int part = kNone;  // of a concat: the operand that the maker copies
  Region region;     // of the tensor
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
  // Where what `slice` reads comes into being. In contrast to of(), an operand that its producer
  // has put into a concat's output counts as made by its producer, not by the concat. Regions of
  // different makers, tensors or parts do not meet.
  std::vector<Need> needs_of(const Slice& slice) const;
  // The same for a reader of a whole tensor.
  std::vector<Need> needs_of(TensorId tensor) const;
  const Placement& placement() const { return placement_; }

 private:
  struct Made {
    Position position;
    Region region;
  };
  // Of a region of a tensor that has a producer that is launched, or none.
  void add_needs(const TensorRegion& wanted, std::vector<Need>* needs) const;
  void add_made(OperatorId op, const Region& region, int part, std::vector<Need>* needs) const;

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
