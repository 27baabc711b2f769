// ShuffleNet v2 (Ma et al., 2018), as torchvision has it.
#include <string>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

// Interleaves the two halves of the channels.
Value channel_shuffle(GraphBuilder& g, const Value& x) {
  const int64_t batch = x.dim(0), half = x.dim(1) / 2, height = x.dim(2), width = x.dim(3);
  const Value halves = g.reshape(x, {batch, 2, half, height, width});
  return g.reshape(g.transpose(halves, {0, 2, 1, 3, 4}), {batch, 2 * half, height, width});
}

Value depthwise(GraphBuilder& g, const Value& x, const char* name, int64_t stride) {
  const int64_t channels = x.dim(1);
  return conv_bn(g, x, name,
                 {.out = channels, .kernel = 3, .stride = stride, .pad = 1, .groups = channels},
                 Activation::kNone);
}

Value main_branch(GraphBuilder& g, const Value& x, int64_t channels, int64_t stride) {
  Value y = conv_bn(g, x, "branch2_1", {.out = channels});
  y = depthwise(g, y, "branch2_2", stride);
  return conv_bn(g, y, "branch2_3", {.out = channels});
}

// Half of the channels pass through untouched.
Value unit(GraphBuilder& g, const Value& x) {
  const int64_t half = x.dim(1) / 2;
  const auto parts = g.split(x, {half, half}, 1);
  return channel_shuffle(g, g.concat({parts[0], main_branch(g, parts[1], half, 1)}, 1));
}

Value downsampling_unit(GraphBuilder& g, const Value& x, int64_t channels) {
  Value side = depthwise(g, x, "branch1_1", 2);
  side = conv_bn(g, side, "branch1_2", {.out = channels / 2});
  return channel_shuffle(g, g.concat({side, main_branch(g, x, channels / 2, 2)}, 1));
}

Value stage(GraphBuilder& g, Value x, const std::string& name, int64_t channels, int depth) {
  for (int i = 0; i < depth; ++i) {
    const auto scope = g.scope(name + "." + std::to_string(i));
    x = i == 0 ? downsampling_unit(g, x, channels) : unit(g, x);
  }
  return x;
}

}  // namespace

void shufflenet_v2_x1_0(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 224, 224});
  x = conv_bn(g, x, "conv1", {.out = 24, .kernel = 3, .stride = 2, .pad = 1});
  x = g.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  x = stage(g, x, "stage2", 116, 4);
  x = stage(g, x, "stage3", 232, 8);
  x = stage(g, x, "stage4", 464, 4);
  x = conv_bn(g, x, "conv5", {.out = 1024});
  x = g.reduce_mean(x, {2, 3}, /*keep_dims=*/false);
  g.output(g.linear(x, "fc", 1000), "logits");
}

void tiny_shufflenet(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "conv1", {.out = 10, .kernel = 3, .stride = 2, .pad = 1});
  x = stage(g, x, "stage2", 20, 2);
  x = g.reduce_mean(x, {2, 3}, /*keep_dims=*/false);
  g.output(g.linear(x, "fc", 10), "logits");
}

}  // namespace tandem::zoo
