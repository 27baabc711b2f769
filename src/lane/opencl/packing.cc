#include "lane/opencl/packing.h"

#include <algorithm>
#include <cstring>

#include "graph/resize.h"
#include "lane/opencl/winograd.h"

namespace tandem::opencl {
namespace {

// Tiles of several panels may read this many panels past the last one; the sums are not used.
constexpr int64_t kSlackPanels = 3;

template <typename T>
std::vector<std::byte> to_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const float* constant_input(const Graph& graph, const Operator& op, size_t index) {
  return graph.tensor(op.inputs[index]).value->data<float>();
}

// Weight of (output, channel within its group, tap), for the kinds that have panels.
struct WeightReader {
  const float* weights;
  OperatorKind kind;
  PanelLayout layout;

  float operator()(int64_t output, int64_t channel, int64_t tap) const {
    switch (kind) {
      case OperatorKind::kConv:
        return weights[(output * layout.group_channels + channel) * layout.taps + tap];
      case OperatorKind::kConvTranspose: {
        const int64_t group = output / layout.group_outputs;
        const int64_t row = group * layout.group_channels + channel;
        return weights[(row * layout.group_outputs + output % layout.group_outputs) * layout.taps +
                       tap];
      }
      default:  // kLinear
        return weights[channel * layout.outputs + output];
    }
  }
};

std::vector<float> pack_panels(const Graph& graph, const Operator& op) {
  const PanelLayout layout = panel_layout(graph, op);
  const WeightReader weight{constant_input(graph, op, 1), op.kind(), layout};
  const int64_t tap_floats = layout.group_channels * kLineFloats;
  std::vector<float> packed(
      static_cast<size_t>((layout.panels() + kSlackPanels) * layout.taps * tap_floats));
  for (int64_t output = 0; output < layout.outputs; ++output) {
    const int64_t panel = output / kLineFloats;
    for (int64_t tap = 0; tap < layout.taps; ++tap) {
      float* to = packed.data() + (panel * layout.taps + tap) * tap_floats + output % kLineFloats;
      for (int64_t channel = 0; channel < layout.group_channels; ++channel) {
        to[channel * kLineFloats] = weight(output, channel, tap);
      }
    }
  }
  return packed;
}

// As panels, with the points of transformed filters in the place of taps.
std::vector<float> pack_winograd(const Graph& graph, const Operator& op, WinogradVariant variant) {
  const PanelLayout layout = panel_layout(graph, op);
  const float* weights = constant_input(graph, op, 1);
  const int64_t point_floats = layout.group_channels * kLineFloats;
  std::vector<float> packed(
      static_cast<size_t>((layout.panels() + kSlackPanels) * variant.points() * point_floats));
  std::vector<double> points(static_cast<size_t>(variant.points()));
  for (int64_t output = 0; output < layout.outputs; ++output) {
    float* panel = packed.data() + output / kLineFloats * variant.points() * point_floats;
    for (int64_t channel = 0; channel < layout.group_channels; ++channel) {
      transform_filter(variant, weights + (output * layout.group_channels + channel) * layout.taps,
                       points.data());
      float* to = panel + channel * kLineFloats + output % kLineFloats;
      for (const double point : points) {
        *to = static_cast<float>(point);
        to += point_floats;
      }
    }
  }
  return packed;
}

// [tap][channel], channels padded to whole vectors.
std::vector<float> pack_depthwise(const Graph& graph, const Operator& op) {
  const auto& conv = op.as<ConvAttributes>();
  const float* weights = constant_input(graph, op, 1);
  const int64_t taps = conv.kernel[0] * conv.kernel[1];
  const int64_t pitch = (conv.groups + kLineFloats - 1) / kLineFloats * kLineFloats;
  std::vector<float> packed(static_cast<size_t>(taps * pitch));
  for (int64_t channel = 0; channel < conv.groups; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      packed[static_cast<size_t>(tap * pitch + channel)] = weights[channel * taps + tap];
    }
  }
  return packed;
}

// A constant vector, with zeros up to whole tiles.
std::vector<float> pack_vector(const Graph& graph, const Operator& op, size_t index) {
  const HostTensor& value = *graph.tensor(op.inputs[index]).value;
  std::vector<float> packed(static_cast<size_t>(
      (value.size() + kLineFloats - 1) / kLineFloats * kLineFloats + kSlackPanels * kLineFloats));
  std::copy_n(value.data<float>(), value.size(), packed.begin());
  return packed;
}

bool has_bias(const Operator& op) {
  switch (op.kind()) {
    case OperatorKind::kConv:
      return op.as<ConvAttributes>().has_bias;
    case OperatorKind::kConvTranspose:
      return op.as<ConvTransposeAttributes>().has_bias;
    case OperatorKind::kLinear:
      return op.as<LinearAttributes>().has_bias;
    default:
      return true;
  }
}

// For each output coordinate of one dimension, the input coordinates that it mixes, and how much of
// each.
struct ResizeTable {
  std::vector<int32_t> indices;
  std::vector<float> weights;
};

ResizeTable resize_table(const Graph& graph, const Operator& op, size_t dimension) {
  const int64_t in = graph.tensor(op.inputs[0]).dims[dimension];
  const int64_t out = graph.tensor(op.output).dims[dimension];
  ResizeTable table;
  for (int64_t i = 0; i < out; ++i) {
    const ResizeTaps taps =
        resize_taps(op.as<ResizeAttributes>(), static_cast<int>(dimension) - 2, in, out, i);
    for (int tap = 0; tap < taps.count; ++tap) {
      table.indices.push_back(static_cast<int32_t>(taps.index[tap]));
      table.weights.push_back(static_cast<float>(taps.weight[tap]));
    }
  }
  return table;
}

}  // namespace

