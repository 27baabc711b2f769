#include "tests/support/operator_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/random.h"

namespace tandem::testing {
namespace {

constexpr Layout kImage{Order::kChannelsLast, true};
constexpr Layout kRows{Order::kRowMajor, true};
constexpr Layout kDense{Order::kRowMajor, false};

constexpr Activation kRelu{Function::kRelu};
constexpr Activation kRelu6{Function::kClip, 0, 6};

Operand constant(Dims dims, double low = -1, double high = 1) {
  return {std::move(dims), kRows, true, DataType::kFloat32, low, high};
}

// ---- One function per kind: fills in the operands that its attributes ask for ----------------

OperatorCase conv(const std::string& name, Dims x, int64_t m, const ConvAttributes& a) {
  OperatorCase c{"conv/" + name, a, {}, {}, kImage};
  c.operands.push_back({x, kImage});
  c.operands.push_back(constant({m, x[1] / a.groups, a.kernel[0], a.kernel[1]}));
  if (a.has_bias) c.operands.push_back(constant({m}));
  if (a.has_residual) {
    Dims y = {x[0], m};
    for (int i = 0; i < 2; ++i) {
      y.push_back((x[2 + i] + a.pads[i] + a.pads[2 + i] - a.dilation[i] * (a.kernel[i] - 1) - 1) /
                      a.stride[i] +
                  1);
    }
    c.operands.push_back({y, kImage});
  }
  return c;
}

OperatorCase conv_transpose(const std::string& name, Dims x, int64_t m,
                            const ConvTransposeAttributes& a) {
  OperatorCase c{"conv_transpose/" + name, a, {}, {}, kImage};
  c.operands.push_back({x, kImage});
  c.operands.push_back(constant({x[1], m / a.groups, a.kernel[0], a.kernel[1]}));
  if (a.has_bias) c.operands.push_back(constant({m}));
  return c;
}

OperatorCase linear(const std::string& name, Dims x, int64_t n, const LinearAttributes& a) {
  OperatorCase c{"linear/" + name, a, {}, {}, kRows};
  c.operands.push_back({x, kRows});
  c.operands.push_back(constant({x.back(), n}));
  if (a.has_bias) c.operands.push_back(constant({n}));
  if (a.has_residual) {
    Dims y = x;
    y.back() = n;
    c.operands.push_back({y, kRows});
  }
  return c;
}

OperatorCase matmul(const std::string& name, Dims a, Dims b, const MatMulAttributes& attributes) {
  return {"matmul/" + name, attributes, {{std::move(a), kRows}, {std::move(b), kRows}}, {}, kRows};
}

OperatorCase pool(const std::string& name, Dims x, const PoolAttributes& a, Dims output = {}) {
  return {"pool/" + name, a, {{std::move(x), kImage}}, std::move(output), kImage};
}

OperatorCase reduce(const std::string& name, Dims x, const ReduceAttributes& a, Layout in = kRows,
                    Layout out = kRows) {
  OperatorCase c{"reduce/" + name, a, {{std::move(x), in}}, {}, out};
  // Products of many numbers below one vanish.
  if (a.kind == ReduceAttributes::Kind::kProd) {
    c.operands[0].low = 0.5;
    c.operands[0].high = 1.5;
  }
  return c;
}

OperatorCase softmax(const std::string& name, Dims x, int axis, bool log, Layout layout = kRows) {
  OperatorCase c{
      "softmax/" + name, SoftmaxAttributes{axis, log}, {{std::move(x), layout}}, {}, layout};
  c.operands[0].low = -8;
  c.operands[0].high = 8;
  return c;
}

OperatorCase layer_norm(const std::string& name, Dims x, float epsilon = 1e-5f) {
  const int64_t d = x.back();
  return {"layer_norm/" + name,
          LayerNormAttributes{epsilon},
          {{std::move(x), kRows}, constant({d}, 0.5, 1.5), constant({d})},
          {},
          kRows};
}

OperatorCase unary(const std::string& name, Dims x, Activation f, Layout layout = kRows) {
  OperatorCase c{"unary/" + name, UnaryAttributes{f}, {{std::move(x), layout}}, {}, layout};
  Operand& operand = c.operands[0];
  operand.low = -5;
  operand.high = 5;
  if (f.function == Function::kLog || f.function == Function::kSqrt) operand.low = 0.125;
  if (f.function == Function::kReciprocal) operand.low = 0.5;
  return c;
}

OperatorCase binary(const std::string& name, BinaryAttributes::Kind kind, Operand a, Operand b,
                    Layout output, Activation activation = {}) {
  if (kind == BinaryAttributes::Kind::kDiv) b.low = 0.5, b.high = 2;
  if (kind == BinaryAttributes::Kind::kPow) a.low = 0.5, a.high = 2, b.low = -3, b.high = 3;
  return {"binary/" + name,
          BinaryAttributes{kind, activation},
          {std::move(a), std::move(b)},
          {},
          output};
}

OperatorCase concat(const std::string& name, int axis, std::vector<Operand> parts, Layout output) {
  return {"concat/" + name, ConcatAttributes{axis}, std::move(parts), {}, output};
}

OperatorCase copy(const std::string& name, Operand x, Dims output, CopyAttributes a,
                  Layout output_layout) {
  return {"copy/" + name, std::move(a), {std::move(x)}, std::move(output), output_layout};
}

OperatorCase reshape(const std::string& name, Operand x, Dims output, Layout output_layout) {
  return {"reshape/" + name, ReshapeAttributes{}, {std::move(x)}, std::move(output), output_layout};
}

OperatorCase gather(const std::string& name, Operand x, Dims indices, int axis) {
  const double extent = static_cast<double>(x.dims[axis]);
  Operand i{std::move(indices), kRows, false, DataType::kInt64, -extent, extent - 1};
  return {"gather/" + name, GatherAttributes{axis}, {std::move(x), std::move(i)}, {}, kRows};
}

OperatorCase pad(const std::string& name, Dims x, const PadAttributes& a, Layout layout) {
  return {"pad/" + name, a, {{std::move(x), layout}}, {}, layout};
}

OperatorCase resize(const std::string& name, Dims x, int64_t height, int64_t width,
                    ResizeAttributes a) {
  a.scale = {static_cast<float>(height) / static_cast<float>(x[2]),
             static_cast<float>(width) / static_cast<float>(x[3])};
  Dims y = {x[0], x[1], height, width};
  return {"resize/" + name, a, {{std::move(x), kImage}}, std::move(y), kImage};
}

// ---- The table ------------------------------------------------------------------------------

void add_conv_cases(std::vector<OperatorCase>& t) {
  const ConvAttributes k1{.has_bias = true};
  const ConvAttributes k3{.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .has_bias = true};
  ConvAttributes a;

  t.push_back(conv("1x1", {1, 64, 14, 14}, 96, k1));
  t.push_back(conv("3x3", {1, 32, 14, 14}, 48, k3));
  a = k3;
  a.stride = {2, 2};
  t.push_back(conv("3x3_stride2_c24_m18", {1, 24, 17, 15}, 18, a));
  a = {.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .groups = 24, .has_bias = true};
  t.push_back(conv("depthwise3x3_c24", {1, 24, 13, 11}, 24, a));
  a = {.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .groups = 3, .has_bias = true};
  t.push_back(conv("grouped3_c24_m36", {2, 24, 9, 8}, 36, a));
  t.push_back(conv("1x1_no_bias", {1, 48, 7, 7}, 64, {}));
  t.push_back(conv("1x1_c7_m1000", {1, 7, 5, 5}, 1000, k1));
  t.push_back(conv("1x1_c1000_m7", {1, 1000, 3, 3}, 7, k1));
  t.push_back(conv("1x1_one_pixel", {1, 320, 1, 1}, 80, k1));
  a = k1;
  a.stride = {2, 2};
  t.push_back(conv("1x1_stride2", {1, 64, 15, 15}, 32, a));
  a = k1;
  a.pads = {1, 0, 0, 2};
  t.push_back(conv("1x1_padded", {1, 16, 6, 6}, 32, a));
  t.push_back(conv("1x1_batch2", {2, 32, 7, 9}, 48, k1));
  t.push_back(conv("3x3_batch2", {2, 18, 9, 10}, 36, k3));
  t.push_back(conv("3x3_valid", {1, 16, 10, 12}, 32, {.kernel = {3, 3}}));
  t.push_back(conv("3x3_vgg_deep", {1, 256, 7, 7}, 64, k3));
  // As large as in real networks, where lanes choose other kernels.
  t.push_back(conv("3x3_resnet_stage1", {1, 64, 56, 56}, 64, k3));
  t.push_back(conv("3x3_resnet_stage4", {1, 512, 7, 7}, 512, k3));
  t.push_back(conv("1x1_resnet_stage2", {1, 256, 28, 28}, 128, k1));
  t.push_back(conv("1x1_mobilenet", {1, 24, 56, 56}, 144, k1));
  a = {.kernel = {7, 7}, .stride = {2, 2}, .pads = {3, 3, 3, 3}, .has_bias = true};
  t.push_back(conv("7x7_stem_c3", {1, 3, 40, 36}, 64, a));
  t.push_back(conv("7x7_stem_c1", {1, 1, 28, 28}, 20, a));
  a = {.kernel = {5, 5}, .pads = {2, 2, 2, 2}};
  t.push_back(conv("5x5", {1, 24, 11, 11}, 32, a));
  t.push_back(conv("5x5_m1", {1, 24, 9, 21}, 1, a));
  a = {.kernel = {1, 7}, .pads = {0, 3, 0, 3}, .has_bias = true};
  t.push_back(conv("1x7", {1, 40, 12, 12}, 48, a));
  a = {.kernel = {7, 1}, .pads = {3, 0, 3, 0}, .has_bias = true};
  t.push_back(conv("7x1", {1, 40, 12, 12}, 48, a));
  a = {.kernel = {2, 4}, .stride = {3, 2}, .pads = {0, 1, 2, 3}, .has_bias = true};
  t.push_back(conv("asymmetric", {1, 20, 16, 13}, 24, a));
  a = {.kernel = {3, 3}, .dilation = {2, 3}, .pads = {2, 3, 2, 3}, .has_bias = true};
  t.push_back(conv("dilated", {1, 24, 14, 15}, 40, a));
  a = {.kernel = {16, 16}, .stride = {16, 16}, .has_bias = true};
  t.push_back(conv("patches16", {1, 3, 48, 64}, 32, a));
  a = {.kernel = {3, 3}, .stride = {2, 1}, .pads = {0, 1, 1, 1}, .groups = 64};
  t.push_back(conv("depthwise_stride2x1", {1, 64, 12, 9}, 64, a));
  a = {.kernel = {5, 5}, .stride = {2, 2}, .pads = {2, 2, 2, 2}, .groups = 72, .has_bias = true};
  t.push_back(conv("depthwise5x5_c72", {2, 72, 15, 14}, 72, a));
  a = {.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .groups = 96, .has_bias = true};
  t.push_back(conv("depthwise3x3_mobilenet", {1, 96, 56, 56}, 96, a));
  a = {.kernel = {3, 3}, .dilation = {2, 2}, .pads = {2, 2, 2, 2}, .groups = 7, .has_bias = true};
  t.push_back(conv("depthwise_dilated_c7", {1, 7, 10, 10}, 7, a));
  a = {.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .groups = 16, .has_bias = true};
  t.push_back(conv("multiplier2", {1, 16, 9, 9}, 32, a));
  a = {.groups = 4, .has_bias = true};
  t.push_back(conv("grouped4_1x1", {1, 64, 6, 7}, 128, a));

  // Epilogues.
  const std::pair<const char*, Activation> activations[] = {
      {"relu", kRelu},
      {"relu6", kRelu6},
      {"leaky_relu", {Function::kLeakyRelu, 0.1f}},
      {"elu", {Function::kElu, 1.25f}},
      {"sigmoid", {Function::kSigmoid}},
      {"hard_sigmoid", {Function::kHardSigmoid, 0.2f, 0.5f}},
      {"tanh", {Function::kTanh}},
      {"silu", {Function::kSilu}},
      {"hard_swish", {Function::kHardSwish}},
      {"gelu", {Function::kGelu}},
      {"gelu_tanh", {Function::kGeluTanh}},
      {"softplus", {Function::kSoftplus}},
  };
  for (const auto& [name, activation] : activations) {
    a = k1;
    a.activation = activation;
    t.push_back(conv(std::string("1x1_") + name, {1, 24, 6, 5}, 40, a));
    a = k3;
    a.activation = activation;
    t.push_back(conv(std::string("3x3_") + name, {1, 16, 6, 5}, 20, a));
  }
  a = {.kernel = {3, 3},
       .pads = {1, 1, 1, 1},
       .groups = 40,
       .has_bias = true,
       .activation = {Function::kHardSwish}};
  t.push_back(conv("depthwise_hard_swish", {1, 40, 8, 8}, 40, a));
  a = k1;
  a.has_residual = true;
  a.activation = kRelu;
  t.push_back(conv("1x1_residual_relu", {1, 32, 8, 7}, 72, a));
  a = k3;
  a.has_residual = true;
  a.activation = kRelu;
  t.push_back(conv("3x3_residual_relu", {1, 18, 9, 8}, 18, a));
  a = k1;
  a.has_bias = false;
  a.has_residual = true;
  t.push_back(conv("1x1_residual_only", {2, 24, 5, 5}, 24, a));
  a = {.kernel = {3, 3},
       .stride = {2, 2},
       .pads = {1, 1, 1, 1},
       .groups = 32,
       .has_residual = true,
       .activation = kRelu6};
  t.push_back(conv("depthwise_residual", {1, 32, 9, 9}, 32, a));
}

void add_conv_transpose_cases(std::vector<OperatorCase>& t) {
  ConvTransposeAttributes a{.kernel = {2, 2}, .stride = {2, 2}, .has_bias = true};
  t.push_back(conv_transpose("2x2_stride2", {1, 32, 7, 6}, 24, a));
  a = {.kernel = {3, 3},
       .stride = {2, 2},
       .pads = {1, 1, 1, 1},
       .output_padding = {1, 1},
       .has_bias = true,
       .activation = kRelu};
  t.push_back(conv_transpose("3x3_stride2_out_pad", {2, 18, 5, 6}, 40, a));
  a = {.kernel = {4, 4}, .stride = {2, 2}, .pads = {1, 1, 1, 1}};
  t.push_back(conv_transpose("4x4_stride2_no_bias", {1, 48, 6, 5}, 32, a));
  a = {.kernel = {3, 2},
       .stride = {1, 3},
       .dilation = {2, 1},
       .pads = {1, 0, 2, 1},
       .has_bias = true};
  t.push_back(conv_transpose("dilated_asymmetric", {1, 7, 8, 6}, 20, a));
  a = {.kernel = {3, 3}, .stride = {2, 2}, .groups = 2, .has_bias = true};
  t.push_back(conv_transpose("grouped2", {1, 16, 5, 5}, 64, a));
  a = {.kernel = {4, 4}, .stride = {2, 2}, .pads = {1, 1, 1, 1}, .groups = 32};
  t.push_back(conv_transpose("depthwise", {1, 32, 6, 6}, 32, a));
}

void add_matrix_cases(std::vector<OperatorCase>& t) {
  LinearAttributes a{.has_bias = true};
  t.push_back(linear("one_row_1000", {1, 512}, 1000, a));
  t.push_back(linear("one_row_rank1", {64}, 48, a));
  t.push_back(linear("rows50_768", {1, 50, 192}, 256, a));
  t.push_back(linear("vit_tokens", {1, 197, 768}, 768, a));
  t.push_back(linear("vgg_classifier", {1, 4096}, 1000, a));
  t.push_back(linear("k7_n18", {5, 7}, 18, a));
  t.push_back(linear("k1000_n7", {3, 1000}, 7, a));
  t.push_back(linear("batch2_n24", {2, 9, 40}, 24, a));
  t.push_back(linear("no_bias", {33, 64}, 80, {}));
  for (Function f : {Function::kRelu, Function::kGelu, Function::kGeluTanh, Function::kTanh,
                     Function::kSigmoid, Function::kSilu}) {
    a = {.has_bias = true, .activation = {f}};
    t.push_back(linear(tandem::to_string(f), {19, 48}, 72, a));
  }
  a = {.has_bias = true, .has_residual = true};
  t.push_back(linear("residual", {1, 25, 64}, 64, a));
  a = {.has_residual = true, .activation = kRelu};
  t.push_back(linear("residual_relu_no_bias", {2, 7, 24}, 40, a));

  t.push_back(matmul("plain", {37, 24}, {24, 50}, {}));
  t.push_back(matmul("heads", {1, 12, 50, 64}, {1, 12, 64, 50}, {.alpha = 0.125f}));
  t.push_back(matmul("transpose_b", {3, 20, 32}, {3, 28, 32}, {.transpose_b = true}));
  t.push_back(matmul("transpose_a", {3, 32, 20}, {3, 32, 28}, {.transpose_a = true}));
  t.push_back(matmul("transpose_both", {2, 17, 20}, {2, 40, 17},
                     {.transpose_a = true, .transpose_b = true, .alpha = -2}));
  t.push_back(matmul("broadcast_a", {1, 1, 9, 16}, {2, 3, 16, 33}, {}));
  t.push_back(matmul("broadcast_b", {2, 3, 9, 16}, {1, 3, 16, 33}, {}));
  t.push_back(matmul("broadcast_both", {2, 1, 9, 7}, {1, 3, 7, 18}, {}));
  t.push_back(matmul("rank5", {2, 1, 2, 5, 8}, {2, 2, 2, 8, 20}, {}));
  t.push_back(matmul("one_row", {4, 1, 64}, {4, 64, 48}, {}));
  t.push_back(matmul("one_column", {4, 48, 64}, {4, 64, 1}, {}));
  OperatorCase weights = matmul("constant_b", {6, 40}, {40, 64}, {});
  weights.operands[1].constant = true;
  t.push_back(weights);
}

void add_pool_cases(std::vector<OperatorCase>& t) {
  using Kind = PoolAttributes::Kind;
  PoolAttributes a;
  for (Kind kind : {Kind::kMax, Kind::kAverage}) {
    const std::string stem = kind == Kind::kMax ? "max_" : "average_";
    a = {.kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}};
    t.push_back(pool(stem + "3x3_stride2_c24", {1, 24, 13, 12}, a));
    a = {.kind = kind, .kernel = {9, 7}, .stride = {1, 1}};
    t.push_back(pool(stem + "global_c1000", {1, 1000, 9, 7}, a));
    a = {.kind = kind, .kernel = {2, 2}, .stride = {2, 2}};
    t.push_back(pool(stem + "2x2_batch2", {2, 64, 8, 8}, a));
    t.push_back(pool(stem + "2x2_ceil", {1, 18, 9, 7}, a, {1, 18, 5, 4}));
    a = {.kind = kind, .kernel = {3, 2}, .stride = {1, 2}, .pads = {2, 0, 1, 1}};
    t.push_back(pool(stem + "asymmetric_c7", {1, 7, 10, 9}, a));
    a = {.kind = kind, .kernel = {3, 3}, .dilation = {2, 3}, .pads = {1, 1, 1, 1}};
    t.push_back(pool(stem + "dilated", {1, 32, 11, 12}, a));
  }
  a = {.kind = Kind::kAverage,
       .kernel = {3, 3},
       .stride = {1, 1},
       .pads = {1, 1, 1, 1},
       .count_include_pad = true};
  t.push_back(pool("average_count_pads", {1, 48, 8, 7}, a));
  a.stride = {2, 2};
  t.push_back(pool("average_count_pads_ceil", {1, 16, 8, 8}, a, {1, 16, 5, 5}));
}

void add_reduce_cases(std::vector<OperatorCase>& t) {
  using Kind = ReduceAttributes::Kind;
  const std::pair<const char*, Kind> kinds[] = {{"mean", Kind::kMean}, {"sum", Kind::kSum},
                                                {"max", Kind::kMax},   {"min", Kind::kMin},
                                                {"prod", Kind::kProd}, {"l2", Kind::kL2}};
  for (const auto& [name, kind] : kinds) {
    const std::string stem = name;
    t.push_back(reduce(stem + "_last", {3, 40, 24}, {kind, {2}, true}));
    t.push_back(reduce(stem + "_first", {5, 40, 18}, {kind, {0}, false}));
    t.push_back(reduce(stem + "_hw_nhwc", {1, 24, 7, 6}, {kind, {2, 3}, true}, kImage, kImage));
    t.push_back(reduce(stem + "_hw_drop", {2, 40, 7, 6}, {kind, {2, 3}, false}, kImage));
    t.push_back(reduce(stem + "_channels", {1, 24, 7, 6}, {kind, {1}, true}, kImage, kImage));
    t.push_back(reduce(stem + "_middle", {3, 7, 33}, {kind, {1}, false}));
    t.push_back(reduce(stem + "_all", {2, 3, 5}, {kind, {0, 1, 2}, false}));
  }
  t.push_back(reduce("mean_hw_nchw", {1, 64, 7, 7}, {Kind::kMean, {2, 3}, true}));
  t.push_back(reduce("sum_outer_inner", {3, 4, 5, 40}, {Kind::kSum, {0, 2}, false}));
  t.push_back(reduce("mean_rank5", {2, 3, 4, 2, 20}, {Kind::kMean, {1, 3}, true}));
}

void add_norm_cases(std::vector<OperatorCase>& t) {
  for (bool log : {false, true}) {
    const std::string stem = log ? "log_" : "";
    t.push_back(softmax(stem + "classes1000", {1, 1000}, 1, log));
    t.push_back(softmax(stem + "heads", {1, 4, 20, 50}, 3, log));
    t.push_back(softmax(stem + "rows7", {40, 7}, 1, log));
    t.push_back(softmax(stem + "axis0", {6, 40}, 0, log));
    t.push_back(softmax(stem + "middle", {2, 9, 24}, 1, log));
    t.push_back(softmax(stem + "channels_nhwc", {1, 24, 5, 6}, 1, log, kImage));
    t.push_back(softmax(stem + "width_nhwc", {1, 24, 5, 6}, 3, log, kImage));
  }
  t.push_back(layer_norm("tokens50_768", {1, 50, 768}));
  t.push_back(layer_norm("d24", {2, 9, 24}));
  t.push_back(layer_norm("d7_epsilon", {11, 7}, 0.1f));
  t.push_back(layer_norm("one_row", {1000}));
}

void add_unary_cases(std::vector<OperatorCase>& t) {
  const Activation functions[] = {
      {Function::kIdentity},
      kRelu,
      kRelu6,
      {Function::kLeakyRelu, 0.01f},
      {Function::kElu, 0.5f},
      {Function::kSigmoid},
      {Function::kHardSigmoid, 0.2f, 0.5f},
      {Function::kTanh},
      {Function::kSilu},
      {Function::kHardSwish},
      {Function::kGelu},
      {Function::kGeluTanh},
      {Function::kSoftplus},
      {Function::kErf},
      {Function::kExp},
      {Function::kLog},
      {Function::kSqrt},
      {Function::kReciprocal},
      {Function::kAbs},
      {Function::kNeg},
      {Function::kFloor},
      {Function::kCeil},
      {Function::kSin},
      {Function::kCos},
  };
  for (const Activation& f : functions) {
    t.push_back(unary(tandem::to_string(f.function), {3, 7, 40}, f));
  }
  t.push_back(unary("relu_nhwc_c24", {2, 24, 5, 7}, kRelu, kImage));
  t.push_back(unary("silu_nhwc_c1000", {1, 1000, 3, 2}, {Function::kSilu}, kImage));
  t.push_back(unary("scalar", {}, {Function::kExp}));
  t.push_back(unary("vector", {100}, {Function::kTanh}));
  t.push_back(unary("dense", {33, 48}, {Function::kSigmoid}, kDense));
  t.push_back(unary("rank5", {2, 3, 2, 3, 18}, kRelu));
}

void add_binary_cases(std::vector<OperatorCase>& t) {
  using Kind = BinaryAttributes::Kind;
  const std::pair<const char*, Kind> kinds[] = {
      {"add", Kind::kAdd}, {"sub", Kind::kSub}, {"mul", Kind::kMul}, {"div", Kind::kDiv},
      {"pow", Kind::kPow}, {"max", Kind::kMax}, {"min", Kind::kMin}};
  for (const auto& [name, kind] : kinds) {
    const std::string stem = name;
    t.push_back(binary(stem, kind, {{3, 5, 40}, kRows}, {{3, 5, 40}, kRows}, kRows));
    t.push_back(
        binary(stem + "_nhwc_c24", kind, {{1, 24, 6, 5}, kImage}, {{1, 24, 6, 5}, kImage}, kImage));
    t.push_back(binary(stem + "_bias", kind, {{4, 9, 24}, kRows}, constant({24}), kRows));
    t.push_back(binary(stem + "_scalar", kind, {{2, 50}, kRows}, constant({}), kRows));
  }
  t.push_back(binary("scalar_first", Kind::kSub, constant({}), {{2, 50}, kRows}, kRows));
  t.push_back(binary("row_by_column", Kind::kMul, {{1, 40}, kRows}, {{7, 1}, kRows}, kRows));
  t.push_back(binary("outer_first", Kind::kSub, {{7, 1}, kRows}, {{1, 40}, kRows}, kRows));
  t.push_back(
      binary("lower_rank_first", Kind::kSub, {{5, 1}, kRows}, {{2, 3, 5, 18}, kRows}, kRows));
  t.push_back(binary("middle", Kind::kAdd, {{2, 6, 1, 24}, kRows}, {{2, 1, 5, 24}, kRows}, kRows));
  t.push_back(binary("squeeze_excite", Kind::kMul, {{1, 72, 6, 5}, kImage}, {{1, 72, 1, 1}, kImage},
                     kImage));
  t.push_back(binary("channel_constant", Kind::kMul, {{2, 24, 6, 5}, kImage}, constant({24, 1, 1}),
                     kImage));
  t.push_back(binary("plane", Kind::kAdd, {{2, 24, 6, 5}, kImage}, {{1, 1, 6, 5}, kImage}, kImage));
  t.push_back(binary("width_vector", Kind::kAdd, {{1, 24, 6, 5}, kImage}, constant({5}), kImage));
  t.push_back(
      binary("mixed_layouts", Kind::kAdd, {{1, 24, 6, 5}, kImage}, {{1, 24, 6, 5}, kRows}, kImage));
  t.push_back(binary("mixed_layouts_to_rows", Kind::kSub, {{2, 18, 4, 5}, kImage},
                     {{2, 18, 4, 5}, kRows}, kRows));
  t.push_back(binary("add_relu", Kind::kAdd, {{1, 64, 7, 7}, kImage}, {{1, 64, 7, 7}, kImage},
                     kImage, kRelu));
  t.push_back(binary("mul_sigmoid", Kind::kMul, {{6, 24}, kRows}, {{6, 24}, kRows}, kRows,
                     {Function::kSigmoid}));
  t.push_back(binary("sub_clip", Kind::kSub, {{6, 24}, kRows}, {{6, 24}, kRows}, kRows,
                     {Function::kClip, -0.5f, 0.25f}));
  t.push_back(binary("scalars", Kind::kAdd, {{}, kRows}, {{}, kRows}, kRows));
}

void add_movement_cases(std::vector<OperatorCase>& t) {
  // Concat.
  t.push_back(
      concat("channels_aligned", 1, {{{1, 32, 6, 5}, kImage}, {{1, 16, 6, 5}, kImage}}, kImage));
  t.push_back(concat("channels_odd", 1,
                     {{{2, 24, 6, 5}, kImage}, {{2, 7, 6, 5}, kImage}, {{2, 18, 6, 5}, kImage}},
                     kImage));
  t.push_back(concat("channels_nchw", 1, {{{1, 24, 6, 5}, kRows}, {{1, 18, 6, 5}, kRows}}, kRows));
  t.push_back(concat("rows_nhwc", 2, {{{1, 24, 3, 5}, kImage}, {{1, 24, 4, 5}, kImage}}, kImage));
  t.push_back(concat("width_nhwc", 3, {{{1, 24, 3, 5}, kImage}, {{1, 24, 3, 2}, kImage}}, kImage));
  t.push_back(concat("tokens", 1, {{{1, 1, 48}, kRows, true}, {{1, 16, 48}, kRows}}, kRows));
  t.push_back(concat("last_axis", 2, {{{3, 4, 10}, kRows}, {{3, 4, 23}, kRows}}, kRows));
  t.push_back(concat("one_part", 0, {{{3, 40}, kRows}}, kRows));
  t.push_back(
      concat("mixed_layouts", 1, {{{1, 16, 6, 5}, kImage}, {{1, 24, 6, 5}, kRows}}, kImage));

  // Copy: layout conversion, transpose, slice, reversed slice, expand, block rearrangement.
  const CopyAttributes same4{{0, 1, 2, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}};
  t.push_back(copy("to_nhwc", {{1, 24, 6, 5}, kRows}, {1, 24, 6, 5}, same4, kImage));
  t.push_back(copy("to_nhwc_c3", {{1, 3, 17, 19}, kDense}, {1, 3, 17, 19}, same4, kImage));
  t.push_back(copy("to_nchw", {{2, 18, 6, 5}, kImage}, {2, 18, 6, 5}, same4, kRows));
  t.push_back(copy("to_dense", {{1, 10, 40}, kRows}, {1, 10, 40}, {{0, 1, 2}, {1, 1, 1}, {0, 0, 0}},
                   kDense));
  t.push_back(copy("transpose2d", {{18, 40}, kRows}, {40, 18}, {{1, 0}, {1, 1}, {0, 0}}, kRows));
  t.push_back(copy("split_heads", {{1, 20, 4, 24}, kRows}, {1, 4, 20, 24},
                   {{0, 2, 1, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}}, kRows));
  t.push_back(copy("transpose_last", {{1, 4, 20, 24}, kRows}, {1, 4, 24, 20},
                   {{0, 1, 3, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}}, kRows));
  t.push_back(copy("slice_channels", {{1, 64, 6, 5}, kImage}, {1, 24, 6, 5},
                   {{0, 1, 2, 3}, {1, 1, 1, 1}, {0, 10, 0, 0}}, kImage));
  t.push_back(copy("slice_steps", {{9, 50}, kRows}, {4, 24}, {{0, 1}, {2, 2}, {1, 1}}, kRows));
  t.push_back(copy("reverse", {{9, 40}, kRows}, {9, 40}, {{0, 1}, {-1, -1}, {8, 39}}, kRows));
  t.push_back(
      copy("expand", {{1, 24}, kRows}, {3, 7, 24}, {{kNone, kNone, 1}, {1, 1, 1}, {0, 0}}, kRows));
  t.push_back(copy("expand_scalar", {{}, kRows}, {5, 40}, {{kNone, kNone}, {1, 1}, {}}, kRows));
  t.push_back(copy("squeeze", {{4, 1, 24}, kRows}, {4, 24}, {{0, 2}, {1, 1}, {0, 0, 0}}, kRows));
  t.push_back(copy("space_to_depth", {{1, 8, 12}, kRows}, {4, 6, 2, 2},
                   {{1, 2, 1, 2}, {2, 2, 1, 1}, {0, 0, 0}}, kRows));
  t.push_back(copy(
      "tile_rank8", {{2, 3, 4, 5}, kRows}, {2, 2, 3, 3, 2, 4, 4, 5},
      {{kNone, 0, kNone, 1, kNone, 2, kNone, 3}, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0}}, kRows));
  t.push_back(copy("int64_transpose", {{6, 20}, kRows, false, DataType::kInt64, -100, 100}, {20, 6},
                   {{1, 0}, {1, 1}, {0, 0}}, kRows));

