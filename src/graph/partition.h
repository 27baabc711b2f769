// Slices, regions, and the partition rule of every operator kind: along which axes an output may be
// cut, and which part of the inputs a part of the output needs. Everything about dependencies
// between slices follows from here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tandem {

// Half-open.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const Range&) const = default;
};

// A box of a tensor: one range per logical dimension. Rank 0 has the empty vector, which is not an
// empty region.
using Region = std::vector<Range>;

Region whole_region(const Dims& dims);
bool is_empty(const Region& region);
bool intersects(const Region& a, const Region& b);
bool contains(const Region& outer, const Region& inner);
std::string to_string(const Region& region);

// A part of an operator's output: the range [begin, end) of one axis and all of the others, or the
// whole output (axis == kNone).
struct Slice {
  OperatorId op = kNone;
  int axis = kNone;
  int64_t begin = 0;
  int64_t end = 0;

  bool whole() const { return axis == kNone; }
  bool operator==(const Slice&) const = default;
};
std::string to_string(const Graph& graph, const Slice& slice);  // "conv1[c 0:32]"

// An axis along which an operator's output may be cut, at multiples of `granularity` (and at the
// end): so that no two slices write one cache line, and packed panels are never cut.
struct PartitionAxis {
  int axis = 0;
  int64_t granularity = 1;

  bool operator==(const PartitionAxis&) const = default;
};

// Best first: the axis that needs least of the inputs beside its own share. Empty: not divisible.
std::vector<PartitionAxis> partition_axes(const Graph& graph, OperatorId op);
// Refuses a slice whose axis may not be cut, or that does not start or end on the granularity.
Status check_slice(const Graph& graph, const Slice& slice);

Region output_region(const Graph& graph, const Slice& slice);
// The box of input number `index` that the given box of the output reads; empty if none of it. Halo
// rows are included and clipped to the tensor.
Region input_region(const Graph& graph, OperatorId op, int index, const Region& output);

Work work_of(const Graph& graph, const Slice& slice);

}  // namespace tandem
