// Data that kernels read in a form of their own: made once per operator, good for all of its
// slices.
#pragma once

#include <cstddef>
#include <vector>

#include "lane/opencl/kernel_plan.h"

namespace tandem::opencl {

// A convolution with one input and one output channel to a group: its weights are [tap][channel].
bool is_depthwise(const Graph& graph, const Operator& op);

// Weights of tile.cl: [panel][tap][channel][16 output channels]. With groups, a panel holds the
// input channels of all groups that its output channels belong to ("span"), and zeros where an
// output channel does not see an input channel.
struct PanelLayout {
  int64_t outputs = 0;
  int64_t taps = 1;
  int64_t groups = 1;
  int64_t group_channels = 0;  // input channels
  int64_t group_outputs = 0;

  int64_t panels() const { return (outputs + kLineFloats - 1) / kLineFloats; }
  int64_t span_groups() const;  // the most groups that a panel touches
  int64_t span() const { return span_groups() * group_channels; }
  int64_t last_group() const { return groups - span_groups(); }
  int64_t first_group(int64_t panel) const;
};
// Of a conv, transposed conv or linear.
PanelLayout panel_layout(const Graph& graph, const Operator& op);

std::vector<std::byte> pack(const Graph& graph, const Operator& op, PackedKind kind);

}  // namespace tandem::opencl