  // Reshape, where memory allows no alias and where it does.
  t.push_back(reshape("flatten_nhwc", {{1, 24, 5, 6}, kImage}, {1, 720}, kRows));
  t.push_back(reshape("flatten_nchw", {{2, 24, 5, 6}, kRows}, {2, 720}, kRows));
  t.push_back(reshape("to_image", {{1, 720}, kRows}, {1, 24, 5, 6}, kImage));
  t.push_back(reshape("split_heads", {{1, 20, 96}, kRows}, {1, 20, 4, 24}, kRows));
  t.push_back(reshape("merge_heads", {{1, 20, 4, 24}, kRows}, {1, 20, 96}, kRows));
  t.push_back(reshape("pixels_to_tokens", {{1, 40, 4, 5}, kImage}, {1, 40, 20}, kRows));
  t.push_back(reshape("tiled_rank8", {{2, 2, 3, 3, 2, 4, 4, 5}, kRows}, {4, 9, 8, 20}, kRows));
  t.push_back(reshape("regroup", {{6, 35}, kRows}, {14, 15}, kRows));
  t.push_back(reshape("view", {{1, 48, 64}, kRows}, {48, 64}, kRows));
  t.push_back(reshape("to_dense", {{3, 40}, kRows}, {2, 60}, kDense));
  t.push_back(reshape("from_scalar", {{}, kRows}, {1, 1}, kRows));
  t.push_back(reshape("int64", {{4, 18}, kRows, false, DataType::kInt64, -9, 9}, {72}, kRows));

