// Inception v3 (Szegedy et al., 2015) as torchvision has it, without the auxiliary classifier.
//
// The letters are those of the block classes that torchvision's users know.
#include <string_view>

#include "zoo/inception.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

Value pooled_branch(GraphBuilder& g, const Value& x, int64_t channels) {
  const Value y = g.average_pool(x, {.kernel = 3, .stride = 1, .pad = 1});
  return inception_unit(g, y, "branch_pool", {.out = channels});
}

// 35x35: 1x1, 5x5, double 3x3 and pooling.
Value block_a(GraphBuilder& g, const Value& x, std::string_view name, int64_t pool_channels) {
  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch1x1", {.out = 64});

  Value five = inception_unit(g, x, "branch5x5_1", {.out = 48});
  five = inception_unit(g, five, "branch5x5_2", {.out = 64, .kernel = 5, .pad = 2});

  Value twice = inception_unit(g, x, "branch3x3dbl_1", {.out = 64});
  twice = inception_unit(g, twice, "branch3x3dbl_2", {.out = 96, .kernel = 3, .pad = 1});
  twice = inception_unit(g, twice, "branch3x3dbl_3", {.out = 96, .kernel = 3, .pad = 1});

  return g.concat({one, five, twice, pooled_branch(g, x, pool_channels)}, 1);
}

// From 35x35 to 17x17.
Value block_b(GraphBuilder& g, const Value& x, std::string_view name) {
  const auto scope = g.scope(name);
  const Value three = inception_unit(g, x, "branch3x3", {.out = 384, .kernel = 3, .stride = 2});

  Value twice = inception_unit(g, x, "branch3x3dbl_1", {.out = 64});
  twice = inception_unit(g, twice, "branch3x3dbl_2", {.out = 96, .kernel = 3, .pad = 1});
  twice = inception_unit(g, twice, "branch3x3dbl_3", {.out = 96, .kernel = 3, .stride = 2});

  return g.concat({three, twice, g.max_pool(x, {.kernel = 3, .stride = 2})}, 1);
}

// 17x17: 7x7 convolutions as pairs of 1x7 and 7x1.
Value block_c(GraphBuilder& g, const Value& x, std::string_view name, int64_t channels) {
  const ConvOptions row = {.out = channels, .kernel = {1, 7}, .pad = {0, 3}};
  const ConvOptions column = {.out = channels, .kernel = {7, 1}, .pad = {3, 0}};
  ConvOptions last_row = row;
  last_row.out = 192;
  ConvOptions last_column = column;
  last_column.out = 192;

  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch1x1", {.out = 192});

  Value seven = inception_unit(g, x, "branch7x7_1", {.out = channels});
  seven = inception_unit(g, seven, "branch7x7_2", row);
  seven = inception_unit(g, seven, "branch7x7_3", last_column);

  Value twice = inception_unit(g, x, "branch7x7dbl_1", {.out = channels});
  twice = inception_unit(g, twice, "branch7x7dbl_2", column);
  twice = inception_unit(g, twice, "branch7x7dbl_3", row);
  twice = inception_unit(g, twice, "branch7x7dbl_4", column);
  twice = inception_unit(g, twice, "branch7x7dbl_5", last_row);

  return g.concat({one, seven, twice, pooled_branch(g, x, 192)}, 1);
}

// From 17x17 to 8x8.
Value block_d(GraphBuilder& g, const Value& x, std::string_view name) {
  const auto scope = g.scope(name);
  Value three = inception_unit(g, x, "branch3x3_1", {.out = 192});
  three = inception_unit(g, three, "branch3x3_2", {.out = 320, .kernel = 3, .stride = 2});

  Value seven = inception_unit(g, x, "branch7x7x3_1", {.out = 192});
  seven = inception_unit(g, seven, "branch7x7x3_2", {.out = 192, .kernel = {1, 7}, .pad = {0, 3}});
  seven = inception_unit(g, seven, "branch7x7x3_3", {.out = 192, .kernel = {7, 1}, .pad = {3, 0}});
  seven = inception_unit(g, seven, "branch7x7x3_4", {.out = 192, .kernel = 3, .stride = 2});

  return g.concat({three, seven, g.max_pool(x, {.kernel = 3, .stride = 2})}, 1);
}

