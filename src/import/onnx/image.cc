#include "import/onnx/image.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// Keeps sums and products of window arguments far from overflow.
constexpr int64_t kMaxWindow = int64_t{1} << 24;

StatusOr<Window::AutoPad> read_auto_pad(Node& node) {
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return Window::AutoPad::kNotSet;
  if (mode == "SAME_UPPER") return Window::AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") return Window::AutoPad::kSameLower;
  if (mode == "VALID") return Window::AutoPad::kValid;
  return invalid_argument("auto_pad '" + mode + "' does not exist");
}

Status check_range(std::string_view attribute, int64_t value, int64_t least) {
  if (value >= least && value <= kMaxWindow) return {};
  return invalid_argument(std::string(attribute) + " is " + std::to_string(value));
}

Status read_pads(Node& node, size_t spatial, Pads& pads) {
  const auto values = node.integers("pads");
  if (!values) return {};
  if (values->size() != 2 * spatial) {
    return invalid_argument("pads has " + std::to_string(values->size()) + " entries, not " +
                            std::to_string(2 * spatial));
  }
  for (int64_t pad : *values) {
    if (pad < 0) return unsupported("negative pads");
    TANDEM_RETURN_IF_ERROR(check_range("a pad", pad, 0));
  }
  pads = spatial == 1 ? Pads{0, (*values)[0], 0, (*values)[1]}
                      : Pads{(*values)[0], (*values)[1], (*values)[2], (*values)[3]};
  return {};
}

}  // namespace

StatusOr<Value> to_image(Node& node, const Value& x, std::string_view suffix) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3) {
    return unsupported("'" + x.name + "' has rank " + std::to_string(x.rank()) +
                       "; Tandem has one and two spatial dimensions");
  }
  return node.reshape(x, {x.dims[0], x.dims[1], 1, x.dims[2]}, suffix);
}

StatusOr<Value> from_image(Node& node, const Value& image, int rank) {
  if (rank == 4) return image;
  return node.reshape(image, {image.dims[0], image.dims[1], image.dims[3]}, "output");
}

StatusOr<Size2> read_size(Node& node, std::string_view attribute, int rank, int64_t otherwise,
                          int64_t least) {
  const size_t spatial = static_cast<size_t>(rank - 2);
  const auto values = node.integers(attribute);
  if (!values) return spatial == 1 ? Size2{least, otherwise} : Size2{otherwise, otherwise};
  if (values->size() != spatial) {
    return invalid_argument(std::string(attribute) + " has " + std::to_string(values->size()) +
                            " entries, not " + std::to_string(spatial));
  }
  for (int64_t value : *values) TANDEM_RETURN_IF_ERROR(check_range(attribute, value, least));
  return spatial == 1 ? Size2{least, (*values)[0]} : Size2{(*values)[0], (*values)[1]};
}

StatusOr<Window> read_window(Node& node, int rank, const Dims& kernel) {
  Window window;
  if (kernel.empty()) {
    if (!node.has_attribute("kernel_shape")) return invalid_argument("it has no kernel_shape");
    TANDEM_ASSIGN_OR_RETURN(window.kernel, read_size(node, "kernel_shape", rank, 1, 1));
  } else {
    window.kernel = {rank == 3 ? 1 : kernel[kernel.size() - 2], kernel.back()};
    TANDEM_RETURN_IF_ERROR(check_range("the kernel's height", window.kernel[0], 1));
    TANDEM_RETURN_IF_ERROR(check_range("the kernel's width", window.kernel[1], 1));
    if (node.has_attribute("kernel_shape")) {
      TANDEM_ASSIGN_OR_RETURN(const Size2 stated, read_size(node, "kernel_shape", rank, 1, 1));
      if (stated != window.kernel) {
        return invalid_argument("kernel_shape is not that of the weights");
      }
    }
  }
  TANDEM_ASSIGN_OR_RETURN(window.stride, read_size(node, "strides", rank, 1, 1));
  TANDEM_ASSIGN_OR_RETURN(window.dilation, read_size(node, "dilations", rank, 1, 1));
  TANDEM_ASSIGN_OR_RETURN(window.auto_pad, read_auto_pad(node));
  // Exporters write zeros beside auto_pad; it decides.
  if (window.auto_pad == Window::AutoPad::kNotSet) {
    TANDEM_RETURN_IF_ERROR(read_pads(node, static_cast<size_t>(rank - 2), window.pads));
  }
  return window;
}

int64_t window_extent(const Window& window, int direction) {
  return window.dilation[direction] * (window.kernel[direction] - 1) + 1;
}

void resolve_auto_pad(Window& window, const Dims& image) {
  if (window.auto_pad == Window::AutoPad::kNotSet || window.auto_pad == Window::AutoPad::kValid) {
    return;
  }
  for (int i = 0; i < 2; ++i) {
    const int64_t extent = image[2 + i];
    const int64_t positions = (extent + window.stride[i] - 1) / window.stride[i];
    const int64_t total = std::max<int64_t>(
        (positions - 1) * window.stride[i] + window_extent(window, i) - extent, 0);
    const int64_t less = total / 2;
    const bool upper = window.auto_pad == Window::AutoPad::kSameUpper;
    window.pads[i] = upper ? less : total - less;
    window.pads[2 + i] = upper ? total - less : less;
  }
}

}  // namespace tandem