  // Gather.
  t.push_back(gather("embedding", {{50, 48}, kRows, true}, {2, 9}, 0));
  t.push_back(gather("rows", {{20, 24}, kRows}, {5}, 0));
  t.push_back(gather("scalar_index", {{1, 20, 48}, kRows}, {}, 1));
  t.push_back(gather("last_axis", {{4, 6, 33}, kRows}, {7}, 2));
  t.push_back(gather("matrix_middle", {{3, 11, 18}, kRows}, {2, 3}, 1));
  t.push_back(gather("int64", {{30}, kRows, false, DataType::kInt64, -9, 9}, {4, 5}, 0));

  // Pad.
  using Mode = PadAttributes::Mode;
  for (const auto& [name, mode] : {std::pair{"constant", Mode::kConstant},
                                   {"reflect", Mode::kReflect},
                                   {"edge", Mode::kEdge}}) {
    const std::string stem = name;
    const float value = mode == Mode::kConstant ? 1.5f : 0;
    t.push_back(
        pad(stem + "_nhwc", {1, 24, 6, 5}, {mode, {0, 0, 2, 1}, {0, 0, 1, 3}, value}, kImage));
    t.push_back(
        pad(stem + "_nchw", {2, 5, 6, 7}, {mode, {0, 0, 1, 2}, {0, 0, 3, 4}, value}, kRows));
    t.push_back(pad(stem + "_all_axes", {3, 4, 18}, {mode, {1, 2, 3}, {2, 0, 5}, value}, kRows));
  }
  t.push_back(
      pad("channels", {1, 24, 5, 4}, {Mode::kConstant, {0, 8, 0, 0}, {0, 16, 0, 0}, 0}, kImage));
}

