// Convolutions, transposed convolutions and linear operators, on every implementation of them.
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/onednn/onednn.h"
#include "lane/cpu/xnnpack/xnnpack.h"
#include "tests/lane/cpu/harness.h"

namespace tandem::cpu {
namespace {

const std::vector<const Implementation*>& all() {
  static const std::vector<const Implementation*> list = {
      &tiled_gemm(), &depthwise_loops(), &onednn_conv(), &onednn_winograd(), &xnnpack_conv()};
  return list;
}

struct ConvCase {
  const char* name;
  Dims x;
  int64_t out_channels;
  ConvAttributes a;
  Options options;
  // Implementations that must be among those that ran.
  std::set<std::string> must_run;
};

ConvAttributes conv(Size2 kernel, Size2 stride, Pads pads, int64_t groups = 1,
                    Activation activation = {}, Size2 dilation = {1, 1}) {
  ConvAttributes a;
  a.kernel = kernel;
  a.stride = stride;
  a.pads = pads;
  a.groups = groups;
  a.dilation = dilation;
  a.activation = activation;
  return a;
}

Case build(const ConvCase& c, bool bias, bool residual) {
  Case built;
  ConvAttributes a = c.a;
  a.has_bias = bias;
  a.has_residual = residual;
  const int64_t depth = c.x[1] / a.groups * a.kernel[0] * a.kernel[1];
  built.input(c.x, Case::kChannelsLast);
  built.constant({c.out_channels, c.x[1] / a.groups, a.kernel[0], a.kernel[1]},
                 1.5f / std::sqrt(static_cast<float>(depth)));
  if (bias) built.constant({c.out_channels});
  if (residual) {
    Dims y = {c.x[0], c.out_channels, 0, 0};
    for (int i = 0; i < 2; ++i) {
      y[2 + i] = (c.x[2 + i] + a.pads[i] + a.pads[2 + i] - a.dilation[i] * (a.kernel[i] - 1) - 1) /
                     a.stride[i] +
                 1;
    }
    built.input(y, Case::kChannelsLast);
  }
  built.op(a, {}, Case::kChannelsLast);
  return built;
}

const Activation kRelu{Function::kRelu, 0, 0};
const Activation kClip{Function::kClip, 0, 0.5f};
const Activation kSilu{Function::kSilu, 0, 0};
const Activation kHardSwish{Function::kHardSwish, 0, 0};
const Activation kGelu{Function::kGelu, 0, 0};

std::vector<ConvCase> conv_cases() {
  const Options gaps{.input_gap = 32, .output_gap = 48};
  const Options output_gap{.output_gap = 16};
  Options winograd;
  winograd.tolerance = 2e-4;
  return {
      {"3x3",
       {1, 32, 9, 11},
       48,
       conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 1, kRelu),
       {},
       {"loops_tiled_gemm", "xnnpack_conv"}},
      {"3x3OddChannels",
       {1, 18, 7, 9},
       37,
       conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 1, kSilu),
       {},
       {"loops_tiled_gemm"}},
      {"3x3Winograd",
       {1, 64, 14, 14},
       64,
       conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 1, kRelu),
       winograd,
       {"loops_tiled_gemm"}},
      {"3x3Batch", {2, 16, 8, 8}, 32, conv({3, 3}, {2, 2}, {1, 1, 1, 1}), {}, {}},
      {"3x3Gaps", {1, 48, 10, 6}, 80, conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 1, kClip), gaps, {}},
      {"3x3OutputGap",
       {1, 64, 12, 12},
       64,
       conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 1, kHardSwish),
       {.output_gap = 16, .tolerance = 2e-4},
       {}},
      {"3x3DeepSum", {1, 160, 5, 5}, 33, conv({3, 3}, {1, 1}, {1, 1, 1, 1}), {}, {}},
      {"Dilated",
       {1, 24, 13, 12},
       16,
       conv({3, 3}, {1, 1}, {2, 2, 2, 2}, 1, kRelu, {2, 2}),
       {},
       {}},
      {"Uneven", {1, 16, 11, 9}, 16, conv({2, 4}, {2, 1}, {0, 3, 1, 0}), {}, {}},
      {"1x7", {1, 32, 9, 9}, 48, conv({1, 7}, {1, 1}, {0, 3, 0, 3}, 1, kRelu), {}, {}},
      {"1x1", {1, 64, 7, 9}, 96, conv({1, 1}, {1, 1}, {0, 0, 0, 0}, 1, kRelu), {}, {}},
      {"1x1OddChannels", {1, 24, 9, 7}, 40, conv({1, 1}, {1, 1}, {0, 0, 0, 0}, 1, kGelu), {}, {}},
      {"1x1Step2", {1, 32, 10, 10}, 64, conv({1, 1}, {2, 2}, {0, 0, 0, 0}), output_gap, {}},
      {"1x1Deep", {1, 832, 3, 3}, 64, conv({1, 1}, {1, 1}, {0, 0, 0, 0}), {}, {}},
      {"Stem7x7", {1, 3, 33, 35}, 32, conv({7, 7}, {2, 2}, {3, 3, 3, 3}, 1, kRelu), {}, {}},
      {"Stem3x3", {1, 3, 16, 18}, 64, conv({3, 3}, {1, 1}, {1, 1, 1, 1}), {}, {}},
      {"OneChannel", {1, 1, 12, 12}, 16, conv({5, 5}, {1, 1}, {2, 2, 2, 2}), {}, {}},
      {"Grouped",
       {1, 64, 8, 8},
       64,
       conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 8, kRelu),
       {},
       {"loops_tiled_gemm", "xnnpack_conv"}},
      {"GroupedOdd", {1, 24, 6, 6}, 36, conv({3, 3}, {2, 2}, {1, 1, 1, 1}, 3, kClip), {}, {}},
      {"Depthwise3x3",
       {1, 64, 9, 9},
       64,
       conv({3, 3}, {1, 1}, {1, 1, 1, 1}, 64, kClip),
       {},
       {"loops_depthwise"}},
      {"Depthwise3x3Step2",
       {1, 40, 14, 13},
       40,
       conv({3, 3}, {2, 2}, {1, 1, 1, 1}, 40, kSilu),
       {},
       {"loops_depthwise"}},
      {"Depthwise5x5",
       {2, 27, 9, 11},
       27,
       conv({5, 5}, {1, 1}, {2, 2, 2, 2}, 27),
       gaps,
       {"loops_depthwise"}},
      {"Depthwise5x5Step2",
       {1, 32, 15, 15},
       32,
       conv({5, 5}, {2, 2}, {2, 2, 2, 2}, 32),
       {},
       {"loops_depthwise"}},
      {"Depthwise7x7",
       {1, 48, 10, 10},
       48,
       conv({7, 7}, {1, 1}, {3, 3, 3, 3}, 48),
       {},
       {"loops_depthwise"}},
      {"DepthwiseDilated",
       {1, 16, 12, 12},
       16,
       conv({3, 3}, {1, 1}, {2, 2, 2, 2}, 16, kRelu, {2, 2}),
       {},
       {"loops_depthwise"}},
      {"WindowLargerThanImage", {1, 16, 2, 2}, 16, conv({5, 5}, {1, 1}, {2, 2, 2, 2}), {}, {}},
      {"DepthwiseWindowLargerThanImage",
       {1, 16, 2, 2},
       16,
       conv({5, 5}, {1, 1}, {2, 2, 2, 2}, 16),
       {},
       {"loops_depthwise"}},
  };
}

