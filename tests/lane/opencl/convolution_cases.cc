// Convolutions for tests of the OpenCL lane.
#include <algorithm>

#include "fmt/format.h"
#include "tests/lane/opencl/case_builder.h"

namespace tandem::opencl {

Case conv_case(const ConvShape& s) {
  Builder b(fmt::format("conv_{}x{}x{}x{}_m{}_k{}x{}_s{}{}_d{}{}_p{}{}{}{}_g{}{}{}_{}", s.n, s.c,
                        s.h, s.w, s.m, s.kernel[0], s.kernel[1], s.stride[0], s.stride[1],
                        s.dilation[0], s.dilation[1], s.pads[0], s.pads[1], s.pads[2], s.pads[3],
                        s.groups, s.bias ? "_bias" : "", s.residual ? "_residual" : "",
                        to_string(s.activation.function)));
  ConvAttributes conv{s.kernel, s.stride, s.dilation, s.pads,
                      s.groups, s.bias,   s.residual, s.activation};
  std::vector<TensorId> inputs = {b.input({s.n, s.c, s.h, s.w}, kImages),
                                  b.constant({s.m, s.c / s.groups, s.kernel[0], s.kernel[1]})};
  if (s.bias) inputs.push_back(b.constant({s.m}));
  if (s.residual) {
    Dims out = {s.n, s.m};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t in = i == 0 ? s.h : s.w;
      out.push_back((in + s.pads[i] + s.pads[i + 2] - s.dilation[i] * (s.kernel[i] - 1) - 1) /
                        s.stride[i] +
                    1);
    }
    inputs.push_back(b.input(out, kImages));
  }
  Case result = b.finish(conv, inputs, kImages);
  // Rounding grows with the number of terms.
  const int64_t depth = s.c / s.groups * s.kernel[0] * s.kernel[1];
  result.tolerance *= std::max(1.0, static_cast<double>(depth) / 500);
  return result;
}

