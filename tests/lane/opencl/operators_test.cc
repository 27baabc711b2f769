// Every operator kind against the reference: odd shapes, paddings, strides, groups; whole and cut
// along every axis; with the kernels for CPUs and, run on whatever device there is, those for GPUs.
#include <cmath>
#include <limits>
#include <random>

#include "fmt/format.h"
#include "graph/reference.h"
#include "gtest/gtest.h"
#include "lane/opencl/opencl_lane_impl.h"
#include "tests/lane/opencl/test_lane.h"

namespace tandem::opencl {
namespace {

constexpr Layout kImages{Order::kChannelsLast, true};
constexpr Layout kRows{Order::kRowMajor, true};
constexpr Layout kDense{Order::kRowMajor, false};

// How much more than a direct sum a Winograd convolution may round (winograd.h).
constexpr double kWinogradTolerance = 4;

HostTensor random_tensor(const Dims& dims, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  HostTensor tensor(DataType::kFloat32, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = uniform(generator);
  return tensor;
}

// A graph with one operator, and values for its inputs.
struct Case {
  std::string name;
  Graph graph;
  std::vector<HostTensor> inputs;  // in the order of graph.inputs()
  double tolerance = 2e-5;
};

class Builder {
 public:
  explicit Builder(std::string name) { case_.name = std::move(name); }

  TensorId input(const Dims& dims, Layout layout, float low = -1, float high = 1) {
    const uint32_t seed = static_cast<uint32_t>(case_.inputs.size()) + 1;
    case_.inputs.push_back(random_tensor(dims, seed, low, high));
    return case_.graph.add_input(fmt::format("in{}", seed), DataType::kFloat32, dims, layout);
  }
  TensorId indices(const Dims& dims, std::vector<int64_t> values) {
    case_.inputs.push_back(HostTensor::ints(dims, std::move(values)));
    return case_.graph.add_input("indices", DataType::kInt64, dims, kRows);
  }
  TensorId constant(const Dims& dims) {
    const uint32_t seed = 100 + constants_++;
    return case_.graph.add_constant(fmt::format("w{}", seed), random_tensor(dims, seed));
  }
  Case finish(Attributes attributes, std::vector<TensorId> inputs, Layout layout, Dims dims = {}) {
    const auto output =
        case_.graph.add("op", std::move(attributes), std::move(inputs), std::move(dims), layout);
    if (!output.ok()) ADD_FAILURE() << case_.name << ": " << output.status().to_string();
    if (output.ok()) case_.graph.mark_output(*output);
    return std::move(case_);
  }

 private:
  Case case_;
  uint32_t constants_ = 0;
};

struct ConvShape {
  int64_t n, c, h, w, m;
  Size2 kernel{3, 3}, stride{1, 1}, dilation{1, 1};
  Pads pads{1, 1, 1, 1};
  int64_t groups = 1;
  bool bias = true, residual = false;
  Activation activation{};
};

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

// The whole output, and for every axis three slices whose bounds keep the granularity.
std::vector<std::vector<Slice>> partitions(const Graph& graph) {
  std::vector<std::vector<Slice>> result = {{Slice{0, kNone, 0, 0}}};
  for (const PartitionAxis& axis : partition_axes(graph, 0)) {
    const int64_t extent = graph.output_of(0).dims[static_cast<size_t>(axis.axis)];
    const int64_t steps = (extent + axis.granularity - 1) / axis.granularity;
    if (steps < 2) continue;
    std::vector<Slice> slices;
    int64_t begin = 0;
    for (const int64_t cut : {steps / 3, steps / 2, steps}) {
      const int64_t end = std::min(extent, cut * axis.granularity);
      if (end > begin) slices.push_back({0, axis.axis, begin, end});
      begin = std::max(begin, end);
    }
    result.push_back(std::move(slices));
  }
  return result;
}

void check_case(const Case& c, LaneImpl* lane, double tolerance) {
  const Graph& graph = c.graph;
  ASSERT_EQ(graph.operators().size(), 1u) << c.name;
  const std::vector<ReferenceTensor> expected = reference(graph, c.inputs);
  const ReferenceTensor& want = expected[static_cast<size_t>(graph.op(0).output)];
  for (const std::vector<Slice>& slices : partitions(graph)) {
    Memory memory(lane, graph);
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      copy_to_view(c.inputs[i], memory.bindings[graph.inputs()[i]]);
    }
    auto program = lane->load(graph, memory.bindings);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    std::vector<std::unique_ptr<Task>> tasks;
    for (const Slice& slice : slices) {
      ASSERT_TRUE(check_slice(graph, slice).ok()) << to_string(graph, slice);
      auto task = (*program)->bind(slice, 0);
      ASSERT_TRUE(task.ok()) << c.name << ": " << task.status().to_string();
      tasks.push_back(std::move(task).value());
    }
    // What the first launches left must not hide what is not written.
    memory.spoil(graph.op(0).output);
    for (const auto& task : tasks) ASSERT_TRUE(task->launch().ok());
    ASSERT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
    HostTensor got;
    copy_from_view(memory.bindings[graph.op(0).output], got);
    int failures = 0;
    for (int64_t i = 0; i < got.size() && failures < 3; ++i) {
      const double value = got.data<float>()[i];
      const double right = want.values[static_cast<size_t>(i)];
      if (!(std::abs(value - right) <= tolerance * (1 + std::abs(right)))) {
        ++failures;
        ADD_FAILURE() << c.name << " " << to_string(graph, slices.front()) << " ... ("
                      << slices.size() << " slices), " << tasks[0]->info().name << ": element " << i
                      << " is " << value << ", should be " << right;
      }
    }
    EXPECT_TRUE(memory.untouched_outside(graph.op(0).output)) << c.name;
  }
}

// The lane with other traits, for as long as this lives.
class TraitsScope {
 public:
  TraitsScope(LaneImpl* lane, const DeviceTraits& traits) : lane_(lane), own_(lane->traits()) {
    lane->set_traits(traits);
  }
  ~TraitsScope() { lane_->set_traits(own_); }
  TraitsScope(const TraitsScope&) = delete;
  TraitsScope& operator=(const TraitsScope&) = delete;

