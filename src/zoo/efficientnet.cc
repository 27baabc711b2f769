// EfficientNet (Tan and Le, 2019), as torchvision has it.
#include <string>
#include <string_view>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

// Scales every channel by a number between 0 and 1 that depends on the means of all channels.
Value squeeze_excite(GraphBuilder& g, const Value& x, int64_t squeezed) {
  const auto scope = g.scope("se");
  Value s = g.global_average_pool(x);
  s = silu(g, g.conv(s, "fc1", {.out = squeezed, .bias = true}));
  s = g.sigmoid(g.conv(s, "fc2", {.out = x.dim(1), .bias = true}));
  return g.mul(s, x);
}

struct BlockOptions {
  int64_t expansion;
  int64_t kernel;
  int64_t stride;
  int64_t channels;
};

Value mb_conv(GraphBuilder& g, const Value& x, std::string_view name, const BlockOptions& o) {
  const auto scope = g.scope(name);
  const int64_t wide = o.expansion * x.dim(1);
  Value y = x;
  if (o.expansion > 1) y = conv_bn(g, y, "expand", {.out = wide}, Activation::kSilu);
  y = conv_bn(
      g, y, "depthwise",
      {.out = wide, .kernel = o.kernel, .stride = o.stride, .pad = o.kernel / 2, .groups = wide},
      Activation::kSilu);
  y = squeeze_excite(g, y, x.dim(1) / 4);
  y = conv_bn(g, y, "project", {.out = o.channels}, Activation::kNone);
  return o.stride == 1 && x.dim(1) == o.channels ? g.add(y, x) : y;
}

}  // namespace

void efficientnet_b0(GraphBuilder& g) {
  constexpr struct {
    BlockOptions first;
    int depth;
  } kStages[] = {{{1, 3, 1, 16}, 1},  {{6, 3, 2, 24}, 2},  {{6, 5, 2, 40}, 2}, {{6, 3, 2, 80}, 3},
                 {{6, 5, 1, 112}, 3}, {{6, 5, 2, 192}, 4}, {{6, 3, 1, 320}, 1}};

  Value x = g.input("input", {1, 3, 224, 224});
  x = conv_bn(g, x, "features.0", {.out = 32, .kernel = 3, .stride = 2, .pad = 1},
              Activation::kSilu);
  int number = 1;
  for (const auto& stage : kStages) {
    const auto scope = g.scope("features." + std::to_string(number++));
    BlockOptions options = stage.first;
    for (int i = 0; i < stage.depth; ++i) {
      x = mb_conv(g, x, std::to_string(i), options);
      options.stride = 1;
    }
  }
  x = conv_bn(g, x, "features.8", {.out = 1280}, Activation::kSilu);
  g.output(classify(g, x, "classifier"), "logits");
}

void tiny_efficientnet(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "stem", {.out = 8, .kernel = 3, .stride = 2, .pad = 1}, Activation::kSilu);
  x = mb_conv(g, x, "block0", {.expansion = 1, .kernel = 3, .stride = 1, .channels = 8});
  x = mb_conv(g, x, "block1", {.expansion = 4, .kernel = 5, .stride = 2, .channels = 12});
  g.output(classify(g, x, "classifier", 10), "logits");
}

}  // namespace tandem::zoo
