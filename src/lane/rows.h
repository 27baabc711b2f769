// A region of a tensor in memory as runs of bytes: what a device's copy commands take.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/partition.h"

namespace tandem {

// `count` runs of `bytes` bytes, `pitch` bytes from the start of one to that of the next.
struct Rows {
  int64_t offset = 0;  // bytes from the view's first element
  int64_t bytes = 0;
  int64_t count = 1;
  int64_t pitch = 0;  // at least `bytes`

  bool operator==(const Rows&) const = default;
};

// As few as can be: dimensions that lie closely together become one. Empty for an empty region.
std::vector<Rows> rows_of(const TensorView& view, const Region& region);

// Bytes from the view's first element to one past the last.
int64_t span_in_bytes(const TensorView& view);

}  // namespace tandem