void add_resize_cases(std::vector<OperatorCase>& t) {
  using Mode = ResizeAttributes::Mode;
  using Coordinates = ResizeAttributes::Coordinates;
  using Nearest = ResizeAttributes::Nearest;
  ResizeAttributes a;
  const std::pair<const char*, Coordinates> coordinates[] = {
      {"half_pixel", Coordinates::kHalfPixel},
      {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
      {"align_corners", Coordinates::kAlignCorners},
      {"asymmetric", Coordinates::kAsymmetric}};
  const std::pair<const char*, Mode> modes[] = {
      {"nearest", Mode::kNearest}, {"linear", Mode::kLinear}, {"cubic", Mode::kCubic}};
  for (const auto& [mode_name, mode] : modes) {
    for (const auto& [name, c] : coordinates) {
      a = {.mode = mode, .coordinates = c};
      const std::string stem = std::string(mode_name) + "_" + name;
      t.push_back(resize(stem + "_up_c24", {1, 24, 5, 6}, 10, 12, a));
      t.push_back(resize(stem + "_down_c7", {1, 7, 12, 9}, 6, 5, a));
    }
  }
  a = {.mode = Mode::kLinear};
  t.push_back(resize("linear_batch2", {2, 18, 4, 5}, 9, 13, a));
  a = {.coordinates = Coordinates::kAsymmetric, .nearest = Nearest::kFloor};
  t.push_back(resize("nearest_floor_x2", {1, 40, 7, 6}, 14, 12, a));
  a.nearest = Nearest::kCeil;
  t.push_back(resize("nearest_ceil", {1, 16, 5, 5}, 8, 10, a));
  a.nearest = Nearest::kRoundPreferCeil;
  t.push_back(resize("nearest_prefer_ceil", {1, 16, 5, 5}, 10, 8, a));
  a = {.mode = Mode::kCubic, .cubic_a = -0.5f};
  t.push_back(resize("cubic_half", {1, 16, 6, 6}, 11, 14, a));
}

// ---- Random cases ---------------------------------------------------------------------------

Layout random_layout(Random& r) { return r.coin() ? kImage : kRows; }
int64_t random_channels(Random& r) {
  return r.pick<int64_t>({1, 3, 7, 16, 18, 24, 32, 40, 48, 64, 100});
}
Dims random_image(Random& r) {
  return {r.pick<int64_t>({1, 1, 1, 2, 3}), random_channels(r), r.integer(1, 14), r.integer(1, 14)};
}
Dims random_dims(Random& r, int64_t most_rank) {
  Dims dims;
  for (int64_t rank = r.integer(1, most_rank); rank > 0; --rank) {
    dims.push_back(rank == 1 ? r.integer(1, 50) : r.integer(1, 6));
  }
  return dims;
}
Activation random_activation(Random& r) {
  return r.pick<Activation>({{},
                             {},
                             kRelu,
                             kRelu6,
                             {Function::kLeakyRelu, 0.1f},
                             {Function::kSigmoid},
                             {Function::kTanh},
                             {Function::kSilu},
                             {Function::kHardSwish},
                             {Function::kGelu}});
}

OperatorCase random_conv(Random& r) {
  ConvAttributes a;
  a.has_bias = r.coin();
  a.has_residual = r.integer(0, 3) == 0;
  a.activation = random_activation(r);
  Dims x = random_image(r);
  int64_t m = random_channels(r);
  const int64_t style = r.integer(0, 5);  // 0, 1: 1x1; 2: depthwise; 3: grouped; 4, 5: dense
  if (style >= 2) {
    for (int i = 0; i < 2; ++i) {
      a.kernel[i] = r.integer(1, 5);
      a.stride[i] = r.integer(1, 3);
      a.dilation[i] = r.pick<int64_t>({1, 1, 2});
      a.pads[i] = r.integer(0, a.kernel[i] - 1);
      a.pads[2 + i] = r.integer(0, a.kernel[i] - 1);
      x[2 + i] = std::max(x[2 + i], a.dilation[i] * (a.kernel[i] - 1) + 1);
    }
  }
  if (style == 2) a.groups = m = x[1];
  if (style == 3) {
    a.groups = r.integer(2, 4);
    x[1] = a.groups * r.pick<int64_t>({1, 4, 6, 16});
    m = a.groups * r.pick<int64_t>({1, 4, 6, 16});
  }
  return conv("random", x, m, a);
}

OperatorCase random_conv_transpose(Random& r) {
  ConvTransposeAttributes a;
  a.has_bias = r.coin();
  a.activation = random_activation(r);
  a.groups = r.pick<int64_t>({1, 1, 2, 3});
  Dims x = random_image(r);
  x[1] = a.groups * r.pick<int64_t>({1, 6, 16, 24});
  for (int i = 0; i < 2; ++i) {
    a.kernel[i] = r.integer(1, 4);
    a.stride[i] = r.integer(1, 3);
    a.dilation[i] = r.pick<int64_t>({1, 1, 2});
    a.output_padding[i] = r.integer(0, a.stride[i] - 1);
    // The output keeps at least one element.
    const int64_t reach = a.dilation[i] * (a.kernel[i] - 1);
    a.pads[i] = r.integer(0, reach / 2);
    a.pads[2 + i] = r.integer(0, reach / 2);
  }
  return conv_transpose("random", x, a.groups * r.pick<int64_t>({1, 8, 16, 20}), a);
}

OperatorCase random_linear(Random& r) {
  LinearAttributes a{r.coin(), r.integer(0, 3) == 0, random_activation(r)};
  Dims x = random_dims(r, 3);
  x.back() = r.integer(1, 300);
  return linear("random", x, r.integer(1, 120), a);
}

OperatorCase random_matmul(Random& r) {
  const MatMulAttributes m{r.coin(), r.coin(), r.pick({1.0f, 0.125f})};
  Dims a;
  Dims b;
  for (int64_t batch = r.integer(0, 2); batch > 0; --batch) {
    const int64_t extent = r.integer(1, 4);
    const int64_t how = r.integer(0, 3);
    a.push_back(how == 0 ? 1 : extent);
    b.push_back(how == 1 ? 1 : extent);
  }
  const int64_t rows = r.integer(1, 40);
  const int64_t inner = r.integer(1, 70);
  const int64_t columns = r.integer(1, 60);
  a.insert(a.end(), {m.transpose_a ? inner : rows, m.transpose_a ? rows : inner});
  b.insert(b.end(), {m.transpose_b ? columns : inner, m.transpose_b ? inner : columns});
  return matmul("random", a, b, m);
}

OperatorCase random_pool(Random& r) {
  PoolAttributes a;
  a.kind = r.coin() ? PoolAttributes::Kind::kMax : PoolAttributes::Kind::kAverage;
  a.count_include_pad = a.kind == PoolAttributes::Kind::kAverage && r.coin();
  Dims x = random_image(r);
  for (int i = 0; i < 2; ++i) {
    a.kernel[i] = r.integer(1, 4);
    a.stride[i] = r.integer(1, 3);
    a.dilation[i] = r.pick<int64_t>({1, 1, 2});
    const int64_t reach = a.dilation[i] * (a.kernel[i] - 1);
    x[2 + i] = std::max(x[2 + i], reach + 1);
    // No window lies in the pads altogether: its maximum would be that of no elements.
    a.pads[i] = r.integer(0, a.dilation[i] == 1 ? reach / 2 : 0);
    a.pads[2 + i] = r.integer(0, a.dilation[i] == 1 ? reach / 2 : 0);
  }
  return pool("random", x, a);
}

OperatorCase random_reduce(Random& r) {
  using Kind = ReduceAttributes::Kind;
  ReduceAttributes a;
  a.kind = r.pick({Kind::kMean, Kind::kSum, Kind::kMax, Kind::kMin, Kind::kProd, Kind::kL2});
  a.keep_dims = r.coin();
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 5);
  for (int d = 0; d < static_cast<int>(x.size()); ++d) {
    if (r.coin()) a.axes.push_back(d);
  }
  if (a.axes.empty()) a.axes.push_back(static_cast<int>(x.size()) - 1);
  return reduce("random", x, a, image ? random_layout(r) : kRows,
                image && a.keep_dims ? random_layout(r) : kRows);
}

