// Arithmetic of shapes.
#pragma once

#include <cstdint>
#include <string>

#include "zoo/graph_builder.h"

namespace tandem::zoo {

int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "[1, 3]"
// The axis of `rank` axes that a possibly negative `axis` means, or -1.
int64_t normalized_axis(int64_t axis, int64_t rank);
// How many positions a window has that moves over `in` elements; 0 if it does not fit.
int64_t window_count(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil = false);

}  // namespace tandem::zoo
