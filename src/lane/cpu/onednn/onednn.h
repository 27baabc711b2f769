// The implementations of this folder: oneDNN's convolutions. None of them is used where oneDNN
// would fall back to its reference code.
#pragma once

#include "lane/cpu/kernel.h"

namespace tandem::cpu {

const Implementation& onednn_conv();      // kConv, kLinear: direct convolution on channels-last
const Implementation& onednn_winograd();  // kConv, 3x3 with stride one
// Whether it is expected to beat direct convolution on this slice.
bool onednn_winograd_pays(const Problem& problem);

}  // namespace tandem::cpu