OperatorCase random_softmax(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  const int axis = static_cast<int>(r.integer(0, static_cast<int64_t>(x.size()) - 1));
  return softmax("random", x, axis, r.coin(), image ? random_layout(r) : kRows);
}

OperatorCase random_layer_norm(Random& r) {
  Dims x = random_dims(r, 3);
  x.back() = r.integer(2, 200);
  return layer_norm("random", x);
}

OperatorCase random_unary(Random& r) {
  const bool image = r.coin();
  return unary("random", image ? random_image(r) : random_dims(r, 5), random_activation(r),
               image ? random_layout(r) : kRows);
}

OperatorCase random_binary(Random& r) {
  using Kind = BinaryAttributes::Kind;
  const bool image = r.coin();
  const Dims y = image ? random_image(r) : random_dims(r, 4);
  const auto operand = [&] {
    Operand o;
    o.dims = y;
    o.layout = image ? random_layout(r) : kRows;
    if (r.integer(0, 2) == 0) return o;
    for (int64_t& extent : o.dims) {
      if (r.integer(0, 2) == 0) extent = 1;
    }
    if (r.coin()) {
      o.dims.erase(o.dims.begin(), o.dims.begin() + r.integer(0, static_cast<int64_t>(y.size())));
      o.constant = r.coin();
    }
    if (o.dims.size() != 4) o.layout = kRows;
    return o;
  };
  Operand a = operand();
  Operand b = operand();
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  return binary("random", r.pick({Kind::kAdd, Kind::kSub, Kind::kMul, Kind::kDiv, Kind::kMax}), a,
                b, image && rank == 4 ? random_layout(r) : kRows, random_activation(r));
}

