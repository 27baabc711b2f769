#include "tests/support/operator_table.h"

#include "tests/support/operator_cases.h"
#include "tests/support/operator_makers.h"

namespace tandem::testing {
namespace {

using namespace makers;  // NOLINT: the table is written in them

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

}  // namespace tandem::testing
