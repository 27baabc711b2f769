// Resize and its predecessor Upsample.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

using Mode = ResizeAttributes::Mode;
using Coordinates = ResizeAttributes::Coordinates;
using Nearest = ResizeAttributes::Nearest;

StatusOr<Mode> read_mode(Node& node) {
  const std::string mode = node.text("mode", "nearest");
  if (mode == "nearest") return Mode::kNearest;
  // "bilinear" is what early exporters wrote.
  if (mode == "linear" || mode == "bilinear") return Mode::kLinear;
  if (mode == "cubic") return Mode::kCubic;
  return unsupported("mode '" + mode + "'");
}

StatusOr<Coordinates> read_coordinates(Node& node) {
  const std::string mode = node.text("coordinate_transformation_mode", "half_pixel");
  if (mode == "half_pixel") return Coordinates::kHalfPixel;
  if (mode == "pytorch_half_pixel") return Coordinates::kPytorchHalfPixel;
  if (mode == "align_corners") return Coordinates::kAlignCorners;
  if (mode == "asymmetric") return Coordinates::kAsymmetric;
  return unsupported("coordinate_transformation_mode '" + mode + "'");
}

StatusOr<Nearest> read_nearest(Node& node) {
  const std::string mode = node.text("nearest_mode", "round_prefer_floor");
  if (mode == "round_prefer_floor") return Nearest::kRoundPreferFloor;
  if (mode == "round_prefer_ceil") return Nearest::kRoundPreferCeil;
  if (mode == "floor") return Nearest::kFloor;
  if (mode == "ceil") return Nearest::kCeil;
  return unsupported("nearest_mode '" + mode + "'");
}

// What becomes of each dimension.
struct Target {
  Dims dims;
  std::vector<float> scales;
};

StatusOr<Target> target_of_scales(const Dims& x, std::vector<float> scales) {
  Target target;
  for (size_t d = 0; d < x.size(); ++d) {
    const double extent = std::floor(static_cast<double>(x[d]) * scales[d]);
    if (!(extent >= 1) || extent > 1e9) {
      return invalid_argument("the scale of dimension " + std::to_string(d) + " is " +
                              std::to_string(scales[d]));
    }
    target.dims.push_back(static_cast<int64_t>(extent));
  }
  target.scales = std::move(scales);
  return target;
}

StatusOr<Target> target_of_sizes(const Dims& x, Dims sizes) {
  Target target;
  for (size_t d = 0; d < x.size(); ++d) {
    if (sizes[d] < 1) return invalid_argument("a size is " + std::to_string(sizes[d]));
    target.scales.push_back(
        static_cast<float>(static_cast<double>(sizes[d]) / static_cast<double>(x[d])));
  }
  target.dims = std::move(sizes);
  return target;
}

// `values`, which are given for `axes` only, for all dimensions.
template <typename T>
std::vector<T> spread(const std::vector<T>& values, const std::vector<int>& axes,
                      std::vector<T> otherwise) {
  for (size_t i = 0; i < axes.size(); ++i) otherwise[axes[i]] = values[i];
  return otherwise;
}

// The axes that scales and sizes are given for, in their order; all without the attribute.
StatusOr<std::vector<int>> read_axes(Node& node, int rank) {
  std::vector<int> axes;
  const auto listed = node.integers("axes");
  if (!listed) {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
    return axes;
  }
  TANDEM_RETURN_IF_ERROR(node.axes(*listed, rank).status());  // none may be named twice
  for (int64_t a : *listed) {
    TANDEM_ASSIGN_OR_RETURN(const int axis, node.axis(a, rank));
    axes.push_back(axis);
  }
  return axes;
}

// Exporters leave an input out by an empty tensor, too.
bool given(const Node& node, int index) {
  return index >= 0 && node.has(index) && element_count(node.value(index).dims) > 0;
}

