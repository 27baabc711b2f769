// What goes into convolutions, linear layers and products of matrices.
#include "graph/passes/copies.h"
#include "graph/passes/passes.h"
#include "tests/graph_passes/pass_testing.h"

namespace tandem::testing {
namespace {

using Kind = BinaryAttributes::Kind;
using enum OperatorKind;

TEST(FoldAffine, BatchNormGoesIntoConvolutions) {
  for (int64_t groups : {1, 2, 6}) {
    Builder b;
    const TensorId x = b.conv(b.input({2, 6, 5, 5}), 12, 3, 1, groups);
    const TensorId y = b.sum(b.product(x, b.weights({12, 1, 1})), b.weights({12, 1, 1}));
    const Graph graph = after(fold_affine, b.finish({y}));
    ASSERT_EQ(kinds(graph), std::vector{kConv}) << groups << " groups";
    EXPECT_TRUE(last(graph).as<ConvAttributes>().has_bias);
  }
}

TEST(FoldAffine, BatchNormGoesIntoTransposedConvolutions) {
  for (int64_t groups : {1, 3}) {
    Builder b;
    ConvTransposeAttributes conv;
    conv.kernel = {2, 2};
    conv.stride = {2, 2};
    conv.groups = groups;
    conv.has_bias = true;
    const TensorId x = b.input({1, 6, 4, 4});
    TensorId y = b.add(conv, {x, b.weights({6, 2, 2, 2}), b.weights({2 * groups})});
    y = b.sum(b.product(y, b.weights({2 * groups, 1, 1})), b.weights({1, 2 * groups, 1, 1}));
    const Graph graph = after(fold_affine, b.finish({y}));
    EXPECT_EQ(kinds(graph), std::vector{kConvTranspose}) << groups << " groups";
  }
}

TEST(FoldAffine, ScaleAndShiftGoIntoLinearLayers) {
  Builder b;
  const TensorId x = b.linear(b.input({2, 3, 4}), 5);
  const TensorId y = b.product(b.sum(x, b.weights({5})), b.weights({1, 5}));
  const Graph graph = after(fold_affine, b.finish({y}));
  EXPECT_EQ(kinds(graph), std::vector{kLinear});
}

TEST(FoldAffine, AnotherAxisStays) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 4, 5, 5}), 5, 1);
  const Graph graph = after(fold_affine, b.finish({b.product(x, b.weights({5}))}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kBinary}));
}

TEST(FoldAffine, AConvolutionThatOthersReadStays) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 4, 5, 5}), 6, 1);
  const TensorId y = b.product(x, b.weights({6, 1, 1}));
  const Graph graph = after(fold_affine, b.finish({y, x}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kBinary}));
}

TEST(FoldAffine, AFactorDoesNotPassAnActivationOrResidual) {
  Builder b;
  const TensorId x = b.input({1, 4, 5, 5});
  ConvAttributes relu;
  relu.activation = {Function::kRelu};
  ConvAttributes residual;
  residual.has_residual = true;
  TensorId y = b.add(relu, {x, b.weights({4, 4, 1, 1})});
  y = b.product(y, b.weights({4, 1, 1}));
  y = b.unary(Function::kAbs, y);
  y = b.add(residual, {y, b.weights({4, 4, 1, 1}), x});
  y = b.product(y, b.weights({4, 1, 1}));
  const Graph graph = after(fold_affine, b.finish({y}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kBinary, kUnary, kConv, kBinary}));
}

TEST(FoldAffine, GoesIntoTheConvolutionBehind) {
  for (int64_t groups : {1, 2, 4}) {
    Builder b;
    TensorId x = b.unary(Function::kExp, b.input({1, 4, 5, 5}));
    x = b.sum(b.product(x, b.weights({4, 1, 1})), b.weights({4, 1, 1}));
    const Graph graph = after(fold_affine, b.finish({b.conv(x, 8, 3, 0, groups)}));
    EXPECT_EQ(kinds(graph), (std::vector{kUnary, kConv})) << groups << " groups";
  }
}