 private:
  LaneImpl* lane_;
  DeviceTraits own_;
};

DeviceTraits traits_with(bool single_item_groups, int compute_units,
                         std::optional<int> winograd_outputs = {}) {
  DeviceTraits traits;
  traits.single_item_groups = single_item_groups;
  traits.compute_units = compute_units;
  traits.winograd_outputs = winograd_outputs;
  return traits;
}

// `products`: tiles of kernels for many work-items follow from the number of compute units.
void check_all(const std::vector<Case>& cases, bool products) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  std::vector<DeviceTraits> all = {traits_with(true, 1, 0), traits_with(true, 8),
                                   traits_with(false, 16)};
  if (products) all.push_back(traits_with(false, 1));
  for (const DeviceTraits& traits : all) {
    const TraitsScope scope(lane, traits);
    for (const Case& c : cases) {
      SCOPED_TRACE(traits.single_item_groups ? "single-item groups" : "many-item groups");
      const bool winograd = traits.single_item_groups && !traits.winograd_outputs;
      check_case(c, lane, c.tolerance * (winograd ? kWinogradTolerance : 1));
    }
  }
}

TEST(OpenClOperators, Convolutions) { check_all(conv_cases(), true); }
// An infinity and a NaN in the first group's input channels must not reach the other groups, even
// where groups share a panel of output channels.
TEST(OpenClOperators, GroupsAreIsolated) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  std::vector<Case> cases;
  for (const auto& [c, m, groups] : std::vector<std::array<int64_t, 3>>{
           {128, 128, 32}, {24, 36, 3}, {32, 32, 2}, {6, 24, 6}, {12, 12, 12}, {160, 40, 2}}) {
    cases.push_back(conv_case({.n = 1, .c = c, .h = 5, .w = 6, .m = m, .groups = groups}));
  }
  cases.push_back(conv_transpose_case(16, 24, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4));
  for (const DeviceTraits& traits : {traits_with(true, 1), traits_with(false, 16)}) {
    const TraitsScope scope(lane, traits);
    for (const Case& c : cases) {
      const Operator& op = c.graph.op(0);
      const int64_t groups = op.kind() == OperatorKind::kConv
                                 ? op.as<ConvAttributes>().groups
                                 : op.as<ConvTransposeAttributes>().groups;
      HostTensor x = c.inputs[0];
      const int64_t poisoned = x.size() / groups;  // elements of the first group
      for (int64_t i = 0; i < poisoned; ++i) {
        x.data<float>()[i] = i % 2 == 0 ? std::numeric_limits<float>::infinity()
                                        : std::numeric_limits<float>::quiet_NaN();
      }
      Memory memory(lane, c.graph);
      copy_to_view(x, memory.bindings[c.graph.inputs()[0]]);
      auto program = lane->load(c.graph, memory.bindings);
      ASSERT_TRUE(program.ok()) << program.status().to_string();
      auto task = (*program)->bind({0, kNone, 0, 0}, 0);
      ASSERT_TRUE(task.ok()) << task.status().to_string();
      ASSERT_TRUE((*task)->launch().ok());
      ASSERT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
      HostTensor got;
      copy_from_view(memory.bindings[op.output], got);
      for (int64_t i = got.size() / groups; i < got.size(); ++i) {
        ASSERT_TRUE(std::isfinite(got.data<float>()[i]))
            << c.name << ", " << (*task)->info().name << ": element " << i;
      }
    }
  }
}

