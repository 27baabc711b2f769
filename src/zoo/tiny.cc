// Tiny networks that belong to no family of their own. The channel counts are awkward on purpose:
// few are multiples of 16, which is where slices of channels are easiest.
#include "zoo/layers.h"
#include "zoo/networks.h"
#include "zoo/resnet.h"

namespace tandem::zoo {

void tiny_linear(GraphBuilder& g) {
  Value x = g.input("input", {4, 40});
  x = g.relu(g.linear(x, "fc1", 36));
  x = g.sigmoid(g.linear(x, "fc2", 24));
  g.output(g.softmax(g.linear(x, "fc3", 10), -1), "probabilities");
}

void tiny_conv(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "conv1", {.out = 16, .kernel = 3, .pad = 1});
  x = g.max_pool(x, {.kernel = 2, .stride = 2});
  x = g.relu(g.conv(x, "conv2", {.out = 24, .kernel = 3, .stride = 2, .pad = 1, .bias = true}));
  x = g.average_pool(x, {.kernel = 2, .stride = 2});
  x = g.relu(g.conv(x, "conv3", {.out = 20, .bias = true}));
  g.output(g.linear(g.flatten(x), "fc", 10), "logits");
}

void tiny_residual(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "stem", {.out = 12, .kernel = 7, .stride = 2, .pad = 3});
  {
    const auto scope = g.scope("layer1");
    x = basic_block(g, x, 12, 1);
  }
  {
    const auto scope = g.scope("layer2");
    x = basic_block(g, x, 18, 2);
  }
  g.output(classify(g, x, "fc", 10), "logits");
}

void tiny_bottleneck(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "stem", {.out = 16, .kernel = 3, .stride = 2, .pad = 1});
  x = g.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  {
    const auto scope = g.scope("layer1");
    x = bottleneck_block(g, x, 6, 1);
  }
  {
    const auto scope = g.scope("layer2");
    x = bottleneck_block(g, x, 10, 2);
  }
  g.output(classify(g, x, "fc", 10), "logits");
}

}  // namespace tandem::zoo