TEST(FoldAffine, AShiftDoesNotPassPads) {
  Builder b;
  TensorId x = b.unary(Function::kExp, b.input({1, 4, 5, 5}));
  x = b.sum(b.product(x, b.scalar(3)), b.scalar(-2));
  const Graph graph = after(fold_affine, b.finish({b.conv(x, 8, 3, 1)}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kBinary, kConv}));
}

TEST(FoldAffine, AFactorOfZeroStaysBeforePads) {
  Builder b;
  TensorId x = b.unary(Function::kExp, b.input({1, 4, 5, 5}));
  x = b.sum(b.product(x, b.scalar(0)), b.scalar(-2));
  const Graph graph = after(fold_affine, b.finish({b.conv(x, 8, 3, 1)}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kBinary, kBinary, kConv}));
}

TEST(FoldAffine, GoesIntoTheLinearLayerBehind) {
  Builder b;
  TensorId x = b.unary(Function::kExp, b.input({3, 4}));
  x = b.sum(b.product(x, b.weights({4})), b.weights({4}));
  const Graph graph = after(fold_affine, b.finish({b.linear(x, 5)}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kLinear}));
}

TEST(FusePads, ZerosGoIntoTheConvolution) {
  Builder b;
  const PadAttributes pad = {.mode = {}, .before = {0, 0, 0, 1}, .after = {0, 0, 2, 1}, .value = 0};
  const TensorId x = b.add(pad, {b.input({1, 3, 5, 5})});
  const Graph graph = after(fuse_pads, b.finish({b.conv(x, 4, 3, 1)}));
  ASSERT_EQ(kinds(graph), std::vector{kConv});
  EXPECT_EQ(last(graph).as<ConvAttributes>().pads, (Pads{1, 2, 3, 2}));
}

TEST(FusePads, OtherPaddingStays) {
  const PadAttributes others[] = {
      {.mode = {}, .before = {0, 0, 1, 1}, .after = {0, 0, 1, 1}, .value = 1},
      {.mode = PadAttributes::Mode::kEdge,
       .before = {0, 0, 1, 1},
       .after = {0, 0, 1, 1},
       .value = 0},
      {.mode = {}, .before = {0, 1, 0, 0}, .after = {0, 0, 0, 0}, .value = 0}};
  for (const PadAttributes& pad : others) {
    Builder b;
    const TensorId x = b.add(pad, {b.input({1, 3, 5, 5})});
    const Graph graph = after(fuse_pads, b.finish({b.conv(x, 4, 3, 1)}));
    EXPECT_EQ(kinds(graph), (std::vector{kPad, kConv}));
  }
}

TEST(FuseResiduals, IntoTheLaterOperand) {
  Builder b;
  const TensorId x = b.input({1, 4, 5, 5});
  const TensorId first = b.conv(x, 6, 1);
  const TensorId second = b.conv(x, 6, 3, 1);
  const Graph graph = after(fuse_residuals, b.finish({b.sum(second, first)}));
  ASSERT_EQ(kinds(graph), (std::vector{kConv, kConv}));
  EXPECT_TRUE(last(graph).as<ConvAttributes>().has_residual);
  EXPECT_EQ(last(graph).as<ConvAttributes>().kernel, (Size2{3, 3}));
}

TEST(FuseResiduals, IntoLinearLayersWithBias) {
  Builder b;
  const TensorId x = b.input({3, 4});
  const TensorId y =
      b.add(LinearAttributes{.has_bias = true, .has_residual = false, .activation = {}},
            {x, b.weights({4, 4}), b.weights({4})});
  const Graph graph = after(fuse_residuals, b.finish({b.sum(x, y)}));
  ASSERT_EQ(kinds(graph), std::vector{kLinear});
  EXPECT_EQ(last(graph).inputs.size(), 4u);
}

