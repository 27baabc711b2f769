// Winograd convolutions: 3x3, stride and dilation 1, one group.
//
// F(2x2) takes patches of 2x2 output pixels, with 2.25 times fewer multiplications than a direct
// convolution, F(4x4) of 4x4 with 4 times fewer; their transformed weights are 1.8 and 4 times as
// large. kernels/winograd.cl says how.
//
// Error, relative to the root mean square of the outputs, against a reference in double precision
// (uniform inputs and weights in [-1, 1], 14x14 pixels, 64 outputs; operators_test.cc holds the
// kernels to it):
//
//   channels      direct              F(2x2)              F(4x4)
//              max      rms        max      rms        max      rms
//      64    3.4e-6   4.2e-7     1.5e-6   2.6e-7     5.5e-6   7.5e-7
//     128    4.4e-6   5.7e-7     2.4e-6   3.6e-7     8.6e-6   1.1e-6
//     256    6.7e-6   8.3e-7     2.9e-6   4.9e-7     1.3e-5   1.4e-6
//     512    8.5e-6   1.2e-6     3.6e-6   7.0e-7     1.6e-5   2.0e-6
//
// F(2x2) rounds less than a direct sum does: its sums are shorter. F(4x4) is within a factor of two
// of direct, which networks do not notice; with the interpolation points 1 and 2 in the place of
// 5/8 and 3/2 it would be four times direct. What is Inf or NaN in the input reaches all pixels of
// the patches that it lies in, as with every Winograd convolution.
#pragma once

#include <cstdint>

namespace tandem::opencl {

struct WinogradVariant {
  int outputs;  // pixels of a patch, along each axis

  constexpr int side() const { return outputs + 2; }
  constexpr int points() const { return side() * side(); }
};

// Transforms a 3x3 filter to `points()` values, in double precision: G w G^T.
void transform_filter(WinogradVariant variant, const float* filter, double* points);

}  // namespace tandem::opencl