OperatorCase random_concat(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  const int axis = static_cast<int>(r.integer(0, static_cast<int64_t>(x.size()) - 1));
  std::vector<Operand> parts;
  for (int64_t n = r.integer(1, 4); n > 0; --n) {
    Operand part{x, image ? random_layout(r) : kRows};
    part.dims[axis] = r.pick<int64_t>({1, 3, 7, 16, 24, 32});
    parts.push_back(part);
  }
  return concat("random", axis, parts, image ? random_layout(r) : kRows);
}

OperatorCase random_copy(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  CopyAttributes a;
  Dims y;
  // A random permutation of the axes of x, each walked forwards or backwards over a part of it.
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    axes.insert(axes.begin() + r.integer(0, i), i);
  }
  a.start.resize(x.size());
  for (int axis : axes) {
    const int64_t step = r.pick<int64_t>({1, 1, 1, 2, -1});
    const int64_t magnitude = std::abs(step);
    const int64_t extent = r.integer(1, (x[axis] + magnitude - 1) / magnitude);
    const int64_t slack = x[axis] - (extent - 1) * magnitude - 1;
    const int64_t low = r.integer(0, slack);
    a.start[axis] = step > 0 ? low : low + (extent - 1) * magnitude;
    a.source_axis.push_back(axis);
    a.step.push_back(step);
    y.push_back(extent);
  }
  if (!image && r.coin()) {
    a.source_axis.insert(a.source_axis.begin(), kNone);
    a.step.insert(a.step.begin(), 1);
    y.insert(y.begin(), r.integer(1, 4));
  }
  return copy("random", {x, image ? random_layout(r) : kRows}, y, a,
              y.size() == 4 ? random_layout(r) : r.pick({kRows, kDense}));
}