TEST(OpenClOperators, WinogradConvolutions) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  for (const DeviceTraits& traits :
       {traits_with(true, 1, 2), traits_with(true, 1, 4), traits_with(true, 8, 4)}) {
    const TraitsScope scope(lane, traits);
    for (const Case& c : conv_cases()) {
      const auto& conv = c.graph.op(0).as<ConvAttributes>();
      if (conv.kernel != Size2{3, 3} || conv.groups > 1) continue;
      check_case(c, lane, c.tolerance * kWinogradTolerance);
    }
  }
}

// The table of winograd.h.
TEST(OpenClOperators, WinogradError) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  struct Bound {
    int outputs;
    double max, rms;  // relative to the root mean square of the outputs, for 64 channels
  };
  for (const int64_t channels : {64, 128, 256, 512}) {
    const Case c = conv_case({.n = 1, .c = channels, .h = 14, .w = 14, .m = 64, .bias = false});
    const std::vector<double> want =
        reference(c.graph, c.inputs)[static_cast<size_t>(c.graph.op(0).output)].values;
    double square = 0;
    for (const double value : want) square += value * value;
    const double scale = std::sqrt(square / static_cast<double>(want.size()));
    // Rounding errors of a sum grow with the root of its length.
    const double growth = std::sqrt(static_cast<double>(channels) / 64);
    for (const Bound& bound : {Bound{0, 4e-6, 6e-7}, Bound{2, 4e-6, 4e-7}, Bound{4, 7e-6, 1e-6}}) {
      const TraitsScope scope(lane, traits_with(true, 1, bound.outputs));
      Memory memory(lane, c.graph);
      copy_to_view(c.inputs[0], memory.bindings[c.graph.inputs()[0]]);
      auto program = lane->load(c.graph, memory.bindings);
      ASSERT_TRUE(program.ok()) << program.status().to_string();
      auto task = (*program)->bind({0, kNone, 0, 0}, 0);
      ASSERT_TRUE(task.ok()) << task.status().to_string();
      EXPECT_EQ((*task)->info().name.find("cl_winograd") == 0, bound.outputs > 0);
      ASSERT_TRUE((*task)->launch().ok());
      ASSERT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
      HostTensor got;
      copy_from_view(memory.bindings[c.graph.op(0).output], got);
      double most = 0;
      double sum = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const double error = std::abs(got.data<float>()[i] - want[i]) / scale;
        most = std::max(most, error);
        sum += error * error;
      }
      const double rms = std::sqrt(sum / static_cast<double>(want.size()));
      const std::string name = fmt::format("{}_channels_{}", (*task)->info().name, channels);
      RecordProperty(name, fmt::format("max {:.1e} rms {:.1e}", most, rms));
      EXPECT_LT(most, bound.max * growth) << name;
      EXPECT_LT(rms, bound.rms * growth) << name;
    }
  }
}

// What the rule chooses for layers of well-known networks, and what is reported of it.
TEST(OpenClOperators, WinogradChoice) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  const TraitsScope scope(lane, traits_with(true, 1));
  const auto info = [lane](const ConvShape& shape, const Slice& slice) {
    const Case c = conv_case(shape);
    Memory memory(lane, c.graph);
    auto program = lane->load(c.graph, memory.bindings);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    auto chosen = (*program)->implementation(slice, 0);
    EXPECT_TRUE(chosen.ok()) << chosen.status().to_string();
    return std::move(chosen).value();
  };
  const Slice whole{0, kNone, 0, 0};
  const ImplementationInfo large = info({.n = 1, .c = 64, .h = 56, .w = 56, .m = 64}, whole);
  EXPECT_EQ(large.name, "cl_winograd_4x4_10x32");
  EXPECT_EQ(large.dispatches, 1);
  EXPECT_GE(large.work_groups, 2);
  EXPECT_DOUBLE_EQ(large.computed_flops, 2.0 * 36 * 200 * 64 * 64);  // 14 x 14 patches
  EXPECT_EQ(info({.n = 1, .c = 512, .h = 7, .w = 7, .m = 512}, whole).name.find("cl_winograd_2x2"),
            0u);
  EXPECT_EQ(info({.n = 1, .c = 3, .h = 56, .w = 56, .m = 64}, whole).name.find("cl_conv_"), 0u);
  // A slice of rows is a smaller image.
  EXPECT_EQ(info({.n = 1, .c = 64, .h = 56, .w = 56, .m = 64}, {0, 2, 8, 28}).computed_flops,
            2.0 * 36 * 70 * 64 * 64);
}

TEST(OpenClOperators, Matrices) { check_all(matrix_cases(), true); }
TEST(OpenClOperators, Others) { check_all(other_cases(), false); }

}  // namespace
}  // namespace tandem::opencl
