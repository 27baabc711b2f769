// Boxes of tensors.
#include <algorithm>

#include "graph/partition.h"

namespace tandem {

Region whole_region(const Dims& dims) {
  Region region;
  region.reserve(dims.size());
  for (int64_t extent : dims) region.push_back({0, extent});
  return region;
}

bool is_empty(const Region& region) {
  return std::any_of(region.begin(), region.end(), [](const Range& r) { return r.empty(); });
}

bool intersects(const Region& a, const Region& b) {
  if (is_empty(a) || is_empty(b)) return false;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].begin >= b[d].end || b[d].begin >= a[d].end) return false;
  }
  return true;
}

bool contains(const Region& outer, const Region& inner) {
  if (is_empty(inner)) return true;
  for (size_t d = 0; d < outer.size(); ++d) {
    if (inner[d].begin < outer[d].begin || inner[d].end > outer[d].end) return false;
  }
  return true;
}

std::string to_string(const Region& region) {
  std::string text = "[";
  for (size_t d = 0; d < region.size(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(region[d].begin) + ":" + std::to_string(region[d].end);
  }
  return text + "]";
}

}  // namespace tandem
