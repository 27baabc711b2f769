// Inception v4 (Szegedy et al., 2016) as timm has it.
#include <string>
#include <string_view>

#include "zoo/inception.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

constexpr ConvOptions row7(int64_t channels) {
  return {.out = channels, .kernel = {1, 7}, .pad = {0, 3}};
}
constexpr ConvOptions column7(int64_t channels) {
  return {.out = channels, .kernel = {7, 1}, .pad = {3, 0}};
}
constexpr ConvOptions square3(int64_t channels) { return {.out = channels, .kernel = 3, .pad = 1}; }
constexpr ConvOptions reduce3(int64_t channels) {
  return {.out = channels, .kernel = 3, .stride = 2};
}
constexpr PoolOptions kReducingPool = {.kernel = 3, .stride = 2};

Value pooled_branch(GraphBuilder& g, const Value& x, int64_t channels) {
  const Value y = g.average_pool(x, {.kernel = 3, .stride = 1, .pad = 1, .count_pad = false});
  return inception_unit(g, y, "branch_pool", {.out = channels});
}

Value stem(GraphBuilder& g, Value x) {
  const auto scope = g.scope("stem");
  x = inception_unit(g, x, "conv1", reduce3(32));
  x = inception_unit(g, x, "conv2", {.out = 32, .kernel = 3});
  x = inception_unit(g, x, "conv3", square3(64));
  x = g.concat({g.max_pool(x, kReducingPool), inception_unit(g, x, "mixed_3a", reduce3(96))}, 1);

  Value shallow = inception_unit(g, x, "mixed_4a_0_1", {.out = 64});
  shallow = inception_unit(g, shallow, "mixed_4a_0_2", {.out = 96, .kernel = 3});
  Value deep = inception_unit(g, x, "mixed_4a_1_1", {.out = 64});
  deep = inception_unit(g, deep, "mixed_4a_1_2", row7(64));
  deep = inception_unit(g, deep, "mixed_4a_1_3", column7(64));
  deep = inception_unit(g, deep, "mixed_4a_1_4", {.out = 96, .kernel = 3});
  x = g.concat({shallow, deep}, 1);

  return g.concat({inception_unit(g, x, "mixed_5a", reduce3(192)), g.max_pool(x, kReducingPool)},
                  1);
}

// 35x35.
Value block_a(GraphBuilder& g, const Value& x, std::string_view name) {
  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch0", {.out = 96});
  Value three = inception_unit(g, x, "branch1_1", {.out = 64});
  three = inception_unit(g, three, "branch1_2", square3(96));
  Value twice = inception_unit(g, x, "branch2_1", {.out = 64});
  twice = inception_unit(g, twice, "branch2_2", square3(96));
  twice = inception_unit(g, twice, "branch2_3", square3(96));
  return g.concat({one, three, twice, pooled_branch(g, x, 96)}, 1);
}

Value reduction_a(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("reduction_a");
  const Value three = inception_unit(g, x, "branch0", reduce3(384));
  Value twice = inception_unit(g, x, "branch1_1", {.out = 192});
  twice = inception_unit(g, twice, "branch1_2", square3(224));
  twice = inception_unit(g, twice, "branch1_3", reduce3(256));
  return g.concat({three, twice, g.max_pool(x, kReducingPool)}, 1);
}

// 17x17.
Value block_b(GraphBuilder& g, const Value& x, std::string_view name) {
  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch0", {.out = 384});
  Value seven = inception_unit(g, x, "branch1_1", {.out = 192});
  seven = inception_unit(g, seven, "branch1_2", row7(224));
  seven = inception_unit(g, seven, "branch1_3", column7(256));
  Value twice = inception_unit(g, x, "branch2_1", {.out = 192});
  twice = inception_unit(g, twice, "branch2_2", column7(192));
  twice = inception_unit(g, twice, "branch2_3", row7(224));
  twice = inception_unit(g, twice, "branch2_4", column7(224));
  twice = inception_unit(g, twice, "branch2_5", row7(256));
  return g.concat({one, seven, twice, pooled_branch(g, x, 128)}, 1);
}

Value reduction_b(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("reduction_b");
  Value three = inception_unit(g, x, "branch0_1", {.out = 192});
  three = inception_unit(g, three, "branch0_2", reduce3(192));
  Value seven = inception_unit(g, x, "branch1_1", {.out = 256});
  seven = inception_unit(g, seven, "branch1_2", row7(256));
  seven = inception_unit(g, seven, "branch1_3", column7(320));
  seven = inception_unit(g, seven, "branch1_4", reduce3(320));
  return g.concat({three, seven, g.max_pool(x, kReducingPool)}, 1);
}

// 8x8.
Value block_c(GraphBuilder& g, const Value& x, std::string_view name) {
  constexpr ConvOptions kRow = {.out = 256, .kernel = {1, 3}, .pad = {0, 1}};
  constexpr ConvOptions kColumn = {.out = 256, .kernel = {3, 1}, .pad = {1, 0}};
  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch0", {.out = 256});
  Value three = inception_unit(g, x, "branch1_0", {.out = 384});
  three = g.concat({inception_unit(g, three, "branch1_1a", kRow),
                    inception_unit(g, three, "branch1_1b", kColumn)},
                   1);
  Value twice = inception_unit(g, x, "branch2_0", {.out = 384});
  twice = inception_unit(g, twice, "branch2_1", {.out = 448, .kernel = {3, 1}, .pad = {1, 0}});
  twice = inception_unit(g, twice, "branch2_2", {.out = 512, .kernel = {1, 3}, .pad = {0, 1}});
  twice = g.concat({inception_unit(g, twice, "branch2_3a", kRow),
                    inception_unit(g, twice, "branch2_3b", kColumn)},
                   1);
  return g.concat({one, three, twice, pooled_branch(g, x, 256)}, 1);
}

}  // namespace

void inception_v4(GraphBuilder& g) {
  Value x = stem(g, g.input("input", {1, 3, 299, 299}));
  for (int i = 0; i < 4; ++i) x = block_a(g, x, "inception_a." + std::to_string(i));
  x = reduction_a(g, x);
  for (int i = 0; i < 7; ++i) x = block_b(g, x, "inception_b." + std::to_string(i));
  x = reduction_b(g, x);
  for (int i = 0; i < 3; ++i) x = block_c(g, x, "inception_c." + std::to_string(i));
  g.output(classify(g, x, "last_linear"), "logits");
}

}  // namespace tandem::zoo
