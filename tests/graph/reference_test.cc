// The reference by hand-made numbers. (The ONNX conformance tests compare the lanes, and the
// operator table the lanes with the reference; this is what the two rest on.)
#include "graph/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "graph/resize.h"
#include "tests/support/operator_table.h"

namespace tandem {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

struct In {
  Dims dims;
  std::vector<double> values;
};

std::vector<double> evaluate(const Attributes& attributes, const std::vector<In>& inputs,
                             const Dims& given = {}) {
  Graph graph;
  std::vector<TensorId> ids;
  std::vector<ReferenceTensor> values;
  const bool gathers = std::holds_alternative<GatherAttributes>(attributes);
  for (const In& in : inputs) {
    const DataType type = gathers && !ids.empty() ? DataType::kInt64 : DataType::kFloat32;
    ids.push_back(graph.add_input("", type, in.dims));
    values.push_back({in.dims, in.values});
  }
  StatusOr<TensorId> y = graph.add("", attributes, ids, given);
  EXPECT_TRUE(y.ok()) << y.status().to_string();
  std::vector<const ReferenceTensor*> operands;
  for (const ReferenceTensor& value : values) operands.push_back(&value);
  return reference(graph, 0, operands).values;
}

std::vector<double> counting(int64_t n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Reference, ConvWithPadsStrideBiasResidualAndActivation) {
  const ConvAttributes a{.kernel = {2, 2},
                         .stride = {2, 2},
                         .pads = {1, 0, 0, 1},
                         .has_bias = true,
                         .has_residual = true,
                         .activation = {Function::kClip, -1, 20}};
  // x: 0 1 2      windows: rows (-1, 0), (1, 2); columns (0, 1), (2, pad)
  //    3 4 5
  //    6 7 8
  EXPECT_THAT(evaluate(a, {{{1, 1, 3, 3}, counting(9)},
                           {{1, 1, 2, 2}, {1, 2, 3, 4}},
                           {{1}, {0.5}},
                           {{1, 1, 2, 2}, {-10, 1, 0, 0}}}),
              ElementsAre(-1, 7.5, 20, 20));
}

TEST(Reference, GroupedConv) {
  const ConvAttributes a{.groups = 2};
  EXPECT_THAT(evaluate(a, {{{1, 4, 1, 1}, {1, 2, 3, 4}}, {{2, 2, 1, 1}, {1, 10, 1, 10}}}),
              ElementsAre(21, 43));
}

TEST(Reference, ConvTransposeScattersWhatConvGathers) {
  const ConvTransposeAttributes a{
      .kernel = {1, 3}, .stride = {1, 2}, .pads = {0, 1, 0, 0}, .has_bias = true};
  // Input 1 2 with 1 10 100: 1 10 100+2 20 200, less the first, plus bias.
  EXPECT_THAT(evaluate(a, {{{1, 1, 1, 2}, {1, 2}}, {{1, 1, 1, 3}, {1, 10, 100}}, {{1}, {0.5}}}),
              ElementsAre(10.5, 102.5, 20.5, 200.5));
}

TEST(Reference, LinearAndMatMul) {
  EXPECT_THAT(evaluate(LinearAttributes{.has_bias = true, .activation = {Function::kRelu}},
                       {{{2, 2}, {1, 2, -3, 0}}, {{2, 2}, {1, 2, 3, 4}}, {{2}, {1, 1}}}),
              ElementsAre(8, 11, 0, 0));
  const In a{{1, 2, 2}, {1, 2, 3, 4}};
  const In b{{2, 2, 1}, {1, 10, 100, 1000}};
  EXPECT_THAT(evaluate(MatMulAttributes{.alpha = 2}, {a, b}), ElementsAre(42, 86, 4200, 8600));
  EXPECT_THAT(evaluate(MatMulAttributes{.transpose_a = true}, {a, b}),
              ElementsAre(31, 42, 3100, 4200));
  EXPECT_THAT(evaluate(MatMulAttributes{.transpose_b = true}, {a, {{1, 1, 2}, {1, 10}}}),
              ElementsAre(21, 43));
}

TEST(Reference, PoolCountsAsAsked) {
  PoolAttributes a{.kernel = {2, 2}, .stride = {2, 2}, .pads = {1, 1, 0, 0}};
  const In x{{1, 1, 3, 3}, counting(9)};
  EXPECT_THAT(evaluate(a, {x}), ElementsAre(0, 2, 6, 8));
  a.kind = PoolAttributes::Kind::kAverage;
  EXPECT_THAT(evaluate(a, {x}), ElementsAre(0, 1.5, 4.5, 6));
  a.count_include_pad = true;
  EXPECT_THAT(evaluate(a, {x}), ElementsAre(0, 0.75, 2.25, 6));
  // With ceil_mode the last window reaches past the pads; what lies there never counts.
  a = {.kind = PoolAttributes::Kind::kAverage,
       .kernel = {2, 2},
       .stride = {2, 2},
       .count_include_pad = true};
  EXPECT_THAT(evaluate(a, {x}, {1, 1, 2, 2}), ElementsAre(2, 3.5, 6.5, 8));
}

TEST(Reference, Reduce) {
  using Kind = ReduceAttributes::Kind;
  const In x{{2, 3}, {1, -2, 3, 4, 5, -6}};
  const auto reduce = [&](Kind kind, std::vector<int> axes) {
    return evaluate(ReduceAttributes{kind, axes, false}, {x});
  };
  EXPECT_THAT(reduce(Kind::kMean, {0}), ElementsAre(2.5, 1.5, -1.5));
  EXPECT_THAT(reduce(Kind::kSum, {1}), ElementsAre(2, 3));
  EXPECT_THAT(reduce(Kind::kMax, {1}), ElementsAre(3, 5));
  EXPECT_THAT(reduce(Kind::kMin, {0, 1}), ElementsAre(-6));
  EXPECT_THAT(reduce(Kind::kProd, {0}), ElementsAre(4, -10, -18));
  EXPECT_THAT(reduce(Kind::kL2, {1}), ElementsAre(std::sqrt(14.0), std::sqrt(77.0)));
}

TEST(Reference, SoftmaxAndLayerNorm) {
  const double e = std::exp(1.0);
  EXPECT_THAT(
      evaluate(SoftmaxAttributes{0, false}, {{{2, 2}, {0, 1000, 1, 1000}}}),
      ElementsAre(DoubleNear(1 / (1 + e), 1e-12), 0.5, DoubleNear(e / (1 + e), 1e-12), 0.5));
  EXPECT_THAT(evaluate(SoftmaxAttributes{1, true}, {{{1, 2}, {7, 7}}}),
              ElementsAre(DoubleNear(-std::log(2.0), 1e-12), DoubleNear(-std::log(2.0), 1e-12)));
  EXPECT_THAT(evaluate(LayerNormAttributes{0}, {{{1, 2}, {1, 3}}, {{2}, {2, 3}}, {{2}, {10, 20}}}),
              ElementsAre(8, 23));
}

TEST(Reference, BinaryBroadcasts) {
  using Kind = BinaryAttributes::Kind;
  const In row{{1, 2}, {1, 2}};
  const In column{{2, 1}, {3, 5}};
  const auto binary = [&](Kind kind) {
    return evaluate(BinaryAttributes{kind, {}}, {row, column});
  };
  EXPECT_THAT(binary(Kind::kAdd), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(binary(Kind::kSub), ElementsAre(-2, -1, -4, -3));
  EXPECT_THAT(binary(Kind::kMul), ElementsAre(3, 6, 5, 10));
  EXPECT_THAT(binary(Kind::kDiv), ElementsAre(1.0 / 3, 2.0 / 3, 1.0 / 5, 2.0 / 5));
  EXPECT_THAT(binary(Kind::kPow), ElementsAre(1, 8, 1, 32));
  EXPECT_THAT(binary(Kind::kMax), ElementsAre(3, 3, 5, 5));
  EXPECT_THAT(binary(Kind::kMin), ElementsAre(1, 2, 1, 2));
}

TEST(Reference, Movement) {
  EXPECT_THAT(evaluate(ConcatAttributes{1}, {{{2, 1}, {1, 2}}, {{2, 2}, {3, 4, 5, 6}}}),
              ElementsAre(1, 3, 4, 2, 5, 6));
  EXPECT_THAT(evaluate(CopyAttributes{{1, kNone, 0}, {-2, 1, 1}, {1, 2}}, {{{2, 3}, counting(6)}},
                       {2, 2, 1}),
              ElementsAre(5, 5, 3, 3));
  EXPECT_THAT(evaluate(ReshapeAttributes{}, {{{2, 3}, counting(6)}}, {3, 2}),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(evaluate(GatherAttributes{1}, {{{2, 3}, counting(6)}, {{2}, {-1, 0}}}),
              ElementsAre(2, 0, 5, 3));
  const auto pad = [](PadAttributes::Mode mode) {
    return evaluate(PadAttributes{mode, {2}, {1}, 9}, {{{3}, {1, 2, 3}}});
  };
  EXPECT_THAT(pad(PadAttributes::Mode::kConstant), ElementsAre(9, 9, 1, 2, 3, 9));
  EXPECT_THAT(pad(PadAttributes::Mode::kReflect), ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(pad(PadAttributes::Mode::kEdge), ElementsAre(1, 1, 1, 2, 3, 3));
}

std::vector<double> resize_row(const ResizeAttributes& a, std::vector<double> x, int64_t extent) {
  const int64_t n = static_cast<int64_t>(x.size());
  ResizeAttributes scaled = a;
  scaled.scale = {1, static_cast<float>(extent) / static_cast<float>(n)};
  return evaluate(scaled, {{{1, 1, 1, n}, std::move(x)}}, {1, 1, 1, extent});
}

TEST(Reference, Resize) {
  using Mode = ResizeAttributes::Mode;
  using Coordinates = ResizeAttributes::Coordinates;
  using Nearest = ResizeAttributes::Nearest;
  const std::vector<double> x = {0, 4, 8};
  EXPECT_THAT(resize_row({.mode = Mode::kLinear}, x, 6), ElementsAre(0, 1, 3, 5, 7, 8));
  EXPECT_THAT(resize_row({.mode = Mode::kLinear, .coordinates = Coordinates::kAlignCorners}, x, 5),
              ElementsAre(0, 2, 4, 6, 8));
  // A scale of 0.6 makes 4 elements 2.4, of which there are 2: the corner is that of 2.4.
  EXPECT_THAT(evaluate(ResizeAttributes{.mode = Mode::kLinear,
                                        .coordinates = Coordinates::kAlignCorners,
                                        .scale = {1, 0.6f}},
                       {{{1, 1, 1, 4}, {0, 1, 2, 3}}}, {1, 1, 1, 2}),
              ElementsAre(0, DoubleNear(3 / 1.4, 1e-6)));
  EXPECT_THAT(resize_row({.mode = Mode::kLinear, .coordinates = Coordinates::kAsymmetric}, x, 6),
              ElementsAre(0, 2, 4, 6, 8, 8));
  EXPECT_THAT(
      resize_row({.mode = Mode::kLinear, .coordinates = Coordinates::kPytorchHalfPixel}, x, 1),
      ElementsAre(0));
  const auto nearest = [&](Nearest rounding) {
    return resize_row({.coordinates = Coordinates::kAsymmetric, .nearest = rounding}, x, 6);
  };
  EXPECT_THAT(nearest(Nearest::kFloor), ElementsAre(0, 0, 4, 4, 8, 8));
  EXPECT_THAT(nearest(Nearest::kCeil), ElementsAre(0, 4, 4, 8, 8, 8));
  EXPECT_THAT(nearest(Nearest::kRoundPreferFloor), ElementsAre(0, 0, 4, 4, 8, 8));
  EXPECT_THAT(nearest(Nearest::kRoundPreferCeil), ElementsAre(0, 4, 4, 8, 8, 8));
}

TEST(Reference, CubicWeightsSumToOneAndHitTheSamples) {
  const ResizeAttributes a{.mode = ResizeAttributes::Mode::kCubic, .scale = {4, 4}};
  for (int64_t o = 0; o < 40; ++o) {
    const ResizeTaps taps = resize_taps(a, 0, 10, 40, o);
    EXPECT_NEAR(std::accumulate(taps.weight.begin(), taps.weight.end(), 0.0), 1, 1e-12);
  }
  const ResizeAttributes same{.mode = ResizeAttributes::Mode::kCubic};
  EXPECT_THAT(resize_taps(same, 0, 10, 10, 5).weight, ElementsAre(0, 1, 0, 0));
}

TEST(Reference, Functions) {
  const auto at = [](Function f, double x, float alpha = 0, float beta = 0) {
    return apply({f, alpha, beta}, x);
  };
  EXPECT_EQ(at(Function::kLeakyRelu, -4, 0.5f), -2);
  EXPECT_EQ(at(Function::kHardSigmoid, 1, 0.25f, 0.5f), 0.75);
  EXPECT_EQ(at(Function::kHardSwish, 3), 3);
  EXPECT_NEAR(at(Function::kHardSwish, -1), -1.0 / 3, 1e-15);
  EXPECT_NEAR(at(Function::kElu, -1, 2), 2 * (std::exp(-1.0) - 1), 1e-15);
  EXPECT_NEAR(at(Function::kSigmoid, 0), 0.5, 1e-15);
  EXPECT_NEAR(at(Function::kSilu, 1), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(at(Function::kGelu, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at(Function::kGeluTanh, 1), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(at(Function::kSoftplus, 0), std::log(2.0), 1e-15);
  EXPECT_NEAR(at(Function::kSoftplus, 800), 800, 1e-12);
  EXPECT_EQ(at(Function::kFloor, -1.5), -2);
  EXPECT_EQ(at(Function::kCeil, -1.5), -1);
}

TEST(Reference, ANaNShowsInEveryElementMadeOfIt) {
  const double nan = std::nan("");
  const In x{{1, 1, 1, 3}, {1, nan, 2}};
  for (Function f : {Function::kRelu, Function::kClip, Function::kHardSigmoid}) {
    EXPECT_TRUE(std::isnan(apply({f, 0, 1}, nan)));
  }
  EXPECT_TRUE(std::isnan(evaluate(PoolAttributes{.kernel = {1, 3}}, {x})[0]));
  using Kind = ReduceAttributes::Kind;
  EXPECT_TRUE(std::isnan(evaluate(ReduceAttributes{Kind::kMax, {3}, true}, {x})[0]));
  EXPECT_TRUE(std::isnan(evaluate(ReduceAttributes{Kind::kMin, {3}, true}, {x})[0]));
}

TEST(Reference, WholeGraph) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {2});
  const TensorId c = graph.add_constant("c", HostTensor::floats({2}, {10, 20}));
  const TensorId y = graph.add("y", BinaryAttributes{}, {x, c}).value();
  const TensorId z = graph.add("z", UnaryAttributes{{Function::kNeg}}, {y}).value();
  const std::vector<ReferenceTensor> values = reference(graph, {HostTensor::floats({2}, {1, 2})});
  EXPECT_THAT(values[y].values, ElementsAre(11, 22));
  EXPECT_THAT(values[z].values, ElementsAre(-11, -22));
  EXPECT_THAT(values[c].values, ElementsAre(10, 20));
}

}  // namespace
}  // namespace tandem