bool is_depthwise(const Graph& graph, const Operator& op) {
  if (op.kind() != OperatorKind::kConv) return false;
  const int64_t groups = op.as<ConvAttributes>().groups;
  return groups > 1 && groups == graph.tensor(op.inputs[0]).dims[1] &&
         groups == graph.tensor(op.output).dims[1];
}

PanelLayout panel_layout(const Graph& graph, const Operator& op) {
  const Dims& x = graph.tensor(op.inputs[0]).dims;
  const Dims& y = graph.tensor(op.output).dims;
  PanelLayout layout;
  if (op.kind() == OperatorKind::kLinear) {
    layout.outputs = y.back();
    layout.group_channels = x.back();
    layout.group_outputs = y.back();
    return layout;
  }
  const auto from = [&](const auto& attributes) {
    layout.taps = attributes.kernel[0] * attributes.kernel[1];
    layout.groups = attributes.groups;
  };
  if (op.kind() == OperatorKind::kConv) {
    from(op.as<ConvAttributes>());
  } else {
    from(op.as<ConvTransposeAttributes>());
  }
  layout.outputs = y[1];
  layout.group_channels = x[1] / layout.groups;
  layout.group_outputs = y[1] / layout.groups;
  return layout;
}

std::vector<std::byte> pack(const Graph& graph, const Operator& op, PackedKind kind) {
  switch (kind) {
    case PackedKind::kWeights:
      return to_bytes(is_depthwise(graph, op) ? pack_depthwise(graph, op) : pack_panels(graph, op));
    case PackedKind::kWinograd2:
      return to_bytes(pack_winograd(graph, op, {2}));
    case PackedKind::kWinograd4:
      return to_bytes(pack_winograd(graph, op, {4}));
    case PackedKind::kBias:
      // Kernels take a pointer in any case.
      return to_bytes(has_bias(op) ? pack_vector(graph, op, 2)
                                   : std::vector<float>(static_cast<size_t>(kLineFloats)));
    case PackedKind::kScale:
      return to_bytes(pack_vector(graph, op, 1));
    case PackedKind::kResizeLines:
      return to_bytes(resize_table(graph, op, 2).indices);
    case PackedKind::kResizeLineWeights:
      return to_bytes(resize_table(graph, op, 2).weights);
    case PackedKind::kResizeColumns:
      return to_bytes(resize_table(graph, op, 3).indices);
    case PackedKind::kResizeColumnWeights:
      return to_bytes(resize_table(graph, op, 3).weights);
  }
  return {};
}

}  // namespace tandem::opencl
