#include "predict/phone_features.h"

#include <algorithm>
#include <cmath>

namespace tandem::predict {
namespace {

// Work-groups are at most this deep, and have at most so many work-items.
constexpr int kDeepestGroup = 16;
constexpr int kDeepestAdrenoGroup = 64;
constexpr double kLargestGroup = 256;
constexpr double kItemsOfWave = 64;

double divided_up(double value, double by) { return std::ceil(value / by); }

bool has_weights(Family family) {
  return family == Family::kConvolution || family == Family::kGroupedConvolution ||
         family == Family::kDepthwise || family == Family::kLinear;
}

// Inputs that each output is summed over, in one position of the window.
double summed_channels(const PhoneOperator& op) {
  const bool dense = has_weights(op.family) && op.family != Family::kDepthwise;
  return dense ? op.input_channels / op.groups : 1;
}

double operations(const PhoneOperator& op) {
  const double outputs = op.output_size * op.output_size * op.output_channels;
  const double window = op.kernel_size * op.kernel_size;
  switch (op.family) {
    case Family::kConcat:
      return 0;
    case Family::kMean:
      return op.input_size * op.input_size * op.input_channels;
    case Family::kPool:
      return outputs * window;
    default:
      return 2 * outputs * window * summed_channels(op);
  }
}

double largest_divisor(double value, int limit) {
  const auto whole = static_cast<int64_t>(value);
  int best = 1;
  for (int divisor = 2; divisor <= limit; ++divisor) {
    if (whole % divisor == 0) best = divisor;
  }
  return best;
}

}  // namespace

PhoneFacts::PhoneFacts(const PhoneOperator& of, const PhoneDevice& device, double bytes_per_element,
                       KernelKind with, Fused fusing)
    : op(of), kernel(with), fused(fusing), flops(operations(of)) {
  const double window = op.kernel_size * op.kernel_size;
  output_bytes = op.output_size * op.output_size * op.output_channels * bytes_per_element;
  // A concatenation reads what it writes; the argument is only its first input.
  input_bytes = op.family == Family::kConcat
                    ? output_bytes
                    : op.input_size * op.input_size * op.input_channels * bytes_per_element;
  if (has_weights(op.family)) {
    weight_bytes = window * summed_channels(op) * op.output_channels * bytes_per_element;
  }
  input_slices = divided_up(op.input_channels / op.groups, 4);
  output_slices = divided_up(op.output_channels, 4);
  const double tiles_across = divided_up(op.output_size, 4);
  tiles = tiles_across * tiles_across;
  set_recommendation(device.maker);
  const bool winograd = kernel == KernelKind::kWinograd;
  grid_width = winograd ? tiles : op.output_size;
  grid_height = winograd ? 36 : op.output_size;
  steps = (winograd ? 1 : window) * input_slices;
  set_block(device.maker, device.compute_units);
  items_x = divided_up(grid_width, block_width);
  items_y = divided_up(grid_height, block_height);
  items_z = divided_up(output_slices, block_slices);
  set_group(device.maker);
  waves = items() / kItemsOfWave / device.compute_units;
  rounds = divided_up(groups, device.compute_units);
}

// IsRecommendedForWinograd4x4To6x6() of tensorflow/lite/delegates/gpu/common, and its poolings.
void PhoneFacts::set_recommendation(GpuMaker maker) {
  const bool adreno = maker == GpuMaker::kAdreno;
  const double least_slices = adreno ? 32 : 16;
  const double least_tiles = adreno ? 128 : 32;
  recommends_winograd = op.family == Family::kConvolution && op.kernel_size == 3 &&
                        op.stride == 1 && tiles >= least_tiles && input_slices >= least_slices &&
                        output_slices >= least_slices;
  recommends_mean =
      op.family == Family::kPool && op.output_size == 1 && op.kernel_size == op.input_size;
}

// tensorflow/lite/delegates/gpu/common/tasks/conv_generic.cc, for 16-bit floats.
void PhoneFacts::set_block(GpuMaker maker, double compute_units) {
  const double results = grid_width * grid_height * output_slices;
  const bool uneven = output_slices == 1 || output_slices == 3;
  const bool pointwise = kernel == KernelKind::kWinograd || op.kernel_size == 1;
  switch (maker) {
    case GpuMaker::kAdreno: {
      const double rounds = results / compute_units / 128;
      block_width = rounds <= 6 ? 1 : 2;
      block_height = rounds <= 24 ? 1 : 2;
      block_slices = rounds <= 12 ? 1 : 2;
      break;
    }
    case GpuMaker::kMali: {
      const double each = results / compute_units;
      int block = each <= 256 ? 1 : each <= 1536 ? 2 : each <= 4096 ? 4 : 8;
      if (!pointwise) block = std::min(block, 4);
      block_width = block >= 2 ? 2 : 1;
      block_height = block == 8 || (block == 4 && uneven) ? 2 : 1;
      block_slices = block >= 4 && !uneven ? 2 : 1;
      break;
    }
    case GpuMaker::kPowerVr: {
      const bool fours = std::fmod(output_slices, 4) == 0 || output_slices >= 8;
      const bool twos = std::fmod(output_slices, 2) == 0 || output_slices >= 4;
      block_width = 2;
      block_slices = fours ? 4 : twos ? 2 : output_slices;
      break;
    }
    case GpuMaker::kApple:
      block_width = 2;
      block_height = 2;
      block_slices = 2;
      break;
    case GpuMaker::kOther:
      break;
  }
}

// Fixed shapes as in conv_generic.cc; others as in task/work_group_picking.cc, without trials.
void PhoneFacts::set_group(GpuMaker maker) {
  switch (maker) {
    case GpuMaker::kApple:
      group_width = 8;
      group_height = 4;
      break;
    case GpuMaker::kPowerVr:
      // One line of all pixels.
      group_width = 32;
      groups = divided_up(items_x * items_y, group_width) * items_z;
      return;
    default:
      group_depth = largest_divisor(
          items_z, maker == GpuMaker::kAdreno ? kDeepestAdrenoGroup : kDeepestGroup);
      const double area = std::floor(kLargestGroup / group_depth);
      group_width = std::min(items_x, area);
      group_height = std::min(std::floor(area / group_width), items_y);
      // Two groups rather than one.
      if (group_height == items_y && std::fmod(items_y, 2) == 0) group_height /= 2;
      break;
  }
  groups = divided_up(items_x, group_width) * divided_up(items_y, group_height) *
           (items_z / group_depth);
}

Frame phone_frame() {
  std::vector<Feature> features;
  for (const PhoneFeature& feature : phone_features()) features.push_back(feature.feature);
  return Frame(std::move(features));
}

std::vector<double> phone_row(const PhoneFacts& facts) {
  std::vector<double> row;
  for (const PhoneFeature& feature : phone_features()) row.push_back(feature.value(facts));
  return row;
}

}  // namespace tandem::predict
