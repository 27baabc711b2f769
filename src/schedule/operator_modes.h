// The modes of one operator: which partitions searches get to see, and what they cost.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/mode_builder.h"
#include "schedule/placement.h"

namespace tandem {

// A partition before it is a mode.
struct Cut {
  int axis = kNone;             // kNone: whole, on lanes.front()
  std::vector<int> lanes;       // ascending, those with work
  std::vector<int64_t> places;  // where slices begin, and the extent

  bool operator==(const Cut&) const = default;
};

// The modes of one operator.
class OperatorModes {
 public:
  // Both must outlive it.
  OperatorModes(const Problem& problem, const Placement& placement, OperatorId op)
      : problem_(problem),
        graph_(*problem.graph),
        placement_(placement),
        op_(op),
        dims_(graph_.output_of(op).dims),
        axes_(partition_axes(graph_, op)),
        lanes_(static_cast<int>(problem.lanes.size())),
        makes_output_(is_made_into_output()) {}

  // `producers`: the cuts that this operator's should be lined up with.
  std::vector<Cut> search(const std::vector<const std::vector<Cut>*>& producers, int max_modes);
  StatusOr<std::vector<Cut>> pinned(const Pin& pin);
  Mode mode_of(const Cut& cut);
  // Of a schedule's slices of this operator, with the threads that it gives them.
  Mode mode_of(const std::vector<std::pair<int, ScheduledSlice>>& slices);

 private:
  struct Timed {
    double us = 0;
    int threads = 0;
  };

  Slice slice_of(const Cut& cut, size_t part) const {
    if (cut.axis == kNone) return Slice{.op = op_};
    return Slice{op_, cut.axis, cut.places[part], cut.places[part + 1]};
  }
  Timed time(int lane, const Slice& slice);
  // Whether a model output is, or is a view of, what the operator makes.
  bool is_made_into_output() const;
  double copies_us(int lane, const Slice& slice) const;
  double leave_us(int lane, const Slice& slice) const;
  Part part_of(int lane, const Slice& slice, const Timed& timed) const;
  double end_us(const Cut& cut);

  int64_t units(const PartitionAxis& axis) const {
    return (dims_[axis.axis] + axis.granularity - 1) / axis.granularity;
  }
  // Shares of units as a cut; those without any are left out.
  Cut cut_of(const PartitionAxis& axis, const std::vector<int>& lanes,
             const std::vector<int64_t>& shares) const;
  std::vector<int64_t> proportional(const std::vector<double>& weights, int64_t units) const;
  // Where all parts end together, as nearly as may be.
  Cut balance(const PartitionAxis& axis, const std::vector<int>& lanes);
  Cut shifted(const PartitionAxis& axis, const Cut& cut, size_t from, size_t to,
              double share) const;
  std::optional<Cut> aligned(const Cut& producer);
  bool is_dominated(const Cut& cut, const std::vector<Cut>& by);

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  const OperatorId op_;
  const Dims& dims_;
  const std::vector<PartitionAxis> axes_;
  const int lanes_;
  const bool makes_output_;
  std::map<std::tuple<int, int, int64_t, int64_t>, Timed> times_;
};

}  // namespace tandem
