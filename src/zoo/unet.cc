// U-Net (Ronneberger et al., 2015), with padded convolutions and batch normalization as today's
// implementations have them, for two classes.
#include <string>
#include <vector>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

Value double_conv(GraphBuilder& g, const Value& x, int64_t channels) {
  const Value y = conv_bn(g, x, "conv1", {.out = channels, .kernel = 3, .pad = 1});
  return conv_bn(g, y, "conv2", {.out = channels, .kernel = 3, .pad = 1});
}

void unet_of_depth(GraphBuilder& g, int64_t image, int64_t channels, int depth) {
  Value x = g.input("input", {1, 3, image, image});
  std::vector<Value> skips;
  for (int level = 0; level <= depth; ++level) {
    const auto scope = g.scope("down" + std::to_string(level));
    if (level > 0) {
      skips.push_back(x);
      x = g.max_pool(x, {.kernel = 2, .stride = 2});
    }
    x = double_conv(g, x, channels << level);
  }
  for (int level = depth - 1; level >= 0; --level) {
    const auto scope = g.scope("up" + std::to_string(level));
    x = g.conv_transpose(x, "up",
                         {.out = channels << level, .kernel = 2, .stride = 2, .bias = true});
    x = double_conv(g, g.concat({skips.back(), x}, 1), channels << level);
    skips.pop_back();
  }
  g.output(g.conv(x, "outc", {.out = 2, .bias = true}), "logits");
}

}  // namespace

void unet(GraphBuilder& g) { unet_of_depth(g, 256, 64, 4); }
void tiny_unet(GraphBuilder& g) { unet_of_depth(g, 16, 6, 2); }

}  // namespace tandem::zoo
