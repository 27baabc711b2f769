// SqueezeNet 1.1 (Iandola et al., 2016), whose classifier is a convolution.
#include <string_view>

#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

Value fire(GraphBuilder& g, const Value& x, std::string_view name, int64_t squeeze,
           int64_t expand) {
  const auto scope = g.scope(name);
  const Value narrow = g.relu(g.conv(x, "squeeze", {.out = squeeze, .bias = true}));
  const Value one = g.relu(g.conv(narrow, "expand1x1", {.out = expand, .bias = true}));
  const Value three =
      g.relu(g.conv(narrow, "expand3x3", {.out = expand, .kernel = 3, .pad = 1, .bias = true}));
  return g.concat({one, three}, 1);
}

Value classify_by_convolution(GraphBuilder& g, const Value& x, int64_t classes) {
  const Value scores = g.relu(g.conv(x, "classifier", {.out = classes, .bias = true}));
  return g.flatten(g.global_average_pool(scores));
}

}  // namespace

void squeezenet1_1(GraphBuilder& g) {
  constexpr PoolOptions kPool = {.kernel = 3, .stride = 2, .ceil = true};
  Value x = g.input("input", {1, 3, 224, 224});
  x = g.relu(g.conv(x, "features.0", {.out = 64, .kernel = 3, .stride = 2, .bias = true}));
  x = g.max_pool(x, kPool);
  x = fire(g, x, "features.3", 16, 64);
  x = fire(g, x, "features.4", 16, 64);
  x = g.max_pool(x, kPool);
  x = fire(g, x, "features.6", 32, 128);
  x = fire(g, x, "features.7", 32, 128);
  x = g.max_pool(x, kPool);
  x = fire(g, x, "features.9", 48, 192);
  x = fire(g, x, "features.10", 48, 192);
  x = fire(g, x, "features.11", 64, 256);
  x = fire(g, x, "features.12", 64, 256);
  g.output(classify_by_convolution(g, x, 1000), "logits");
}

void tiny_concat(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 24, 20});
  x = g.relu(g.conv(x, "stem", {.out = 18, .kernel = 3, .pad = 1, .bias = true}));
  // 24x20 to 12x10, of which the last windows reach over the border.
  x = g.max_pool(x, {.kernel = 3, .stride = 2, .ceil = true});
  x = fire(g, x, "fire1", 6, 20);
  x = g.concat({x, fire(g, x, "fire2", 5, 9)}, 1);
  g.output(classify_by_convolution(g, x, 10), "logits");
}

}  // namespace tandem::zoo