TEST(FuseResiduals, NotWhereTheOperandBroadcasts) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 4, 5, 5}), 6, 1);
  const Graph graph = after(fuse_residuals, b.finish({b.sum(x, b.input({1, 6, 1, 1}))}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kBinary}));
}

TEST(FuseResiduals, NotBehindAnActivation) {
  Builder b;
  const TensorId x = b.input({1, 4, 5, 5});
  ConvAttributes relu;
  relu.activation = {Function::kRelu};
  const TensorId y = b.add(relu, {x, b.weights({4, 4, 1, 1})});
  const Graph graph = after(fuse_residuals, b.finish({b.sum(x, y)}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kBinary}));
}

TEST(FuseActivations, IntoEveryKindThatHasOne) {
  Builder b;
  const TensorId x = b.input({1, 4, 6, 6});
  ConvTransposeAttributes transposed;
  TensorId y = b.unary(Function::kRelu, b.conv(x, 4, 1));
  y = b.unary(Function::kSilu, b.add(transposed, {y, b.weights({4, 4, 1, 1})}));
  y = b.unary(Function::kClip, b.sum(x, y), -1, 1);
  y = b.unary(Function::kGelu, b.linear(y, 3));
  const Graph graph = after(fuse_activations, b.finish({y}));
  ASSERT_EQ(kinds(graph), (std::vector{kConv, kConvTranspose, kBinary, kLinear}));
  EXPECT_EQ(graph.op(2).as<BinaryAttributes>().activation, (Activation{Function::kClip, -1, 1}));
}

TEST(FuseActivations, OneOnly) {
  Builder b;
  TensorId y = b.unary(Function::kRelu, b.conv(b.input({1, 4, 6, 6}), 4, 1));
  y = b.unary(Function::kNeg, y);
  const Graph graph = after(fuse_activations, b.finish({y}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kUnary}));
}

TEST(FuseActivations, NotWhereThePlainValueIsNeeded) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 4, 6, 6}), 4, 1);
  const Graph graph = after(fuse_activations, b.finish({b.unary(Function::kRelu, x), x}));
  EXPECT_EQ(kinds(graph), (std::vector{kConv, kUnary}));
}

TEST(FuseMatmuls, FactorsGoIn) {
  Builder b;
  const TensorId q = b.product(b.input({2, 5, 4}), b.scalar(0.5f));
  const TensorId k = b.product(b.input({2, 4, 6}), b.scalar(3));
  const TensorId y = b.product(b.add(MatMulAttributes{}, {q, k}), b.scalar(-2));
  const Graph graph = after(fuse_matmuls, b.finish({y}));
  ASSERT_EQ(kinds(graph), std::vector{kMatMul});
  EXPECT_FLOAT_EQ(last(graph).as<MatMulAttributes>().alpha, -3);
}

TEST(FuseMatmuls, TranspositionsGoIn) {
  Builder b;
  const TensorId q = b.add(permutation_copy({0, 2, 1}), {b.input({2, 4, 5})}, {2, 5, 4});
  const TensorId k = b.add(permutation_copy({0, 2, 1}), {b.input({2, 6, 4})}, {2, 4, 6});
  const Graph graph = after(fuse_matmuls, b.finish({b.add(MatMulAttributes{}, {q, k})}));
  ASSERT_EQ(kinds(graph), std::vector{kMatMul});
  EXPECT_TRUE(last(graph).as<MatMulAttributes>().transpose_a);
  EXPECT_TRUE(last(graph).as<MatMulAttributes>().transpose_b);
}

TEST(FuseMatmuls, ACopyThatAlsoTransposesWalksRowsInstead) {
  // [B, S, H, D] -> [B, H, D, S].
  Builder b;
  const TensorId q = b.input({2, 3, 5, 4});
  const TensorId k = b.add(permutation_copy({0, 2, 3, 1}), {b.input({2, 6, 3, 4})}, {2, 3, 4, 6});
  const Graph graph = after(fuse_matmuls, b.finish({b.add(MatMulAttributes{}, {q, k})}));
  ASSERT_EQ(kinds(graph), (std::vector{kCopy, kMatMul}));
  EXPECT_EQ(graph.op(0).as<CopyAttributes>().source_axis, (std::vector{0, 2, 1, 3}));
}