StatusOr<Target> read_target(Node& node, int scales_index, int sizes_index) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int> axes, read_axes(node, x.rank()));
  if (given(node, sizes_index)) {
    if (node.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
      return unsupported("keep_aspect_ratio_policy");
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.integers_of(sizes_index));
    if (sizes.size() != axes.size()) return invalid_argument("it needs a size per dimension");
    return target_of_sizes(x.dims, spread(sizes, axes, x.dims));
  }
  std::vector<float> scales;
  if (given(node, scales_index)) {
    TANDEM_ASSIGN_OR_RETURN(scales, node.floats_of(scales_index));
  } else if (const auto stated = node.numbers("scales")) {
    scales = *stated;
  }
  if (scales.size() != axes.size()) return invalid_argument("it needs a scale per dimension");
  return target_of_scales(x.dims, spread(scales, axes, std::vector<float>(x.dims.size(), 1.0f)));
}

// The dimensions that change are the last two at most: the others can be seen as channels.
Status emit_resize(Node& node, ResizeAttributes resize, const Target& target) {
  const Value& x = node.value(0);
  const int rank = x.rank();
  const int channels = std::max(rank - 2, 0);
  for (int d = 0; d < channels; ++d) {
    if (target.dims[d] == x.dims[d] && target.scales[d] == 1) continue;
    return unsupported("it resizes dimension " + std::to_string(d) + " of " + to_string(x.dims) +
                       "; Tandem resizes the last two");
  }
  if (rank == 0) return invalid_argument("its input is a scalar");
  Dims image;
  Dims output;
  if (rank == 4) {
    image = x.dims;
    output = target.dims;
  } else {
    const int64_t depth = element_count(Dims(x.dims.begin(), x.dims.begin() + channels));
    const int64_t height = rank == 1 ? 1 : x.dims[rank - 2];
    image = {1, depth, height, x.dims[rank - 1]};
    output = {1, depth, rank == 1 ? 1 : target.dims[rank - 2], target.dims[rank - 1]};
  }
  resize.scale = {rank == 1 ? 1.0f : target.scales[rank - 2], target.scales[rank - 1]};
  TANDEM_ASSIGN_OR_RETURN(Value y, node.reshape(x, image, "image"));
  TANDEM_ASSIGN_OR_RETURN(y, node.emit(resize, {y}, output));
  TANDEM_ASSIGN_OR_RETURN(y, node.reshape(y, target.dims, "output"));
  node.set_output(0, std::move(y));
  return {};
}

// Up to opset 10: coordinates are asymmetric, and the nearest element is the one before.
Status lower_old(Node& node, int scales_index) {
  ResizeAttributes resize;
  TANDEM_ASSIGN_OR_RETURN(resize.mode, read_mode(node));
  if (resize.mode == Mode::kCubic) return unsupported("mode 'cubic' before opset 11");
  resize.coordinates = Coordinates::kAsymmetric;
  resize.nearest = Nearest::kFloor;
  TANDEM_ASSIGN_OR_RETURN(const Target target, read_target(node, scales_index, -1));
  return emit_resize(node, resize, target);
}

// Scales are an attribute in opset 7, an input in opset 9.
Status lower_upsample(Node& node) { return lower_old(node, 1); }

Status lower_resize(Node& node) {
  if (node.opset() < 11) return lower_old(node, 1);
  ResizeAttributes resize;
  TANDEM_ASSIGN_OR_RETURN(resize.mode, read_mode(node));
  TANDEM_ASSIGN_OR_RETURN(resize.coordinates, read_coordinates(node));
  TANDEM_ASSIGN_OR_RETURN(resize.nearest, read_nearest(node));
  resize.cubic_a = node.number("cubic_coeff_a", -0.75f);
  if (node.integer("antialias", 0) != 0) return unsupported("antialias");
  if (node.integer("exclude_outside", 0) != 0 && resize.mode != Mode::kNearest) {
    return unsupported("exclude_outside");
  }
  // Input 1 is the region of interest, for a coordinate mode that Tandem lacks.
  TANDEM_ASSIGN_OR_RETURN(const Target target, read_target(node, 2, 3));
  return emit_resize(node, resize, target);
}

constexpr Lowering kLowerings[] = {
    {"Resize", 19, lower_resize},
    {"Upsample", 10, lower_upsample},
};

}  // namespace

std::span<const Lowering> resize_lowerings() { return kLowerings; }

}  // namespace tandem
