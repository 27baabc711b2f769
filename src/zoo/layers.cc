#include "zoo/layers.h"

namespace tandem::zoo {

Value activate(GraphBuilder& g, const Value& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return g.relu(x);
    case Activation::kRelu6:
      return g.clip(x, 0.0f, 6.0f);
    case Activation::kSilu:
      return silu(g, x);
  }
  return x;
}

Value silu(GraphBuilder& g, const Value& x) {
  Value y = g.mul(x, g.sigmoid(x));
  y.power = 0.4f * x.power;  // the factors are not independent
  return y;
}

Value gelu(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("gelu");
  const Value erf = g.erf(g.div(x, g.scalar(1.41421356237f)));
  const Value doubled = g.mul(x, g.add(erf, g.scalar(1.0f)));
  Value y = g.mul(doubled, g.scalar(0.5f));
  y.power = 0.43f * x.power;  // the factors are not independent
  return y;
}

Value conv_bn(GraphBuilder& g, const Value& x, std::string_view name, const ConvOptions& options,
              Activation activation, float epsilon) {
  const auto scope = g.scope(name);
  const Value y = g.batch_norm(g.conv(x, "conv", options), "bn", epsilon);
  return activate(g, y, activation);
}

Value classify(GraphBuilder& g, const Value& x, std::string_view name, int64_t classes) {
  return g.linear(g.flatten(g.global_average_pool(x)), name, classes);
}

}  // namespace tandem::zoo
