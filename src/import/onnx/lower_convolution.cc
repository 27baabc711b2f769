// Conv and ConvTranspose.
#include <algorithm>
#include <utility>

#include "import/onnx/image.h"
#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

// [M] as it broadcasts over the channels of an image.
StatusOr<Value> per_channel(Node& node, const Value& bias) {
  return node.reshape(bias, {element_count(bias.dims), 1, 1}, "bias");
}

struct Operands {
  Value x;  // rank 4
  Value w;  // rank 4
  std::vector<Value> list;
  bool has_bias = false;       // in the list
  bool add_bias_last = false;  // computed by the model: an addition of its own
};

StatusOr<Operands> read_operands(Node& node) {
  Operands operands;
  TANDEM_ASSIGN_OR_RETURN(operands.x, to_image(node, node.value(0), "input"));
  if (!node.value(1).constant) {
    return unsupported("its weights '" + node.value(1).name +
                       "' must be known when the model is loaded");
  }
  if (node.value(1).rank() != node.value(0).rank()) {
    return invalid_argument("its weights are " + to_string(node.value(1).dims) +
                            " for an input of " + to_string(node.value(0).dims));
  }
  TANDEM_ASSIGN_OR_RETURN(operands.w, to_image(node, node.value(1), "weights"));
  operands.list = {operands.x, operands.w};
  operands.has_bias = node.has(2) && node.value(2).constant;
  operands.add_bias_last = node.has(2) && !operands.has_bias;
  if (operands.has_bias) operands.list.push_back(node.value(2));
  return operands;
}

Status finish(Node& node, Value y, const Operands& operands) {
  if (operands.add_bias_last) {
    TANDEM_ASSIGN_OR_RETURN(const Value bias, per_channel(node, node.value(2)));
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(BinaryAttributes{}, {y, bias}, {}, "add_bias"));
  }
  TANDEM_ASSIGN_OR_RETURN(y, from_image(node, y, node.value(0).rank()));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_conv(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Operands operands, read_operands(node));
  TANDEM_ASSIGN_OR_RETURN(Window window, read_window(node, node.value(0).rank(), operands.w.dims));
  resolve_auto_pad(window, operands.x.dims);
  ConvAttributes conv;
  conv.kernel = window.kernel;
  conv.stride = window.stride;
  conv.dilation = window.dilation;
  conv.pads = window.pads;
  conv.groups = node.integer("group", 1);
  conv.has_bias = operands.has_bias;
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(conv, operands.list));
  return finish(node, std::move(y), operands);
}

// Pads and output padding that make the output as large as `wanted`.
void fit_output(const Window& window, const Dims& image, const Size2& wanted,
                ConvTransposeAttributes& conv) {
  for (int i = 0; i < 2; ++i) {
    const int64_t total = window.stride[i] * (image[2 + i] - 1) + conv.output_padding[i] +
                          window_extent(window, i) - wanted[i];
    if (total < 0) {
      conv.output_padding[i] -= total;
      continue;
    }
    const int64_t less = total / 2;
    const bool upper = window.auto_pad == Window::AutoPad::kSameUpper;
    conv.pads[i] = upper ? less : total - less;
    conv.pads[2 + i] = upper ? total - less : less;
  }
}

Status lower_conv_transpose(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Operands operands, read_operands(node));
  const int rank = node.value(0).rank();
  TANDEM_ASSIGN_OR_RETURN(const Window window, read_window(node, rank, operands.w.dims));
  ConvTransposeAttributes conv;
  conv.kernel = window.kernel;
  conv.stride = window.stride;
  conv.dilation = window.dilation;
  conv.pads = window.pads;
  conv.groups = node.integer("group", 1);
  conv.has_bias = operands.has_bias;
  TANDEM_ASSIGN_OR_RETURN(conv.output_padding, read_size(node, "output_padding", rank, 0, 0));
  if (node.has_attribute("output_shape")) {
    TANDEM_ASSIGN_OR_RETURN(Size2 wanted, read_size(node, "output_shape", rank, 1, 1));
    fit_output(window, operands.x.dims, wanted, conv);
  } else if (window.auto_pad == Window::AutoPad::kSameUpper ||
             window.auto_pad == Window::AutoPad::kSameLower) {
    fit_output(window, operands.x.dims,
               {operands.x.dims[2] * window.stride[0], operands.x.dims[3] * window.stride[1]},
               conv);
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(conv, operands.list));
  return finish(node, std::move(y), operands);
}

constexpr Lowering kLowerings[] = {
    {"Conv", 22, lower_conv, 2},
    {"ConvTranspose", 22, lower_conv_transpose, 2},
};

}  // namespace

std::span<const Lowering> convolution_lowerings() { return kLowerings; }

}  // namespace tandem
