// Inception-ResNet v2 (Szegedy et al., 2016) as timm has it.
#include <string>
#include <string_view>

#include "zoo/inception.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

constexpr PoolOptions kReducingPool = {.kernel = 3, .stride = 2};

// x + scale * conv(branches): every residual block ends like this.
Value scaled_residual(GraphBuilder& g, const Value& x, const Value& branches, float scale) {
  const Value y = g.conv(branches, "conv2d", {.out = x.dim(1), .bias = true});
  return g.add(g.mul(y, g.scalar(scale)), x);
}

Value mixed_5b(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("mixed_5b");
  const Value one = inception_unit(g, x, "branch0", {.out = 96});
  Value five = inception_unit(g, x, "branch1_0", {.out = 48});
  five = inception_unit(g, five, "branch1_1", {.out = 64, .kernel = 5, .pad = 2});
  Value twice = inception_unit(g, x, "branch2_0", {.out = 64});
  twice = inception_unit(g, twice, "branch2_1", {.out = 96, .kernel = 3, .pad = 1});
  twice = inception_unit(g, twice, "branch2_2", {.out = 96, .kernel = 3, .pad = 1});
  Value pooled = g.average_pool(x, {.kernel = 3, .stride = 1, .pad = 1, .count_pad = false});
  pooled = inception_unit(g, pooled, "branch3", {.out = 64});
  return g.concat({one, five, twice, pooled}, 1);
}

// 35x35.
Value block35(GraphBuilder& g, const Value& x, std::string_view name) {
  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch0", {.out = 32});
  Value three = inception_unit(g, x, "branch1_0", {.out = 32});
  three = inception_unit(g, three, "branch1_1", {.out = 32, .kernel = 3, .pad = 1});
  Value twice = inception_unit(g, x, "branch2_0", {.out = 32});
  twice = inception_unit(g, twice, "branch2_1", {.out = 48, .kernel = 3, .pad = 1});
  twice = inception_unit(g, twice, "branch2_2", {.out = 64, .kernel = 3, .pad = 1});
  return g.relu(scaled_residual(g, x, g.concat({one, three, twice}, 1), 0.17f));
}

Value mixed_6a(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("mixed_6a");
  const Value three = inception_unit(g, x, "branch0", {.out = 384, .kernel = 3, .stride = 2});
  Value twice = inception_unit(g, x, "branch1_0", {.out = 256});
  twice = inception_unit(g, twice, "branch1_1", {.out = 256, .kernel = 3, .pad = 1});
  twice = inception_unit(g, twice, "branch1_2", {.out = 384, .kernel = 3, .stride = 2});
  return g.concat({three, twice, g.max_pool(x, kReducingPool)}, 1);
}

// 17x17.
Value block17(GraphBuilder& g, const Value& x, std::string_view name) {
  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch0", {.out = 192});
  Value seven = inception_unit(g, x, "branch1_0", {.out = 128});
  seven = inception_unit(g, seven, "branch1_1", {.out = 160, .kernel = {1, 7}, .pad = {0, 3}});
  seven = inception_unit(g, seven, "branch1_2", {.out = 192, .kernel = {7, 1}, .pad = {3, 0}});
  return g.relu(scaled_residual(g, x, g.concat({one, seven}, 1), 0.1f));
}

Value mixed_7a(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("mixed_7a");
  Value first = inception_unit(g, x, "branch0_0", {.out = 256});
  first = inception_unit(g, first, "branch0_1", {.out = 384, .kernel = 3, .stride = 2});
  Value second = inception_unit(g, x, "branch1_0", {.out = 256});
  second = inception_unit(g, second, "branch1_1", {.out = 288, .kernel = 3, .stride = 2});
  Value third = inception_unit(g, x, "branch2_0", {.out = 256});
  third = inception_unit(g, third, "branch2_1", {.out = 288, .kernel = 3, .pad = 1});
  third = inception_unit(g, third, "branch2_2", {.out = 320, .kernel = 3, .stride = 2});
  return g.concat({first, second, third, g.max_pool(x, kReducingPool)}, 1);
}

// 8x8, without the last ReLU.
Value block8(GraphBuilder& g, const Value& x, float scale) {
  const Value one = inception_unit(g, x, "branch0", {.out = 192});
  Value three = inception_unit(g, x, "branch1_0", {.out = 192});
  three = inception_unit(g, three, "branch1_1", {.out = 224, .kernel = {1, 3}, .pad = {0, 1}});
  three = inception_unit(g, three, "branch1_2", {.out = 256, .kernel = {3, 1}, .pad = {1, 0}});
  return scaled_residual(g, x, g.concat({one, three}, 1), scale);
}

}  // namespace

void inception_resnet_v2(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 299, 299});
  x = inception_unit(g, x, "conv2d_1a", {.out = 32, .kernel = 3, .stride = 2});
  x = inception_unit(g, x, "conv2d_2a", {.out = 32, .kernel = 3});
  x = inception_unit(g, x, "conv2d_2b", {.out = 64, .kernel = 3, .pad = 1});
  x = g.max_pool(x, kReducingPool);
  x = inception_unit(g, x, "conv2d_3b", {.out = 80});
  x = inception_unit(g, x, "conv2d_4a", {.out = 192, .kernel = 3});
  x = g.max_pool(x, kReducingPool);
  x = mixed_5b(g, x);
  for (int i = 0; i < 10; ++i) x = block35(g, x, "repeat." + std::to_string(i));
  x = mixed_6a(g, x);
  for (int i = 0; i < 20; ++i) x = block17(g, x, "repeat_1." + std::to_string(i));
  x = mixed_7a(g, x);
  for (int i = 0; i < 9; ++i) {
    const auto scope = g.scope("repeat_2." + std::to_string(i));
    x = g.relu(block8(g, x, 0.2f));
  }
  {
    const auto scope = g.scope("block8");
    x = block8(g, x, 1.0f);
  }
  x = inception_unit(g, x, "conv2d_7b", {.out = 1536});
  g.output(classify(g, x, "classif"), "logits");
}

}  // namespace tandem::zoo
