#include "zoo/shapes.h"

#include <functional>
#include <numeric>

namespace tandem::zoo {

int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

int64_t normalized_axis(int64_t axis, int64_t rank) {
  if (axis < 0) axis += rank;
  return axis < rank ? axis : -1;
}

int64_t window_count(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil) {
  const int64_t room = in + 2 * pad - kernel;
  if (room < 0) return 0;
  return (ceil ? (room + stride - 1) / stride : room / stride) + 1;
}

}  // namespace tandem::zoo
