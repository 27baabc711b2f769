// What convolutions and poolings have in common: tensors viewed as images, and sliding windows.
#pragma once

#include "import/onnx/node.h"

namespace tandem {

// The graph's operators on images have rank 4. [N, C, W] becomes [N, C, 1, W], other ranks are
// kUnsupported.
StatusOr<Value> to_image(Node& node, const Value& x, std::string_view suffix);
// Back to what the model has where x had rank `rank`.
StatusOr<Value> from_image(Node& node, const Value& image, int rank);

struct Window {
  enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

  Size2 kernel{1, 1};
  Size2 stride{1, 1};
  Size2 dilation{1, 1};
  Pads pads{0, 0, 0, 0};
  AutoPad auto_pad = AutoPad::kNotSet;
};

// The attributes auto_pad, strides, dilations and pads of a node on images of `rank` 3 or 4.
// `kernel`: the last extents of the weights, empty where kernel_shape has to say it.
StatusOr<Window> read_window(Node& node, int rank, const Dims& kernel);

// An attribute with an entry per spatial dimension, [height, width] for the graph.
StatusOr<Size2> read_size(Node& node, std::string_view attribute, int rank, int64_t otherwise,
                          int64_t least);

// Extent covered by the window.
int64_t window_extent(const Window& window, int direction);

// Puts what auto_pad asks for into window.pads.
void resolve_auto_pad(Window& window, const Dims& image);

}  // namespace tandem
