// The residual blocks of ResNet, which HRNet is made of too.
#pragma once

#include "zoo/graph_builder.h"

namespace tandem::zoo {

// Two 3x3 convolutions around a shortcut.
Value basic_block(GraphBuilder& g, const Value& x, int64_t channels, int64_t stride);

// 1x1, 3x3 and 1x1 convolutions around a shortcut; the output has 4 * `channels` channels.
Value bottleneck_block(GraphBuilder& g, const Value& x, int64_t channels, int64_t stride);

}  // namespace tandem::zoo
