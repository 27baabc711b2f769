#include "graph/passes/copies.h"

#include <numeric>

#include "graph/reshape_groups.h"

namespace tandem {

CopyAttributes plain_copy(size_t rank) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return permutation_copy(axes);
}

CopyAttributes permutation_copy(const std::vector<int>& permutation) {
  return {.source_axis = permutation,
          .step = Dims(permutation.size(), 1),
          .start = Dims(permutation.size(), 0)};
}

CopyAttributes compose(const CopyAttributes& outer, const CopyAttributes& inner) {
  CopyAttributes result;
  result.start = inner.start;
  for (size_t m = 0; m < outer.start.size(); ++m) {
    const int axis = inner.source_axis[m];
    if (axis != kNone) result.start[axis] += inner.step[m] * outer.start[m];
  }
  for (size_t d = 0; d < outer.source_axis.size(); ++d) {
    const int middle = outer.source_axis[d];
    const int axis = middle == kNone ? kNone : inner.source_axis[middle];
    result.source_axis.push_back(axis);
    result.step.push_back(axis == kNone ? 1 : outer.step[d] * inner.step[middle]);
  }
  return result;
}

std::optional<CopyAttributes> reshape_as_copy(const Dims& from, const Dims& to) {
  CopyAttributes copy;
  copy.source_axis.assign(to.size(), kNone);
  copy.step.assign(to.size(), 1);
  copy.start.assign(from.size(), 0);
  for (const ReshapeGroup& group : reshape_groups(from, to)) {
    int source = kNone;
    for (size_t s = group.source_begin; s < group.source_end; ++s) {
      if (from[s] == 1) continue;
      if (source != kNone) return std::nullopt;
      source = static_cast<int>(s);
    }
    int64_t step = 1;
    for (size_t o = group.output_end; o-- > group.output_begin;) {
      if (to[o] == 1) continue;
      copy.source_axis[o] = source;
      copy.step[o] = step;
      step *= to[o];
    }
  }
  return copy;
}

bool keeps_order(const CopyAttributes& copy, const Dims& from, const Dims& to) {
  size_t next = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 1) continue;
    while (next < from.size() && from[next] == 1) ++next;
    if (copy.source_axis[d] != static_cast<int>(next) || copy.step[d] != 1 || next == from.size() ||
        from[next] != to[d]) {
      return false;
    }
    ++next;
  }
  while (next < from.size() && from[next] == 1) ++next;
  return next == from.size();
}

}  // namespace tandem
