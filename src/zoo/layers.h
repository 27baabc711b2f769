// Compositions of operators that several families of networks share.
#pragma once

#include <string_view>

#include "zoo/graph_builder.h"

namespace tandem::zoo {

enum class Activation { kNone, kRelu, kRelu6, kSilu };

Value activate(GraphBuilder& g, const Value& x, Activation activation);

// x * sigmoid(x).
Value silu(GraphBuilder& g, const Value& x);

// x * (1 + erf(x / sqrt 2)) / 2, in the five operators that opsets before 20 need.
Value gelu(GraphBuilder& g, const Value& x);

// A convolution, without bias, then batch normalization as an operator of its own.
Value conv_bn(GraphBuilder& g, const Value& x, std::string_view name, const ConvOptions& options,
              Activation activation = Activation::kRelu, float epsilon = 1e-5f);

// Global average pooling and one linear layer.
Value classify(GraphBuilder& g, const Value& x, std::string_view name, int64_t classes = 1000);

}  // namespace tandem::zoo
