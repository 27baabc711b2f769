#include "graph/passes/copies.h"
#include "graph/passes/passes.h"
#include "tests/graph_passes/pass_testing.h"

namespace tandem::testing {
namespace {

using Kind = BinaryAttributes::Kind;
using enum OperatorKind;

TEST(FoldConstants, ComputesWhatDependsOnConstantsAlone) {
  Builder b;
  const TensorId x = b.input({2, 3});
  const TensorId c = b.unary(Function::kExp, b.sum(b.weights({3}), b.scalar(1)));
  const Graph graph = after(fold_constants, b.finish({b.sum(x, c)}));
  EXPECT_EQ(kinds(graph), std::vector{kBinary});
}

TEST(FoldConstants, KeepsAnOutputThatIsConstant) {
  Builder b;
  b.input({2});
  const Graph graph = after(fold_constants, b.finish({b.unary(Function::kExp, b.weights({3}))}));
  EXPECT_EQ(kinds(graph), std::vector{kUnary});
}

TEST(FoldConstants, DropsWhatNothingUses) {
  Builder b;
  const TensorId x = b.input({2});
  b.unary(Function::kExp, b.unary(Function::kAbs, x));
  const Graph graph = after(fold_constants, b.finish({b.unary(Function::kNeg, x)}));
  EXPECT_EQ(kinds(graph), std::vector{kUnary});
}

TEST(Simplify, PutsConstantsSecond) {
  Builder b;
  const TensorId x = b.input({2, 3});
  const Graph graph = after(simplify, b.finish({b.sum(b.weights({3}), x)}));
  EXPECT_EQ(graph.tensor(last(graph).inputs[1]).kind, TensorKind::kConstant);
}

TEST(Simplify, SubtractsAndDividesByAddingAndMultiplying) {
  Builder b;
  const TensorId x = b.input({2, 3});
  const TensorId difference = b.binary(Kind::kSub, x, b.weights({3}));
  const TensorId quotient = b.binary(Kind::kDiv, difference, b.scalar(3));
  const Graph graph = after(simplify, b.finish({quotient}));
  EXPECT_EQ(graph.op(0).as<BinaryAttributes>().kind, Kind::kAdd);
  EXPECT_EQ(graph.op(1).as<BinaryAttributes>().kind, Kind::kMul);
}

TEST(Simplify, KeepsADivisionWhoseReciprocalOverflows) {
  Builder b;
  const TensorId x = b.input({2, 3});
  const Graph graph = after(simplify, b.finish({b.binary(Kind::kDiv, x, b.scalar(1e-39f))}));
  EXPECT_EQ(last(graph).as<BinaryAttributes>().kind, Kind::kDiv);
}

TEST(Simplify, KeepsASubtractionFromAConstant) {
  Builder b;
  const TensorId x = b.input({2, 3});
  const Graph graph = after(simplify, b.finish({b.binary(Kind::kSub, b.weights({3}), x)}));
  EXPECT_EQ(last(graph).as<BinaryAttributes>().kind, Kind::kSub);
}

TEST(Simplify, Powers) {
  Builder b;
  const TensorId x = b.unary(Function::kAbs, b.input({2, 3}));
  const TensorId square = b.binary(Kind::kPow, x, b.scalar(2));
  const TensorId same = b.binary(Kind::kPow, square, b.scalar(1));
  const TensorId root = b.binary(Kind::kPow, same, b.scalar(0.5f));
  const TensorId cube = b.binary(Kind::kPow, root, b.scalar(3));
  const Graph graph = after(simplify, b.finish({cube}));
  ASSERT_EQ(kinds(graph), (std::vector{kUnary, kBinary, kUnary, kBinary}));
  EXPECT_EQ(graph.op(1).as<BinaryAttributes>().kind, Kind::kMul);
  EXPECT_EQ(graph.op(2).as<UnaryAttributes>().function.function, Function::kSqrt);
  EXPECT_EQ(graph.op(3).as<BinaryAttributes>().kind, Kind::kPow);
}

TEST(Simplify, RemovesWhatChangesNothing) {
  Builder b;
  TensorId x = b.unary(Function::kExp, b.input({2, 3, 4}));
  x = b.product(x, b.constant({4}, {1, 1, 1, 1}));
  x = b.sum(x, b.scalar(0));
  x = b.unary(Function::kIdentity, x);
  x = b.unary(Function::kClip, x, -std::numeric_limits<float>::max(),
              std::numeric_limits<float>::max());
  x = b.add(ReshapeAttributes{}, {x}, {2, 3, 4});
  x = b.add(plain_copy(3), {x}, {2, 3, 4});
  x = b.add(PadAttributes{.mode = {}, .before = {0, 0, 0}, .after = {0, 0, 0}, .value = 1}, {x});
  x = b.add(ConcatAttributes{1}, {x});
  const Graph graph = after(simplify, b.finish({x}));
  EXPECT_EQ(kinds(graph), std::vector{kUnary});
}

TEST(Simplify, KeepsAMultiplicationByOneThatBroadcasts) {
  Builder b;
  const TensorId x = b.input({3, 1});
  const Graph graph = after(simplify, b.finish({b.product(x, b.constant({2}, {1, 1}))}));
  EXPECT_EQ(kinds(graph), std::vector{kBinary});
}

TEST(Simplify, DoesNotTakeTheNameOfAnOutput) {
  // Both outputs have the same value, and must both be there.
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({4}));
  const TensorId y = b.unary(Function::kIdentity, x);
  const Graph graph = after(simplify, b.finish({x, y}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kUnary}));
}

