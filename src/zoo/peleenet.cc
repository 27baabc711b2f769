// PeleeNet (Wang et al., 2018): dense blocks whose layers look through two windows at once.
#include <string>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

Value stem(GraphBuilder& g, const Value& image) {
  const auto scope = g.scope("stem");
  const Value x = conv_bn(g, image, "stem1", {.out = 32, .kernel = 3, .stride = 2, .pad = 1});
  Value deep = conv_bn(g, x, "stem2a", {.out = 16});
  deep = conv_bn(g, deep, "stem2b", {.out = 32, .kernel = 3, .stride = 2, .pad = 1});
  const Value pooled = g.max_pool(x, {.kernel = 2, .stride = 2});
  return conv_bn(g, g.concat({pooled, deep}, 1), "stem3", {.out = 32});
}

// Adds 32 channels to `x`: 16 that see 3x3 and 16 that see 5x5.
Value dense_layer(GraphBuilder& g, const Value& x, int64_t bottleneck) {
  constexpr ConvOptions kThree = {.out = 16, .kernel = 3, .pad = 1};
  Value near = conv_bn(g, x, "branch1a", {.out = bottleneck});
  near = conv_bn(g, near, "branch1b", kThree);
  Value far = conv_bn(g, x, "branch2a", {.out = bottleneck});
  far = conv_bn(g, far, "branch2b", kThree);
  far = conv_bn(g, far, "branch2c", kThree);
  return g.concat({x, near, far}, 1);
}

}  // namespace

void peleenet(GraphBuilder& g) {
  constexpr struct {
    int depth;
    int64_t bottleneck;
    bool pool;
  } kStages[] = {{3, 16, true}, {4, 32, true}, {8, 64, true}, {6, 64, false}};

  Value x = stem(g, g.input("input", {1, 3, 224, 224}));
  int number = 1;
  for (const auto& stage : kStages) {
    const auto stage_scope = g.scope("stage" + std::to_string(number++));
    for (int i = 1; i <= stage.depth; ++i) {
      const auto scope = g.scope("dense" + std::to_string(i));
      x = dense_layer(g, x, stage.bottleneck);
    }
    x = conv_bn(g, x, "transition", {.out = x.dim(1)});
    if (stage.pool) x = g.average_pool(x, {.kernel = 2, .stride = 2});
  }
  g.output(classify(g, x, "classifier"), "logits");
}

}  // namespace tandem::zoo
