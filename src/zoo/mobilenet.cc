// MobileNet v2 (Sandler et al., 2018).
#include <string>
#include <string_view>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

Value inverted_residual(GraphBuilder& g, const Value& x, std::string_view name, int64_t channels,
                        int64_t stride, int64_t expansion) {
  const auto scope = g.scope(name);
  Value y = x;
  const int64_t wide = expansion * x.dim(1);
  if (expansion > 1) y = conv_bn(g, y, "expand", {.out = wide}, Activation::kRelu6);
  y = conv_bn(g, y, "depthwise",
              {.out = wide, .kernel = 3, .stride = stride, .pad = 1, .groups = wide},
              Activation::kRelu6);
  y = conv_bn(g, y, "project", {.out = channels}, Activation::kNone);
  return stride == 1 && x.dim(1) == channels ? g.add(x, y) : y;
}

}  // namespace

void mobilenet_v2(GraphBuilder& g) {
  constexpr struct {
    int64_t expansion, channels;
    int depth;
    int64_t stride;
  } kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

  Value x = g.input("input", {1, 3, 224, 224});
  x = conv_bn(g, x, "features.0", {.out = 32, .kernel = 3, .stride = 2, .pad = 1},
              Activation::kRelu6);
  int number = 1;
  for (const auto& stage : kStages) {
    for (int i = 0; i < stage.depth; ++i) {
      x = inverted_residual(g, x, "features." + std::to_string(number++), stage.channels,
                            i == 0 ? stage.stride : 1, stage.expansion);
    }
  }
  x = conv_bn(g, x, "features.18", {.out = 1280}, Activation::kRelu6);
  g.output(classify(g, x, "classifier"), "logits");
}

void tiny_mobilenet(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "stem", {.out = 8, .kernel = 3, .stride = 2, .pad = 1}, Activation::kRelu6);
  x = inverted_residual(g, x, "block0", 6, 1, 1);
  x = inverted_residual(g, x, "block1", 12, 2, 4);
  x = inverted_residual(g, x, "block2", 12, 1, 4);
  x = conv_bn(g, x, "head", {.out = 20}, Activation::kRelu6);
  g.output(classify(g, x, "classifier", 10), "logits");
}

}  // namespace tandem::zoo