OperatorCase random_reshape(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  // Deal the prime factors of the element count to the dimensions of the output.
  Dims y(static_cast<size_t>(r.integer(1, 4)), 1);
  int64_t left = element_count(x);
  for (int64_t factor = 2; left > 1;) {
    if (left % factor == 0) {
      y[r.integer(0, static_cast<int64_t>(y.size()) - 1)] *= factor;
      left /= factor;
    } else {
      ++factor;
    }
  }
  return reshape("random", {x, image ? random_layout(r) : kRows}, y,
                 y.size() == 4 ? random_layout(r) : kRows);
}

OperatorCase random_gather(Random& r) {
  const Dims x = random_dims(r, 4);
  Dims indices;
  for (int64_t rank = r.integer(0, 2); rank > 0; --rank) indices.push_back(r.integer(1, 6));
  return gather("random", {x, kRows, r.coin()}, indices,
                static_cast<int>(r.integer(0, static_cast<int64_t>(x.size()) - 1)));
}

OperatorCase random_pad(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  PadAttributes a;
  a.mode = r.pick(
      {PadAttributes::Mode::kConstant, PadAttributes::Mode::kReflect, PadAttributes::Mode::kEdge});
  a.value = 0.25f;
  for (int64_t extent : x) {
    const int64_t most =
        a.mode == PadAttributes::Mode::kReflect ? std::min<int64_t>(extent - 1, 4) : 4;
    a.before.push_back(r.integer(0, most));
    a.after.push_back(r.integer(0, most));
  }
  return pad("random", x, a, image ? random_layout(r) : kRows);
}

OperatorCase random_resize(Random& r) {
  using Coordinates = ResizeAttributes::Coordinates;
  ResizeAttributes a;
  a.mode = r.pick({ResizeAttributes::Mode::kLinear, ResizeAttributes::Mode::kCubic,
                   ResizeAttributes::Mode::kNearest});
  a.coordinates = r.pick({Coordinates::kHalfPixel, Coordinates::kPytorchHalfPixel,
                          Coordinates::kAlignCorners, Coordinates::kAsymmetric});
  const Dims x = random_image(r);
  return resize("random", x, r.integer(1, 20), r.integer(1, 20), a);
}

// ---- Tolerances -----------------------------------------------------------------------------

// How much an activation can stretch an error of its argument.
double slope(const Activation& activation) {
  switch (activation.function) {
    case Function::kLeakyRelu:
    case Function::kElu:
    case Function::kHardSigmoid:
      return std::max(1.0, std::abs(static_cast<double>(activation.alpha)));
    default:
      return 1.5;  // hard swish; everything else in use as an epilogue is flatter
  }
}

double largest(const ReferenceTensor& tensor) {
  double most = 0;
  for (double value : tensor.values) most = std::max(most, std::abs(value));
  return most;
}

// Summands of an output element, and the sum of their magnitudes per element.
struct Sums {
  double count = 1;
  std::vector<double> magnitude;
};

// The same operator on magnitudes, without its activation.
template <typename A>
std::vector<double> sum_of_magnitudes(const BuiltCase& built, const A& attributes,
                                      const std::vector<ReferenceTensor>& values) {
  A plain = attributes;
  if constexpr (requires { plain.activation; }) plain.activation = {};
  if constexpr (requires { plain.alpha; }) plain.alpha = std::abs(plain.alpha);
  const Operator& op = built.graph.op(0);
  Graph graph;
  std::vector<TensorId> inputs;
  std::vector<ReferenceTensor> magnitudes;
  for (TensorId id : op.inputs) {
    inputs.push_back(graph.add_input("", DataType::kFloat32, values[id].dims));
    magnitudes.push_back(values[id]);
    for (double& value : magnitudes.back().values) value = std::abs(value);
  }
  std::vector<const ReferenceTensor*> operands;
  for (const ReferenceTensor& magnitude : magnitudes) operands.push_back(&magnitude);
  if (!graph.add("", plain, inputs, built.graph.output_of(0).dims).ok()) std::abort();
  return reference(graph, 0, operands).values;
}

