#include "tests/lane/opencl/operator_cases.h"

#include <utility>

#include "fmt/format.h"
#include "tests/lane/opencl/case_builder.h"

namespace tandem::opencl {
namespace {

Case linear_case(Dims x, int64_t n, bool residual, Activation activation, Layout layout) {
  Builder b(fmt::format("linear_{}_n{}{}_{}{}", to_string(x), n, residual ? "_residual" : "",
                        to_string(activation.function), layout.padded ? "" : "_dense"));
  LinearAttributes linear{true, residual, activation};
  std::vector<TensorId> inputs = {b.input(x, layout), b.constant({x.back(), n}), b.constant({n})};
  Dims y = x;
  y.back() = n;
  if (residual) inputs.push_back(b.input(y, layout));
  return b.finish(linear, inputs, layout);
}

Case matmul_case(Dims a, Dims b_dims, bool ta, bool tb, float alpha) {
  Builder b(fmt::format("matmul_{}x{}{}{}", to_string(a), to_string(b_dims), ta ? "_ta" : "",
                        tb ? "_tb" : ""));
  const TensorId x = b.input(a, kRows);
  const TensorId y = b.input(b_dims, kRows);
  return b.finish(MatMulAttributes{ta, tb, alpha}, {x, y}, kRows);
}

Case unary_case(Function function, float alpha = 0, float beta = 0, float low = -4,
                float high = 4) {
  Builder b(fmt::format("unary_{}", to_string(function)));
  const TensorId x = b.input({2, 19, 5, 7}, kImages, low, high);
  return b.finish(UnaryAttributes{{function, alpha, beta}}, {x}, kImages);
}

Case binary_case(BinaryAttributes::Kind kind, Dims a, Dims b_dims, Layout layout,
                 Activation activation = {}) {
  Builder b(fmt::format("binary{}_{}_{}_{}", static_cast<int>(kind), to_string(a),
                        to_string(b_dims), layout.order == Order::kRowMajor ? "rows" : "images"));
  const TensorId x = b.input(a, a.size() == 4 ? layout : kRows, 0.5f, 2);
  const TensorId y = b.input(b_dims, b_dims.size() == 4 ? layout : kRows, 0.5f, 2);
  return b.finish(BinaryAttributes{kind, activation}, {x, y}, layout);
}

}  // namespace

std::vector<Case> matrix_cases() {
  std::vector<Case> cases;
  cases.push_back(conv_transpose_case(20, 24, {2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}, 1));
  cases.push_back(conv_transpose_case(8, 40, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1));
  cases.push_back(conv_transpose_case(16, 32, {4, 3}, {3, 1}, {1, 0, 1, 2}, {0, 0}, 2));
  cases.push_back(conv_transpose_case(12, 20, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4));
  for (const int64_t rows : {1, 2, 3, 4, 7, 13, 50, 57, 197}) {
    cases.push_back(linear_case({rows, 70}, 50, rows % 2 == 0, {Function::kGelu}, kRows));
  }
  cases.push_back(linear_case({1, 1100}, 130, false, {}, kRows));
  cases.push_back(linear_case({2, 13, 48}, 96, true, {Function::kGeluTanh}, kRows));
  cases.push_back(linear_case({2, 3, 5, 20}, 30, true, {}, kRows));
  cases.push_back(linear_case({9, 35}, 21, true, {}, kDense));
  cases.push_back(matmul_case({1, 3, 37, 64}, {1, 3, 37, 64}, false, true, 0.125f));
  cases.push_back(matmul_case({2, 3, 37, 29}, {2, 3, 29, 40}, false, false, 1));
  cases.push_back(matmul_case({4, 30, 20}, {1, 30, 17}, true, false, 1));
  cases.push_back(matmul_case({1, 5, 9}, {3, 11, 9}, false, true, 2));
  cases.push_back(matmul_case({20, 600}, {600, 70}, false, false, 1));
  cases.push_back(matmul_case({15, 600}, {90, 600}, false, true, 1));
  cases.push_back(matmul_case({40, 6}, {6, 1}, false, false, 1));
  return cases;
}

std::vector<Case> other_cases() {
  std::vector<Case> cases;
  for (const bool average : {false, true}) {
    for (const bool count_pads : {false, true}) {
      Builder b(fmt::format("pool_average{}_count{}", average, count_pads));
      const TensorId x = b.input({2, 35, 11, 13}, kImages);
      PoolAttributes pool;
      pool.kind = average ? PoolAttributes::Kind::kAverage : PoolAttributes::Kind::kMax;
      pool.kernel = {3, 2};
      pool.stride = {2, 2};
      pool.pads = {1, 0, 1, 1};
      pool.count_include_pad = count_pads;
      cases.push_back(b.finish(pool, {x}, kImages));
    }
  }
  {
    Builder b("pool_global");
    const TensorId x = b.input({1, 40, 7, 7}, kImages);
    cases.push_back(b.finish(PoolAttributes{PoolAttributes::Kind::kAverage, {7, 7}}, {x}, kImages));
  }
  for (int f = 0; f <= static_cast<int>(Function::kCos); ++f) {
    const auto function = static_cast<Function>(f);
    const bool positive = function == Function::kLog || function == Function::kSqrt ||
                          function == Function::kReciprocal;
    const bool clip = function == Function::kClip;
    cases.push_back(
        unary_case(function, clip ? -1.0f : 0.3f, clip ? 2.0f : 0.5f, positive ? 0.1f : -6.0f, 6));
  }
  for (int k = 0; k <= static_cast<int>(BinaryAttributes::Kind::kMin); ++k) {
    const auto kind = static_cast<BinaryAttributes::Kind>(k);
    cases.push_back(binary_case(kind, {2, 21, 5, 6}, {2, 21, 5, 6}, kImages, {Function::kRelu}));
  }
  constexpr auto kAdd = BinaryAttributes::Kind::kAdd;
  constexpr auto kSub = BinaryAttributes::Kind::kSub;
  cases.push_back(binary_case(kSub, {2, 21, 5, 6}, {2, 21, 1, 1}, kImages));
  cases.push_back(binary_case(kSub, {2, 1, 5, 6}, {2, 21, 5, 6}, kImages));
  cases.push_back(binary_case(kSub, {1, 21, 5, 6}, {1}, kImages));
  cases.push_back(binary_case(kSub, {3, 7, 50}, {50}, kRows));
  cases.push_back(binary_case(kSub, {3, 7, 50}, {3, 7, 1}, kRows));
  cases.push_back(binary_case(kSub, {7, 50}, {3, 1, 50}, kRows));
  cases.push_back(binary_case(kAdd, {1, 64, 80, 16}, {1, 64, 80, 16}, kImages));
  const auto concat = [&cases](const char* name, int axis, const std::vector<Dims>& parts,
                               Layout layout) {
    Builder b(name);
    std::vector<TensorId> inputs;
    for (const Dims& dims : parts) inputs.push_back(b.input(dims, layout));
    cases.push_back(b.finish(ConcatAttributes{axis}, inputs, layout));
  };
  concat("concat_channels", 1, {{1, 16, 5, 6}, {1, 18, 5, 6}, {1, 7, 5, 6}}, kImages);
  concat("concat_rows", 2, {{1, 20, 3, 6}, {1, 20, 5, 6}}, kImages);
  concat("concat_tokens", 1, {{1, 1, 50}, {1, 9, 50}}, kRows);
  concat("concat_last", 2, {{2, 3, 10}, {2, 3, 25}}, kRows);
  const auto copy = [&cases](const char* name, Dims x, Layout from, CopyAttributes attributes,
                             Dims y, Layout to) {
    Builder b(name);
    const TensorId in = b.input(x, from);
    cases.push_back(b.finish(std::move(attributes), {in}, to, std::move(y)));
  };
  copy("copy_transpose", {2, 9, 12, 20}, kRows, {{0, 2, 1, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}},
       {2, 12, 9, 20}, kRows);
  copy("copy_to_channels_last", {2, 3, 9, 20}, kDense, {{0, 1, 2, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}},
       {2, 3, 9, 20}, kImages);
  copy("copy_to_rows", {2, 24, 9, 20}, kImages, {{0, 1, 2, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}},
       {2, 24, 9, 20}, kRows);
  copy("copy_slice", {2, 40, 9, 20}, kImages, {{0, 1, 2, 3}, {1, 1, 2, -3}, {0, 5, 1, 18}},
       {2, 33, 4, 6}, kImages);
  copy("copy_expand", {1, 30}, kRows, {{kNone, 0, 1}, {1, 1, 1}, {0, 0}}, {4, 1, 30}, kRows);
  copy("copy_matrix_transpose", {33, 45}, kRows, {{1, 0}, {1, 1}, {0, 0}}, {45, 33}, kRows);
  const auto reshape = [&cases](const char* name, Dims x, Layout from, Dims y, Layout to) {
    Builder b(name);
    const TensorId in = b.input(x, from);
    cases.push_back(b.finish(ReshapeAttributes{}, {in}, to, std::move(y)));
  };
  reshape("reshape_split", {2, 9, 48}, kRows, {2, 9, 3, 16}, kRows);
  reshape("reshape_merge", {2, 9, 3, 10}, kRows, {18, 30}, kRows);
  reshape("reshape_images_to_tokens", {1, 20, 4, 5}, kImages, {1, 20, 20}, kRows);
  reshape("reshape_flatten", {1, 20, 3, 3}, kImages, {1, 180}, kRows);
  reshape("reshape_uneven", {6, 10}, kRows, {4, 15}, kRows);
  {
    Builder b("gather_rows");
    const TensorId x = b.input({10, 37}, kRows);
    const TensorId i = b.indices({2, 3}, {9, 0, -1, 3, -10, 4});
    cases.push_back(b.finish(GatherAttributes{0}, {x, i}, kRows));
  }
  {
    Builder b("gather_columns");
    const TensorId x = b.input({3, 11, 6}, kRows);
    const TensorId i = b.indices({9}, {0, 10, 3, 3, -1, 5, 6, 7, -2});
    cases.push_back(b.finish(GatherAttributes{1}, {x, i}, kRows));
  }
  for (int mode = 0; mode < 3; ++mode) {
    Builder b(fmt::format("pad_mode{}", mode));
    const TensorId x = b.input({1, 19, 6, 7}, kImages);
    PadAttributes pad;
    pad.mode = static_cast<PadAttributes::Mode>(mode);
    pad.before = {0, mode == 0 ? 3 : 0, 2, 3};
    pad.after = {0, mode == 0 ? 1 : 0, 1, 4};
    pad.value = 1.5f;
    cases.push_back(b.finish(pad, {x}, kImages));
  }
  for (int kind = 0; kind <= static_cast<int>(ReduceAttributes::Kind::kL2); ++kind) {
    const auto k = static_cast<ReduceAttributes::Kind>(kind);
    const auto reduce = [&cases, k, kind](const char* name, Dims x, std::vector<int> axes,
                                          bool keep, Layout layout) {
      Builder b(fmt::format("reduce{}_{}", kind, name));
      const TensorId in = b.input(x, layout, 0.5f, 1.2f);
      cases.push_back(
          b.finish(ReduceAttributes{k, std::move(axes), keep}, {in}, keep ? layout : kRows));
    };
    reduce("image", {2, 37, 5, 6}, {2, 3}, true, kImages);
    reduce("channels", {2, 37, 5, 6}, {1}, true, kImages);
    reduce("last", {3, 9, 40}, {2}, false, kRows);
    reduce("first", {3, 9, 40}, {0, 1}, false, kRows);
    reduce("all", {3, 5, 7}, {0, 1, 2}, false, kRows);
  }
  for (const bool log : {false, true}) {
    for (const int axis : {1, 2}) {
      Builder b(fmt::format("softmax_log{}_axis{}", log, axis));
      const TensorId x = b.input({3, 9, 37}, kRows, -5, 5);
      cases.push_back(b.finish(SoftmaxAttributes{axis, log}, {x}, kRows));
    }
  }
  {
    Builder b("layer_norm");
    const TensorId x = b.input({2, 9, 75}, kRows, -3, 5);
    const TensorId scale = b.constant({75});
    const TensorId bias = b.constant({75});
    cases.push_back(b.finish(LayerNormAttributes{}, {x, scale, bias}, kRows));
  }
  for (int mode = 0; mode < 3; ++mode) {
    Builder b(fmt::format("resize_mode{}", mode));
    const TensorId x = b.input({2, 21, 5, 6}, kImages);
    ResizeAttributes resize;
    resize.mode = static_cast<ResizeAttributes::Mode>(mode);
    resize.scale = {2, 1.5f};
    cases.push_back(b.finish(resize, {x}, kImages, {2, 21, 10, 9}));
  }
  return cases;
}

}  // namespace tandem::opencl
