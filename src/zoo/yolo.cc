// YOLOv5n (Jocher et al., 2020): a CSP backbone, a pyramid up and down, and decoded boxes in
// pixels, as its exporter writes them.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

constexpr int64_t kAnchors = 3;

Value unit(GraphBuilder& g, const Value& x, std::string_view name, int64_t channels,
           int64_t kernel = 1, int64_t stride = 1) {
  return conv_bn(g, x, name,
                 {.out = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2},
                 Activation::kSilu, 1e-3f);
}

enum class Shortcut { kNo, kYes };

// A cross stage partial block: one half of the channels takes the way through `depth` bottlenecks.
Value csp_block(GraphBuilder& g, const Value& x, std::string_view name, int64_t channels, int depth,
                Shortcut shortcut) {
  const auto scope = g.scope(name);
  Value deep = unit(g, x, "cv1", channels / 2);
  for (int i = 0; i < depth; ++i) {
    const auto bottleneck = g.scope("m." + std::to_string(i));
    const Value y = unit(g, unit(g, deep, "cv1", channels / 2), "cv2", channels / 2, 3);
    deep = shortcut == Shortcut::kYes ? g.add(deep, y) : y;
  }
  return unit(g, g.concat({deep, unit(g, x, "cv2", channels / 2)}, 1), "cv3", channels);
}

// Poolings one behind the other, which together see 5x5, 9x9 and 13x13.
Value pyramid_pooling(GraphBuilder& g, const Value& x, std::string_view name, int64_t channels) {
  constexpr PoolOptions kPool = {.kernel = 5, .stride = 1, .pad = 2};
  const auto scope = g.scope(name);
  const Value y = unit(g, x, "cv1", x.dim(1) / 2);
  const Value y5 = g.max_pool(y, kPool);
  const Value y9 = g.max_pool(y5, kPool);
  const Value y13 = g.max_pool(y9, kPool);
  return unit(g, g.concat({y, y5, y9, y13}, 1), "cv2", channels);
}

// One level of the pyramid, and the sizes of its anchor boxes in pixels.
struct Level {
  Value features;
  std::array<float, 2 * kAnchors> anchors;
};

// One row for each anchor of each cell: centre, size, objectness and class scores.
Value decode(GraphBuilder& g, const Level& level, std::string_view name, int64_t image,
             int64_t classes) {
  const auto scope = g.scope(name);
  const int64_t outputs = 5 + classes;
  Value x = g.conv(level.features, "conv", {.out = kAnchors * outputs, .bias = true});
  const int64_t height = x.dim(2), width = x.dim(3);
  x = g.transpose(g.reshape(x, {1, kAnchors, outputs, height, width}), {0, 1, 3, 4, 2});
  const auto parts = g.split(g.sigmoid(x), {2, 2, classes + 1}, -1);

  std::vector<float> corners;
  for (int64_t anchor = 0; anchor < kAnchors; ++anchor) {
    for (int64_t row = 0; row < height; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        corners.push_back(static_cast<float>(column) - 0.5f);
        corners.push_back(static_cast<float>(row) - 0.5f);
      }
    }
  }
  const Value grid = g.floats(corners, {1, kAnchors, height, width, 2});
  const Value stride = g.scalar(static_cast<float>(image) / static_cast<float>(width));
  const Value centre = g.mul(g.add(g.mul(parts[0], g.scalar(2.0f)), grid), stride);
  const Value growth = g.pow(g.mul(parts[1], g.scalar(2.0f)), g.scalar(2.0f));
  const Value size = g.mul(growth, g.floats(level.anchors, {1, kAnchors, 1, 1, 2}));
  return g.reshape(g.concat({centre, size, parts[2]}, -1), {1, kAnchors * height * width, outputs});
}

void detect(GraphBuilder& g, const std::vector<Level>& levels, int64_t image, int64_t classes) {
  std::vector<Value> boxes;
  for (size_t i = 0; i < levels.size(); ++i) {
    boxes.push_back(decode(g, levels[i], "detect." + std::to_string(i), image, classes));
  }
  g.output(g.concat(boxes, 1), "boxes");
}

}  // namespace

void yolov5n(GraphBuilder& g) {
  constexpr int64_t kImage = 640;
  Value x = g.input("images", {1, 3, kImage, kImage});
  x = conv_bn(g, x, "stem", {.out = 16, .kernel = 6, .stride = 2, .pad = 2}, Activation::kSilu,
              1e-3f);
  x = csp_block(g, unit(g, x, "down2", 32, 3, 2), "csp2", 32, 1, Shortcut::kYes);
  x = csp_block(g, unit(g, x, "down3", 64, 3, 2), "csp3", 64, 2, Shortcut::kYes);
  const Value p3 = x;
  x = csp_block(g, unit(g, x, "down4", 128, 3, 2), "csp4", 128, 3, Shortcut::kYes);
  const Value p4 = x;
  x = csp_block(g, unit(g, x, "down5", 256, 3, 2), "csp5", 256, 1, Shortcut::kYes);
  x = pyramid_pooling(g, x, "sppf", 256);

  const Value lateral5 = unit(g, x, "lateral5", 128);
  x = g.concat({g.upsample_nearest(lateral5, 2), p4}, 1);
  const Value lateral4 = unit(g, csp_block(g, x, "up4", 128, 1, Shortcut::kNo), "lateral4", 64);
  x = g.concat({g.upsample_nearest(lateral4, 2), p3}, 1);
  const Value out3 = csp_block(g, x, "out3", 64, 1, Shortcut::kNo);
  x = g.concat({unit(g, out3, "to4", 64, 3, 2), lateral4}, 1);
  const Value out4 = csp_block(g, x, "out4", 128, 1, Shortcut::kNo);
  x = g.concat({unit(g, out4, "to5", 128, 3, 2), lateral5}, 1);
  const Value out5 = csp_block(g, x, "out5", 256, 1, Shortcut::kNo);
  detect(g,
         {{out3, {10, 13, 16, 30, 33, 23}},
          {out4, {30, 61, 62, 45, 59, 119}},
          {out5, {116, 90, 156, 198, 373, 326}}},
         kImage, 80);
}

void tiny_yolo(GraphBuilder& g) {
  constexpr int64_t kImage = 32;
  Value x = g.input("images", {1, 3, kImage, kImage});
  x = unit(g, x, "stem", 8, 3, 2);
  const Value fine = csp_block(g, unit(g, x, "down", 12, 3, 2), "csp", 12, 1, Shortcut::kYes);
  x = pyramid_pooling(g, unit(g, fine, "down2", 16, 3, 2), "sppf", 16);
  const Value lateral = unit(g, x, "lateral", 12);
  const Value joined = g.concat({g.upsample_nearest(lateral, 2), fine}, 1);
  const Value out = csp_block(g, joined, "out", 12, 1, Shortcut::kNo);
  detect(g, {{out, {4, 5, 6, 12, 13, 9}}, {x, {12, 10, 16, 20, 28, 24}}}, kImage, 4);
}

}  // namespace tandem::zoo
