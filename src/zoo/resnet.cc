// ResNet (He et al., 2015), with the stride in the 3x3 convolution of a bottleneck as torchvision
// has it (version 1.5).
#include "zoo/resnet.h"

#include <span>
#include <string>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

using Block = Value (*)(GraphBuilder&, const Value&, int64_t channels, int64_t stride);

// The identity, or a projection where the shape changes.
Value shortcut(GraphBuilder& g, const Value& x, int64_t channels, int64_t stride) {
  if (x.dim(1) == channels && stride == 1) return x;
  return conv_bn(g, x, "downsample", {.out = channels, .stride = stride}, Activation::kNone);
}

void resnet(GraphBuilder& g, Block block, std::span<const int> depths) {
  Value x = g.input("input", {1, 3, 224, 224});
  x = conv_bn(g, x, "stem", {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = g.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  int64_t channels = 64;
  int layer = 1;
  for (const int depth : depths) {
    for (int i = 0; i < depth; ++i) {
      const auto scope = g.scope("layer" + std::to_string(layer) + "." + std::to_string(i));
      x = block(g, x, channels, layer > 1 && i == 0 ? 2 : 1);
    }
    channels *= 2;
    ++layer;
  }
  g.output(classify(g, x, "fc"), "logits");
}

}  // namespace

Value basic_block(GraphBuilder& g, const Value& x, int64_t channels, int64_t stride) {
  Value y = conv_bn(g, x, "conv1", {.out = channels, .kernel = 3, .stride = stride, .pad = 1});
  y = conv_bn(g, y, "conv2", {.out = channels, .kernel = 3, .pad = 1}, Activation::kNone);
  return g.relu(g.add(y, shortcut(g, x, channels, stride)));
}

Value bottleneck_block(GraphBuilder& g, const Value& x, int64_t channels, int64_t stride) {
  const int64_t out = 4 * channels;
  Value y = conv_bn(g, x, "conv1", {.out = channels});
  y = conv_bn(g, y, "conv2", {.out = channels, .kernel = 3, .stride = stride, .pad = 1});
  y = conv_bn(g, y, "conv3", {.out = out}, Activation::kNone);
  return g.relu(g.add(y, shortcut(g, x, out, stride)));
}

void resnet18(GraphBuilder& g) { resnet(g, basic_block, std::vector{2, 2, 2, 2}); }
void resnet34(GraphBuilder& g) { resnet(g, basic_block, std::vector{3, 4, 6, 3}); }
void resnet50(GraphBuilder& g) { resnet(g, bottleneck_block, std::vector{3, 4, 6, 3}); }

}  // namespace tandem::zoo