Sums sums_of(const BuiltCase& built, const std::vector<ReferenceTensor>& values) {
  const Operator& op = built.graph.op(0);
  const ReferenceTensor& x = values[op.inputs[0]];
  const ReferenceTensor& y = values[op.output];
  const auto per_output = [&] {
    return static_cast<double>(x.values.size()) / static_cast<double>(y.values.size());
  };
  Sums sums;
  switch (op.kind()) {
    case OperatorKind::kConv: {
      const Dims& w = values[op.inputs[1]].dims;
      sums.count = static_cast<double>(w[1] * w[2] * w[3] + 2);
      sums.magnitude = sum_of_magnitudes(built, op.as<ConvAttributes>(), values);
      return sums;
    }
    case OperatorKind::kConvTranspose: {
      const Dims& w = values[op.inputs[1]].dims;
      sums.count = static_cast<double>(w[0] * w[2] * w[3] + 1);
      sums.magnitude = sum_of_magnitudes(built, op.as<ConvTransposeAttributes>(), values);
      return sums;
    }
    case OperatorKind::kLinear:
      sums.count = static_cast<double>(x.dims.back() + 2);
      sums.magnitude = sum_of_magnitudes(built, op.as<LinearAttributes>(), values);
      return sums;
    case OperatorKind::kMatMul:
      sums.count = work_of(built.graph, 0).flops / (2 * static_cast<double>(y.values.size()));
      sums.magnitude = sum_of_magnitudes(built, op.as<MatMulAttributes>(), values);
      return sums;
    case OperatorKind::kReduce:
      sums.count = per_output();
      sums.magnitude = sum_of_magnitudes(built, op.as<ReduceAttributes>(), values);
      return sums;
    default:
      break;
  }
  // Neither long sums nor cancellation beyond the size of the operands.
  double scale = 1;
  for (TensorId input : op.inputs) scale += largest(values[input]);
  if (op.kind() == OperatorKind::kSoftmax) {
    sums.count = static_cast<double>(x.dims[op.as<SoftmaxAttributes>().axis]);
  } else if (op.kind() == OperatorKind::kLayerNorm) {
    sums.count = static_cast<double>(x.dims.back());
  } else if (op.kind() == OperatorKind::kPool) {
    const PoolAttributes& pool = op.as<PoolAttributes>();
    sums.count = static_cast<double>(pool.kernel[0] * pool.kernel[1]);
  } else if (op.kind() == OperatorKind::kResize) {
    // Weights come from positions, whose error grows with the extents.
    sums.count = 16 * static_cast<double>(std::max(y.dims[2], y.dims[3]));
  }
  // A softmax multiplies: its errors are relative to its small values.
  const bool relative = op.kind() == OperatorKind::kSoftmax && !op.as<SoftmaxAttributes>().log;
  for (double value : y.values) {
    sums.magnitude.push_back(relative ? scale * std::abs(value) : scale + std::abs(value));
  }
  return sums;
}

Activation epilogue_of(const Attributes& attributes) {
  return std::visit(
      [](const auto& a) -> Activation {
        if constexpr (requires { a.activation; }) {
          return a.activation;
        } else {
          return {};
        }
      },
      attributes);
}

bool is_exact(const Operator& op) {
  switch (op.kind()) {
    case OperatorKind::kConcat:
    case OperatorKind::kCopy:
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
    case OperatorKind::kPad:
      return true;
    case OperatorKind::kPool:
      return op.as<PoolAttributes>().kind == PoolAttributes::Kind::kMax;
    case OperatorKind::kReduce:
      return op.as<ReduceAttributes>().kind == ReduceAttributes::Kind::kMax ||
             op.as<ReduceAttributes>().kind == ReduceAttributes::Kind::kMin;
    case OperatorKind::kResize:
      return op.as<ResizeAttributes>().mode == ResizeAttributes::Mode::kNearest;
    default:
      return false;
  }
}

HostTensor random_values(const Operand& operand, Random& r) {
  HostTensor tensor(operand.type, operand.dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (operand.type == DataType::kFloat32) {
      tensor.data<float>()[i] = static_cast<float>(r.real(operand.low, operand.high));
    } else {
      tensor.data<int64_t>()[i] =
          r.integer(static_cast<int64_t>(operand.low), static_cast<int64_t>(operand.high));
    }
  }
  return tensor;
}

}  // namespace

const std::vector<OperatorCase>& operator_table() {
  static const std::vector<OperatorCase> table = [] {
    std::vector<OperatorCase> t;
    add_conv_cases(t);
    add_conv_transpose_cases(t);
    add_matrix_cases(t);
    add_pool_cases(t);
    add_reduce_cases(t);
    add_norm_cases(t);
    add_unary_cases(t);
    add_binary_cases(t);
    add_movement_cases(t);
    add_resize_cases(t);
    return t;
  }();
  return table;
}

OperatorCase random_case(uint64_t seed) {
  using Generator = OperatorCase (*)(Random&);
  static constexpr Generator kGenerators[kOperatorKinds] = {
      random_conv,    random_conv_transpose, random_linear,  random_matmul,
      random_pool,    random_reduce,         random_softmax, random_layer_norm,
      random_unary,   random_binary,         random_concat,  random_copy,
      random_reshape, random_gather,         random_pad,     random_resize};
  Random r(seed);
  OperatorCase c = kGenerators[seed % kOperatorKinds](r);
  c.name += "_" + std::to_string(seed);
  return c;
}

StatusOr<BuiltCase> build(const OperatorCase& c, uint64_t seed) {
  Random r(seed);
  BuiltCase built;
  built.graph.name = c.name;
  std::vector<TensorId> inputs;
  for (const Operand& operand : c.operands) {
    const std::string name = "operand" + std::to_string(inputs.size());
    HostTensor value = random_values(operand, r);
    if (operand.constant) {
      inputs.push_back(built.graph.add_constant(name, std::move(value)));
      built.graph.mutable_tensor(inputs.back()).layout = operand.layout;
    } else {
      inputs.push_back(built.graph.add_input(name, operand.type, operand.dims, operand.layout));
      built.inputs.push_back(std::move(value));
    }
  }
  TANDEM_ASSIGN_OR_RETURN(TensorId output,
                          built.graph.add(c.name, c.attributes, inputs, c.output, c.output_layout));
  built.graph.mark_output(output);
  TANDEM_RETURN_IF_ERROR(built.graph.validate());
  return built;
}

Expected expected_output(const BuiltCase& built) {
  const Operator& op = built.graph.op(0);
  std::vector<ReferenceTensor> values = reference(built.graph, built.inputs);
  Expected expected;
  expected.tolerance.resize(values[op.output].values.size(), 0);
  if (!is_exact(op)) {
    constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
    const Sums sums = sums_of(built, values);
    const double stretch = slope(epilogue_of(op.attributes));
    for (size_t i = 0; i < expected.tolerance.size(); ++i) {
      const double y = std::abs(values[op.output].values[i]);
      expected.tolerance[i] =
          kEpsilon *
          (stretch * (16 + 4 * std::sqrt(sums.count)) * sums.magnitude[i] + 32 * (1 + y));
    }
  }
  expected.output = std::move(values[op.output]);
  return expected;
}

}  // namespace tandem::testing
