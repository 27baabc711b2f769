// Boxes as the kernels of box.cl walk over them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lane/opencl/arguments.h"
#include "tandem/status.h"

namespace tandem::opencl {

inline constexpr size_t kBoxRank = BOX_RANK;

// One dimension: its extent, and the strides of all operands along it, the output's first.
struct BoxAxis {
  int64_t extent = 1;
  std::vector<int64_t> strides;
};

// Drops extents of 1 and makes one axis of neighbours that all operands walk through evenly.
// Keeps the order, so that element numbers keep their meaning.
std::vector<BoxAxis> merge_axes(std::vector<BoxAxis> axes);

// kBoxRank axes, the one to loop along last.
struct Box {
  std::array<BoxAxis, kBoxRank> axes;
  bool contiguous = false;  // along the last axis, strides are 1, or 0 where allowed

  int64_t rows() const;  // product of all extents but the last
  void extents(int* to) const;
  void strides(size_t operand, long* to) const;
};

// Merges, orders and fills up. The last axis is one along which the output's stride is 1 and the
// others' is 1 (or 0, if `broadcast`), if there is one of a worthwhile extent; else the longest.
// Orders by the output's strides before merging, as the order of axes means nothing here.
// kUnsupported if more than kBoxRank axes are left.
StatusOr<Box> make_box(std::vector<BoxAxis> axes, size_t operands, bool broadcast);

}  // namespace tandem::opencl
