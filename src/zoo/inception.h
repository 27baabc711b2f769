// What the Inception networks have in common.
#pragma once

#include <string_view>

#include "zoo/layers.h"

namespace tandem::zoo {

// Convolution, batch normalization with the epsilon of all Inception networks, and ReLU.
inline Value inception_unit(GraphBuilder& g, const Value& x, std::string_view name,
                            const ConvOptions& options) {
  return conv_bn(g, x, name, options, Activation::kRelu, 1e-3f);
}

}  // namespace tandem::zoo
