// The implementations of this folder: portable loops. Together they do every operator kind.
#pragma once

#include "lane/cpu/kernel.h"

namespace tandem::cpu {

const Implementation& tiled_gemm();         // kConv, kConvTranspose, kLinear
const Implementation& batched_gemm();       // kMatMul
const Implementation& depthwise_loops();    // kConv with groups == C == M
const Implementation& pool_loops();         // kPool
const Implementation& row_loops();          // kSoftmax, kLayerNorm
const Implementation& reduce_loops();       // kReduce
const Implementation& elementwise_loops();  // kUnary, kBinary
const Implementation& copy_loops();         // kConcat, kCopy, kReshape, kGather, kPad
const Implementation& resize_loops();       // kResize

}  // namespace tandem::cpu
