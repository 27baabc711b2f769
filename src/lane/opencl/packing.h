// Data that kernels read in a form of their own: made once per operator, good for all of its
// slices.
#pragma once

#include <cstddef>
#include <vector>

#include "lane/opencl/kernel_plan.h"

namespace tandem::opencl {

// A convolution with one input and one output channel to a group: its weights are [tap][channel].
bool is_depthwise(const Graph& graph, const Operator& op);

// Weights of the matrix kernels: [panel][tap][input channel of its group][16 output channels].
struct PanelLayout {
  int64_t outputs = 0;
  int64_t taps = 1;
  int64_t groups = 1;
  int64_t group_channels = 0;  // input channels
  int64_t group_outputs = 0;

  int64_t panels() const { return (outputs + kLineFloats - 1) / kLineFloats; }
  // True where all outputs of any panel are of one group, and see the same input channels.
  bool shares_input() const { return groups == 1 || group_outputs % kLineFloats == 0; }
};
// Of a conv, transposed conv or linear.
PanelLayout panel_layout(const Graph& graph, const Operator& op);

std::vector<std::byte> pack(const Graph& graph, const Operator& op, PackedKind kind);

}  // namespace tandem::opencl
