// The kernels' argument structures, as the kernels see them.
#pragma once

namespace tandem::opencl {

#include "lane/opencl/kernels/arguments.cl"

}  // namespace tandem::opencl
