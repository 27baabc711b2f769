#include "lane/rows.h"

#include <algorithm>

namespace tandem {
namespace {

struct Dimension {
  int64_t extent = 1;
  int64_t stride = 1;  // elements
};

// Those of extent above one, innermost in memory first, merged where one continues another.
std::vector<Dimension> dimensions_of(const TensorView& view, const Region& region) {
  std::vector<Dimension> all;
  for (size_t d = 0; d < region.size(); ++d) {
    if (region[d].size() > 1) all.push_back({region[d].size(), view.strides[d]});
  }
  std::sort(all.begin(), all.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::vector<Dimension> merged;
  for (const Dimension& next : all) {
    if (!merged.empty() && merged.back().stride * merged.back().extent == next.stride) {
      merged.back().extent *= next.extent;
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

}  // namespace

std::vector<Rows> rows_of(const TensorView& view, const Region& region) {
  if (is_empty(region)) return {};
  const auto width = static_cast<int64_t>(element_size(view.type));
  std::vector<Dimension> dimensions = dimensions_of(view, region);
  Rows rows{.bytes = width};
  for (size_t d = 0; d < region.size(); ++d) rows.offset += region[d].begin * view.strides[d];
  rows.offset *= width;
  if (!dimensions.empty() && dimensions.front().stride == 1) {
    rows.bytes *= dimensions.front().extent;
    dimensions.erase(dimensions.begin());
  }
  rows.pitch = rows.bytes;
  if (!dimensions.empty()) {
    rows.count = dimensions.front().extent;
    rows.pitch = dimensions.front().stride * width;
    dimensions.erase(dimensions.begin());
  }
  std::vector<Rows> result{rows};
  for (const Dimension& outer : dimensions) {
    const std::vector<Rows> inner = std::move(result);
    result.clear();
    for (int64_t i = 0; i < outer.extent; ++i) {
      for (Rows moved : inner) {
        moved.offset += i * outer.stride * width;
        result.push_back(moved);
      }
    }
  }
  return result;
}

int64_t span_in_bytes(const TensorView& view) {
  int64_t last = 0;
  for (size_t d = 0; d < view.dims.size(); ++d) {
    if (view.dims[d] == 0) return 0;
    last += (view.dims[d] - 1) * view.strides[d];
  }
  return (last + 1) * static_cast<int64_t>(element_size(view.type));
}

}  // namespace tandem
