// The implementation of this folder: XNNPACK's convolution, which takes gaps between pixels on both
// sides.
#pragma once

#include "lane/cpu/kernel.h"

namespace tandem::cpu {

const Implementation& xnnpack_conv();  // kConv

}  // namespace tandem::cpu
