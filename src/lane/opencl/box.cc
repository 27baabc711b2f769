#include "lane/opencl/box.h"

#include <algorithm>
#include <cstdlib>

#include "fmt/format.h"

namespace tandem::opencl {
namespace {

// Along shorter axes, vectors are mostly remainder.
constexpr int64_t kWorthwhile = 8;

bool is_contiguous(const BoxAxis& axis, bool broadcast) {
  if (axis.strides[0] != 1) return false;
  return std::all_of(axis.strides.begin() + 1, axis.strides.end(), [broadcast](int64_t stride) {
    return stride == 1 || (broadcast && stride == 0);
  });
}

}  // namespace

std::vector<BoxAxis> merge_axes(std::vector<BoxAxis> axes) {
  std::vector<BoxAxis> merged;
  for (BoxAxis& axis : axes) {
    if (axis.extent == 1) continue;
    bool even = !merged.empty();
    for (size_t i = 0; even && i < axis.strides.size(); ++i) {
      even = merged.back().strides[i] == axis.strides[i] * axis.extent;
    }
    if (even) {
      merged.back().extent *= axis.extent;
      merged.back().strides = std::move(axis.strides);
    } else {
      merged.push_back(std::move(axis));
    }
  }
  return merged;
}

int64_t Box::rows() const {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < kBoxRank; ++d) rows *= axes[d].extent;
  return rows;
}

void Box::extents(int* to) const {
  for (size_t d = 0; d < kBoxRank; ++d) to[d] = static_cast<int>(axes[d].extent);
}

void Box::strides(size_t operand, long* to) const {
  for (size_t d = 0; d < kBoxRank; ++d) to[d] = axes[d].strides[operand];
}

StatusOr<Box> make_box(std::vector<BoxAxis> axes, size_t operands, bool broadcast) {
  std::stable_sort(axes.begin(), axes.end(), [](const BoxAxis& a, const BoxAxis& b) {
    return std::abs(a.strides[0]) > std::abs(b.strides[0]);
  });
  axes = merge_axes(std::move(axes));
  if (axes.size() > kBoxRank) {
    return unsupported(fmt::format("more than {} dimensions that do not merge", kBoxRank));
  }
  Box box;
  if (!axes.empty()) {
    auto last = std::find_if(axes.begin(), axes.end(), [broadcast](const BoxAxis& axis) {
      return axis.extent >= kWorthwhile && is_contiguous(axis, broadcast);
    });
    box.contiguous = last != axes.end();
    if (!box.contiguous) {
      last = std::max_element(axes.begin(), axes.end(), [](const BoxAxis& a, const BoxAxis& b) {
        return a.extent < b.extent;
      });
    }
    std::rotate(last, last + 1, axes.end());
  }
  axes.insert(axes.begin(), kBoxRank - axes.size(), BoxAxis{1, std::vector<int64_t>(operands, 0)});
  std::move(axes.begin(), axes.end(), box.axes.begin());
  return box;
}

}  // namespace tandem::opencl