TEST(FuseMatmuls, WithConstantWeightsIsALinearLayer) {
  for (const bool transpose : {false, true}) {
    Builder b;
    const TensorId x = b.input({2, 3, 4});
    const TensorId w = b.weights(transpose ? Dims{1, 5, 4} : Dims{1, 4, 5});
    const MatMulAttributes matmul = {.transpose_b = transpose, .alpha = 0.5f};
    const Graph graph = after(fuse_matmuls, b.finish({b.add(matmul, {x, w})}));
    EXPECT_EQ(kinds(graph), std::vector{kLinear});
  }
}

TEST(FuseMatmuls, WithWeightsPerBatchItIsNot) {
  Builder b;
  const TensorId x = b.input({2, 3, 4});
  const Graph graph =
      after(fuse_matmuls, b.finish({b.add(MatMulAttributes{}, {x, b.weights({2, 4, 5})})}));
  EXPECT_EQ(kinds(graph), std::vector{kMatMul});
}

TEST(FuseMatmuls, AReshapeOfRowsMovesAboveTheLinearLayer) {
  Builder b;
  const TensorId x = b.input({6, 4});
  const TensorId y = b.add(ReshapeAttributes{}, {b.linear(x, 5)}, {2, 3, 5});
  const Graph graph = after(fuse_matmuls, b.finish({y}));
  EXPECT_EQ(kinds(graph), (std::vector{kReshape, kLinear}));
}

TEST(Optimize, AResidualBlockIsTwoConvolutions) {
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({1, 8, 6, 6}));
  const auto norm = [&b](TensorId y) {
    return b.sum(b.product(y, b.weights({8, 1, 1})), b.weights({8, 1, 1}));
  };
  TensorId y = b.unary(Function::kRelu, norm(b.conv(x, 8, 3, 1)));
  y = b.unary(Function::kRelu, b.sum(norm(b.conv(y, 8, 3, 1)), x));
  const Graph graph = after(optimize, b.finish({y}));
  ASSERT_EQ(kinds(graph), (std::vector{kUnary, kConv, kConv}));
  EXPECT_TRUE(last(graph).as<ConvAttributes>().has_residual);
  EXPECT_EQ(last(graph).as<ConvAttributes>().activation.function, Function::kRelu);
}

TEST(Optimize, KeepsTheNameOfTheMainOperator) {
  Builder b;
  const TensorId x = b.input({1, 3, 4, 4});
  TensorId y = b.add(ConvAttributes{}, {x, b.weights({5, 3, 1, 1})}, {}, "conv");
  y = b.add(BinaryAttributes{}, {y, b.weights({5, 1, 1})}, {}, "bias");
  y = b.add(UnaryAttributes{{Function::kRelu}}, {y}, {}, "relu");
  const Graph graph = after(optimize, b.finish({y}));
  ASSERT_EQ(graph.operators().size(), 1u);
  EXPECT_EQ(last(graph).name, "conv");
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "relu");
}

TEST(Optimize, IsDeterministic) {
  const auto names = [] {
    Builder b;
    const TensorId x = b.conv(b.input({1, 4, 5, 5}), 4, 1);
    const TensorId y = b.sum(b.product(x, b.weights({4, 1, 1})), b.weights({4, 1, 1}));
    const Graph graph = after(optimize, b.finish({b.unary(Function::kRelu, y)}));
    std::string all;
    for (const Tensor& tensor : graph.tensors()) all += tensor.name + "\n";
    return all;
  };
  EXPECT_EQ(names(), names());
}

}  // namespace
}  // namespace tandem::testing
