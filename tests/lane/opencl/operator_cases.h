// Operators for tests of the OpenCL lane: odd shapes, paddings, strides, groups.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tandem::opencl {

// A graph with one operator, and values for its inputs.
struct Case {
  std::string name;
  Graph graph;
  std::vector<HostTensor> inputs;  // in the order of graph.inputs()
  double tolerance = 2e-5;
};

struct ConvShape {
  int64_t n, c, h, w, m;
  Size2 kernel{3, 3}, stride{1, 1}, dilation{1, 1};
  Pads pads{1, 1, 1, 1};
  int64_t groups = 1;
  bool bias = true, residual = false;
  Activation activation{};
};

// Of any shape, with random values.
Case conv_case(const ConvShape& s);
Case conv_transpose_case(int64_t c, int64_t m, Size2 kernel, Size2 stride, Pads pads,
                         Size2 output_padding, int64_t groups);

// Around the edges of what kernels distinguish: convolutions; products of matrices; all other
// kinds.
std::vector<Case> conv_cases();
std::vector<Case> matrix_cases();
std::vector<Case> other_cases();

}  // namespace tandem::opencl
