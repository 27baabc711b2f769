// What a slice computes, in the numbers that its time depends on. Made from a graph's slices, or
// from published lists of operators.
#pragma once

#include <cstdint>
#include <string>

#include "graph/partition.h"

namespace tandem::sim {

enum class Family : uint8_t {
  kConv,  // grouped ones too
  kDepthwise,
  kLinear,  // rows times constant weights
  kMatMul,  // two activations
  kPool,
  kReduce,
  kElementwise,
  kNormalize,  // softmax, layer norm
  kMove,       // concat, copies, resize, gather, pad
};
const char* to_string(Family family);

// Of the slice, not of the operator that it belongs to. Linear layers have their rows in out_h.
struct Workload {
  Family family = Family::kElementwise;
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_channels = 1;
  int64_t out_h = 1, out_w = 1, out_channels = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride = 1;
  int64_t groups = 1;
  int64_t operands = 1;  // that are not constant
  double flops = 0;
  // Elements read of activations and of weights, and written.
  double input_elements = 0;
  double weight_elements = 0;
  double output_elements = 0;

  // Of the matrix product that a convolution, linear layer or MatMul is.
  double rows() const { return static_cast<double>(batch * out_h * out_w); }
  double depth() const { return static_cast<double>(kernel_h * kernel_w * (in_channels / groups)); }
};

Workload workload_of(const Graph& graph, const Slice& slice);

// "family:input size:input channels:output size:output channels:kernel:stride:groups", one image;
// sizes and kernels that are not square are HxW. Of a concat, the kernel stands for the number of
// operands; the last number is a MatMul's batch, and an element-wise operator's number of operands.
// kInvalidArgument, saying what is wrong with it.
StatusOr<Workload> parse_workload(const std::string& text);
// The same as text. Attributes that it cannot express (a batch of images) are lost.
std::string to_text(const Workload& work);

}  // namespace tandem::sim