TEST(Simplify, ClipAtZeroIsRelu) {
  Builder b;
  const TensorId x = b.input({4});
  const float most = std::numeric_limits<float>::max();
  const Graph graph = after(simplify, b.finish({b.unary(Function::kClip, x, 0, most)}));
  EXPECT_EQ(last(graph).as<UnaryAttributes>().function.function, Function::kRelu);
}

TEST(Simplify, ChainsOfReshapesAndCopiesBecomeOne) {
  // What attention does to get at the heads of its keys.
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({2, 5, 24}));
  TensorId y = b.add(ReshapeAttributes{}, {x}, {2, 5, 3, 8});
  y = b.add(ReshapeAttributes{}, {y}, {2, 5, 3, 2, 4});
  y = b.add(permutation_copy({2, 0, 3, 1, 4}), {y}, {3, 2, 2, 5, 4});
  CopyAttributes slice = plain_copy(5);
  slice.start[0] = 1;
  y = b.add(slice, {y}, {1, 2, 2, 5, 4});
  y = b.add(ReshapeAttributes{}, {y}, {2, 2, 5, 4});
  y = b.add(permutation_copy({0, 1, 3, 2}), {y}, {2, 2, 4, 5});
  const Graph graph = after(simplify, b.finish({y}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kCopy}));
}

TEST(Simplify, BackwardsAndSteppedSlicesCompose) {
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({9, 7}));
  CopyAttributes first = plain_copy(2);
  first.start = {8, 1};
  first.step = {-2, 1};
  CopyAttributes second = plain_copy(2);
  second.start = {1, 4};
  second.step = {1, -2};
  TensorId y = b.add(first, {x}, {5, 6});
  y = b.add(second, {y}, {3, 3});
  const Graph graph = after(simplify, b.finish({y}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kCopy}));
}

TEST(Simplify, TransposingExtentsOfOneIsAReshape) {
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({1, 5, 6}));
  const Graph graph =
      after(simplify, b.finish({b.add(permutation_copy({1, 0, 2}), {x}, {5, 1, 6})}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kReshape}));
}

TEST(Simplify, ASliceToOneElementIsNoReshape) {
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({3, 5}));
  CopyAttributes slice = plain_copy(2);
  slice.start[0] = 1;
  const Graph graph = after(simplify, b.finish({b.add(slice, {x}, {1, 5})}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kCopy}));
}

TEST(Simplify, ImageToTokensGoesByChannelsLast) {
  Builder b;
  const TensorId x = b.conv(b.input({2, 3, 4, 5}), 6, 1);
  TensorId y = b.add(ReshapeAttributes{}, {x}, {2, 6, 20});
  y = b.add(permutation_copy({0, 2, 1}), {y}, {2, 20, 6});
  const Graph graph = after(simplify, b.finish({y}));
  ASSERT_EQ(kinds(graph), (std::vector{kConv, kCopy, kReshape}));
  EXPECT_EQ(graph.op(1).as<CopyAttributes>().source_axis, (std::vector{0, 2, 3, 1}));
}

TEST(Simplify, TokensToImageGoesByChannelsLast) {
  Builder b;
  const TensorId x = b.unary(Function::kExp, b.input({2, 20, 6}));
  TensorId y = b.add(permutation_copy({0, 2, 1}), {x}, {2, 6, 20});
  y = b.add(ReshapeAttributes{}, {y}, {2, 6, 4, 5});
  const Graph graph = after(simplify, b.finish({b.conv(y, 3, 1)}));
  ASSERT_EQ(kinds(graph), (std::vector{kUnary, kReshape, kCopy, kConv}));
  EXPECT_EQ(graph.op(2).as<CopyAttributes>().source_axis, (std::vector{0, 3, 1, 2}));
}

TEST(Simplify, NestedConcatenationsOfOneAxisBecomeOne) {
  Builder b;
  const TensorId x = b.input({2, 3});
  const TensorId y = b.input({2, 4});
  const TensorId inner = b.add(ConcatAttributes{1}, {x, y});
  const TensorId other = b.add(ConcatAttributes{0}, {inner, inner});
  const TensorId outer = b.add(ConcatAttributes{1}, {b.add(ConcatAttributes{1}, {x, x}), y});
  const Graph graph = after(simplify, b.finish({outer, other}));
  EXPECT_EQ(kinds(graph), (std::vector{kConcat, kConcat, kConcat}));
  EXPECT_EQ(last(graph).inputs.size(), 3u);
}

TEST(Copies, ReshapeAsCopy) {
  EXPECT_TRUE(reshape_as_copy({2, 3}, {2, 1, 3, 1}).has_value());
  EXPECT_FALSE(reshape_as_copy({2, 3}, {6}).has_value());
  const auto split = reshape_as_copy({2, 6}, {2, 3, 2});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->source_axis, (std::vector{0, 1, 1}));
  EXPECT_EQ(split->step, (Dims{1, 2, 1}));
}

}  // namespace
}  // namespace tandem::testing