std::vector<Case> conv_cases() {
  std::vector<Case> cases;
  // Remainders of all tiles: rows and channels around multiples of them.
  for (const int64_t m : {1, 16, 18, 24, 33, 48, 64, 144}) {
    cases.push_back(conv_case({.n = 1, .c = 5, .h = 7, .w = 9, .m = m}));
  }
  for (const int64_t w : {1, 2, 4, 8, 10, 13, 14, 15, 24, 25, 57}) {
    cases.push_back(conv_case({.n = 1, .c = 20, .h = 1, .w = w, .m = 40, .residual = true}));
  }
  cases.push_back(conv_case({.n = 1,
                             .c = 3,
                             .h = 23,
                             .w = 19,
                             .m = 32,
                             .kernel = {7, 7},
                             .stride = {2, 2},
                             .pads = {3, 3, 3, 3},
                             .activation = {Function::kRelu}}));
  // Few input channels: all strides, uneven pads, vertical dilation, an image wider than its box.
  for (const int64_t c : {1, 3, 4, 8}) {
    cases.push_back(conv_case({.n = 2,
                               .c = c,
                               .h = 21,
                               .w = 33,
                               .m = 40,
                               .stride = {2, c == 4 ? 3 : 2},
                               .dilation = {c == 3 ? 2 : 1, 1},
                               .pads = {0, 2, 2, 1},
                               .residual = true,
                               .activation = {c == 8 ? Function::kSilu : Function::kRelu}}));
  }
  cases.push_back(conv_case({.n = 1, .c = 3, .h = 4, .w = 2, .m = 16, .pads = {2, 6, 2, 5}}));
  cases.push_back(conv_case({.n = 3,
                             .c = 17,
                             .h = 6,
                             .w = 5,
                             .m = 20,
                             .residual = true,
                             .activation = {Function::kHardSwish}}));
  cases.push_back(conv_case({.n = 1,
                             .c = 8,
                             .h = 12,
                             .w = 11,
                             .m = 16,
                             .dilation = {2, 3},
                             .pads = {2, 3, 1, 0},
                             .bias = false}));
  cases.push_back(conv_case({.n = 1,
                             .c = 16,
                             .h = 5,
                             .w = 5,
                             .m = 16,
                             .kernel = {5, 1},
                             .stride = {1, 3},
                             .pads = {4, 0, 4, 0}}));
  // Several K blocks: of taps, and of channels.
  cases.push_back(conv_case({.n = 1, .c = 100, .h = 9, .w = 10, .m = 40, .residual = true}));
  cases.push_back(conv_case({.n = 1, .c = 600, .h = 4, .w = 5, .m = 300}));
  cases.push_back(conv_case(
      {.n = 1, .c = 1300, .h = 1, .w = 1, .m = 50, .kernel = {1, 1}, .pads = {0, 0, 0, 0}}));
  // 3x3 with stride one: patches cut at all sides, several images, pads of all kinds.
  for (const int64_t extent : {1, 2, 3, 4, 5, 8, 11, 17}) {
    cases.push_back(conv_case({.n = 1, .c = 24, .h = extent, .w = extent + 2, .m = 40}));
  }
  cases.push_back(conv_case({.n = 1,
                             .c = 32,
                             .h = 12,
                             .w = 9,
                             .m = 70,
                             .pads = {0, 2, 2, 0},
                             .residual = true,
                             .activation = {Function::kRelu}}));
  cases.push_back(conv_case({.n = 3,
                             .c = 16,
                             .h = 9,
                             .w = 7,
                             .m = 33,
                             .pads = {0, 0, 0, 0},
                             .bias = false,
                             .residual = true,
                             .activation = {Function::kSilu}}));
  cases.push_back(conv_case({.n = 1, .c = 64, .h = 30, .w = 31, .m = 64, .pads = {2, 2, 2, 2}}));
  // 1x1, with stride, and with padding.
  cases.push_back(conv_case({.n = 2,
                             .c = 33,
                             .h = 9,
                             .w = 8,
                             .m = 70,
                             .kernel = {1, 1},
                             .pads = {0, 0, 0, 0},
                             .residual = true,
                             .activation = {Function::kClip, 0, 6}}));
  cases.push_back(conv_case({.n = 1,
                             .c = 32,
                             .h = 9,
                             .w = 8,
                             .m = 16,
                             .kernel = {1, 1},
                             .stride = {2, 2},
                             .pads = {0, 0, 0, 0}}));
  cases.push_back(conv_case(
      {.n = 1, .c = 32, .h = 4, .w = 3, .m = 16, .kernel = {1, 1}, .pads = {1, 2, 0, 1}}));
  // Groups: wide, narrow, uneven against panels, few outputs each, channel multiplier.
  for (const auto& [c, m, groups] : std::vector<std::array<int64_t, 3>>{{32, 64, 2},
                                                                        {64, 64, 4},
                                                                        {64, 128, 16},
                                                                        {24, 36, 3},
                                                                        {20, 60, 5},
                                                                        {6, 24, 6},
                                                                        {128, 128, 32},
                                                                        {1040, 32, 2},
                                                                        {160, 40, 2},
                                                                        {96, 96, 2}}) {
    cases.push_back(
        conv_case({.n = 1, .c = c, .h = 5, .w = 6, .m = m, .groups = groups, .residual = true}));
  }
  cases.push_back(conv_case({.n = 2,
                             .c = 32,
                             .h = 19,
                             .w = 31,
                             .m = 64,
                             .stride = {1, 2},
                             .dilation = {2, 1},
                             .pads = {2, 1, 1, 3},
                             .groups = 8,
                             .activation = {Function::kRelu}}));
  // Depthwise.
  for (const int64_t c : {3, 16, 24, 50}) {
    cases.push_back(conv_case({.n = 2,
                               .c = c,
                               .h = 11,
                               .w = 21,
                               .m = c,
                               .groups = c,
                               .residual = true,
                               .activation = {Function::kRelu}}));
  }
  cases.push_back(conv_case({.n = 1,
                             .c = 40,
                             .h = 15,
                             .w = 15,
                             .m = 40,
                             .kernel = {5, 5},
                             .stride = {2, 2},
                             .pads = {1, 2, 2, 1},
                             .groups = 40}));
  cases.push_back(conv_case({.n = 1,
                             .c = 32,
                             .h = 13,
                             .w = 30,
                             .m = 32,
                             .dilation = {2, 2},
                             .pads = {2, 2, 2, 2},
                             .groups = 32,
                             .bias = false}));
  return cases;
}

Case conv_transpose_case(int64_t c, int64_t m, Size2 kernel, Size2 stride, Pads pads,
                         Size2 output_padding, int64_t groups) {
  Builder b(fmt::format("conv_transpose_c{}_m{}_k{}_s{}_g{}", c, m, kernel[0], stride[0], groups));
  ConvTransposeAttributes conv;
  conv.kernel = kernel;
  conv.stride = stride;
  conv.pads = pads;
  conv.output_padding = output_padding;
  conv.groups = groups;
  conv.has_bias = true;
  const TensorId x = b.input({1, c, 6, 5}, kImages);
  const TensorId w = b.constant({c, m / groups, kernel[0], kernel[1]});
  const TensorId bias = b.constant({m});
  return b.finish(conv, {x, w, bias}, kImages);
}

}  // namespace tandem::opencl