// 8x8: branches that fork again into 1x3 and 3x1, hence concatenations of concatenations.
Value block_e(GraphBuilder& g, const Value& x, std::string_view name) {
  const ConvOptions row = {.out = 384, .kernel = {1, 3}, .pad = {0, 1}};
  const ConvOptions column = {.out = 384, .kernel = {3, 1}, .pad = {1, 0}};

  const auto scope = g.scope(name);
  const Value one = inception_unit(g, x, "branch1x1", {.out = 320});

  Value three = inception_unit(g, x, "branch3x3_1", {.out = 384});
  three = g.concat({inception_unit(g, three, "branch3x3_2a", row),
                    inception_unit(g, three, "branch3x3_2b", column)},
                   1);

  Value twice = inception_unit(g, x, "branch3x3dbl_1", {.out = 448});
  twice = inception_unit(g, twice, "branch3x3dbl_2", {.out = 384, .kernel = 3, .pad = 1});
  twice = g.concat({inception_unit(g, twice, "branch3x3dbl_3a", row),
                    inception_unit(g, twice, "branch3x3dbl_3b", column)},
                   1);

  return g.concat({one, three, twice, pooled_branch(g, x, 192)}, 1);
}

}  // namespace

void inception_v3(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 299, 299});
  x = inception_unit(g, x, "Conv2d_1a_3x3", {.out = 32, .kernel = 3, .stride = 2});
  x = inception_unit(g, x, "Conv2d_2a_3x3", {.out = 32, .kernel = 3});
  x = inception_unit(g, x, "Conv2d_2b_3x3", {.out = 64, .kernel = 3, .pad = 1});
  x = g.max_pool(x, {.kernel = 3, .stride = 2});
  x = inception_unit(g, x, "Conv2d_3b_1x1", {.out = 80});
  x = inception_unit(g, x, "Conv2d_4a_3x3", {.out = 192, .kernel = 3});
  x = g.max_pool(x, {.kernel = 3, .stride = 2});
  x = block_a(g, x, "Mixed_5b", 32);
  x = block_a(g, x, "Mixed_5c", 64);
  x = block_a(g, x, "Mixed_5d", 64);
  x = block_b(g, x, "Mixed_6a");
  x = block_c(g, x, "Mixed_6b", 128);
  x = block_c(g, x, "Mixed_6c", 160);
  x = block_c(g, x, "Mixed_6d", 160);
  x = block_c(g, x, "Mixed_6e", 192);
  x = block_d(g, x, "Mixed_7a");
  x = block_e(g, x, "Mixed_7b");
  x = block_e(g, x, "Mixed_7c");
  g.output(classify(g, x, "fc"), "logits");
}

void tiny_inception(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 31, 31});
  x = inception_unit(g, x, "stem", {.out = 12, .kernel = 3, .stride = 2});
  const Value one = inception_unit(g, x, "one", {.out = 8});
  const Value five = inception_unit(g, x, "five", {.out = 10, .kernel = 5, .pad = 2});
  Value forked = inception_unit(g, x, "forked", {.out = 6, .kernel = {1, 7}, .pad = {0, 3}});
  forked =
      g.concat({inception_unit(g, forked, "row", {.out = 6, .kernel = {1, 3}, .pad = {0, 1}}),
                inception_unit(g, forked, "column", {.out = 6, .kernel = {3, 1}, .pad = {1, 0}})},
               1);
  x = g.concat({one, five, forked, pooled_branch(g, x, 7)}, 1);
  x = g.concat({inception_unit(g, x, "reduced", {.out = 16, .kernel = 3, .stride = 2}),
                g.max_pool(x, {.kernel = 3, .stride = 2})},
               1);
  g.output(classify(g, x, "fc", 10), "logits");
}

}  // namespace tandem::zoo