class Conv : public testing::TestWithParam<ConvCase> {};

TEST_P(Conv, MatchesReference) {
  for (const bool bias : {false, true}) {
    for (const bool residual : {false, true}) {
      SCOPED_TRACE(std::string(bias ? "bias " : "") + (residual ? "residual" : ""));
      const std::set<std::string> ran =
          check(build(GetParam(), bias, residual), all(), GetParam().options);
      for (const std::string& name : GetParam().must_run) {
        EXPECT_TRUE(ran.contains(name)) << name << " refused the operator";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Conv, testing::ValuesIn(conv_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ConvOfDenseImage, MatchesReference) {
  // Three channels without padding: what oneDNN needs, and what the tiled product may not overread.
  Case c;
  c.input({1, 3, 17, 19}, {Order::kChannelsLast, false}).constant({32, 3, 3, 3});
  c.op(conv({3, 3}, {2, 2}, {1, 1, 1, 1}, 1, kRelu), {}, Case::kChannelsLast);
  EXPECT_TRUE(check(c, all()).contains("loops_tiled_gemm"));
}

TEST(ConvTranspose, MatchesReference) {
  struct Shape {
    Dims x, w;
    Size2 stride, dilation, output_padding;
    Pads pads;
    int64_t groups;
  };
  for (const Shape& s : std::vector<Shape>{
           {{1, 16, 5, 6}, {16, 24, 2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0, 0, 0}, 1},
           {{1, 20, 5, 5}, {20, 33, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
           {{2, 16, 4, 7}, {16, 16, 4, 4}, {2, 2}, {1, 1}, {0, 0}, {1, 1, 1, 1}, 1},
           {{1, 16, 4, 4}, {16, 16, 2, 2}, {3, 3}, {1, 1}, {0, 1}, {0, 0, 0, 0}, 1},
           {{1, 32, 6, 5}, {32, 8, 3, 3}, {1, 2}, {2, 1}, {0, 0}, {0, 1, 2, 0}, 4},
       }) {
    Case c;
    ConvTransposeAttributes a;
    a.kernel = {s.w[2], s.w[3]};
    a.stride = s.stride;
    a.dilation = s.dilation;
    a.output_padding = s.output_padding;
    a.pads = s.pads;
    a.groups = s.groups;
    a.has_bias = true;
    a.activation = {Function::kLeakyRelu, 0.1f, 0};
    c.input(s.x, Case::kChannelsLast).constant(s.w, 0.3f).constant({s.w[1] * s.groups});
    c.op(a, {}, Case::kChannelsLast);
    EXPECT_TRUE(check(c, all()).contains("loops_tiled_gemm"));
    check(c, all(), {.input_gap = 16, .output_gap = 32});
  }
}

TEST(Linear, MatchesReference) {
  struct Shape {
    Dims x;
    int64_t columns;
    Activation activation;
  };
  for (const Shape& s : std::vector<Shape>{
           {{1, 100}, 40, {}},
           {{7, 64}, 33, kRelu},
           {{1, 50, 768}, 96, kGelu},
           {{2, 5, 30}, 48, kClip},
           {{2, 3, 5, 17}, 20, kSilu},
           {{200, 32}, 16, {}},
           {{5, 600}, 130, {Function::kElu, 0.7f, 0}},
           {{2, 16}, 1, {}},
       }) {
    for (const bool residual : {false, true}) {
      Case c;
      LinearAttributes a;
      a.has_bias = true;
      a.has_residual = residual;
      a.activation = s.activation;
      Dims y = s.x;
      y.back() = s.columns;
      c.input(s.x).constant({s.x.back(), s.columns}, 0.2f).constant({s.columns});
      if (residual) c.input(y);
      c.op(a);
      EXPECT_TRUE(check(c, all()).contains("loops_tiled_gemm"));
      check(c, all(), {.input_gap = 16, .output_gap = 32});
    }
  }
}

TEST(MatMul, MatchesReference) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const Dims& batch : {Dims{}, Dims{3}, Dims{2, 4}}) {
        Case c;
        MatMulAttributes a;
        a.transpose_a = ta;
        a.transpose_b = tb;
        a.alpha = 0.125f;
        Dims u = batch, v = batch;
        for (const int64_t e : ta ? Dims{20, 17} : Dims{17, 20}) u.push_back(e);
        for (const int64_t e : tb ? Dims{35, 20} : Dims{20, 35}) v.push_back(e);
        // The second operand is broadcast over the first batch dimension.
        if (batch.size() == 2) v[0] = 1;
        c.input(u).input(v).op(a);
        EXPECT_TRUE(check(c, {&batched_gemm()}).contains("loops_batched_gemm"));
        check(c, {&batched_gemm()}, {.input_gap = 16, .output_gap = 16});
      }
    }
  }
}

}  // namespace
}  // namespace tandem::cpu
