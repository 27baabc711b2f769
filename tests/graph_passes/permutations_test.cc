// Permutations around operators on images meet and go away.
#include <algorithm>

#include "graph/passes/copies.h"
#include "graph/passes/passes.h"
#include "tests/graph_passes/pass_testing.h"

namespace tandem::testing {
namespace {

const std::vector<int> kToLast = {0, 2, 3, 1};
const std::vector<int> kToFirst = {0, 3, 1, 2};

Dims permuted(const Dims& dims, const std::vector<int>& permutation) {
  Dims result;
  for (int axis : permutation) result.push_back(dims[axis]);
  return result;
}

TensorId permute(Builder& builder, TensorId x, const std::vector<int>& permutation) {
  return builder.add(permutation_copy(permutation), {x},
                     permuted(builder.graph().tensor(x).dims, permutation));
}
TensorId to_last(Builder& builder, TensorId x) { return permute(builder, x, kToLast); }
TensorId to_first(Builder& builder, TensorId x) { return permute(builder, x, kToFirst); }

// After all passes.
Graph optimized(Builder& builder, TensorId output) {
  return after(optimize, builder.finish({output}));
}

int count(const Graph& graph, OperatorKind kind) {
  const std::vector<OperatorKind> all = kinds(graph);
  return static_cast<int>(std::count(all.begin(), all.end(), kind));
}

TEST(Permutations, CancelOutAroundArithmetic) {
  Builder b;
  const TensorId x = b.input({1, 4, 6, 5});
  TensorId y = to_last(b, b.conv(x, 8, 3, 1));
  y = b.product(y, b.weights({8}));
  y = b.sum(y, b.weights({1, 1, 1, 8}));
  y = b.unary(Function::kRelu, y);
  y = b.conv(to_first(b, y), 4, 1);
  const Graph graph = optimized(b, y);
  EXPECT_EQ(count(graph, OperatorKind::kConv), 2);
  EXPECT_EQ(graph.operators().size(), 2u);
}

TEST(Permutations, CancelOutAroundPadsConcatsAndResiduals) {
  Builder b;
  const TensorId x = b.input({1, 4, 6, 5});
  const TensorId a = to_last(b, b.conv(x, 8, 3, 1));
  const TensorId c = to_last(b, b.conv(x, 8, 3, 1));
  TensorId y = b.add(ConcatAttributes{3}, {b.sum(a, c), a});
  PadAttributes pad;
  pad.before = {0, 1, 0, 0};
  pad.after = {0, 2, 1, 0};
  y = b.add(pad, {y});
  const Graph graph = optimized(b, b.conv(to_first(b, y), 4, 3));
  EXPECT_EQ(count(graph, OperatorKind::kCopy), 0);
  EXPECT_EQ(count(graph, OperatorKind::kPad), 0);
  EXPECT_EQ(graph.operators().size(), 4u);  // three convolutions, the concatenation
}

TEST(Permutations, SqueezeAndExciteOfChannelsLastBecomesThatOfChannelsFirst) {
  for (const bool keep : {true, false}) {
    Builder b;
    const TensorId x = b.input({1, 4, 6, 5});
    const TensorId y = to_last(b, b.conv(x, 16, 3, 1));
    ReduceAttributes mean;
    mean.axes = {1, 2};
    mean.keep_dims = keep;
    TensorId s = b.add(mean, {y});
    if (!keep) s = b.add(ReshapeAttributes{}, {s}, {1, 1, 1, 16});
    s = to_last(b, b.conv(to_first(b, s), 8, 1));
    s = b.unary(Function::kRelu, s);
    s = to_last(b, b.conv(to_first(b, s), 16, 1));
    s = b.unary(Function::kClip, b.sum(s, b.scalar(3)), 0, 6);
    s = b.product(s, b.scalar(1.0f / 6));
    const Graph graph = optimized(b, b.conv(to_first(b, b.product(y, s)), 4, 1));
    EXPECT_EQ(count(graph, OperatorKind::kConv), 4);
    EXPECT_EQ(count(graph, OperatorKind::kPool), 1);
    EXPECT_EQ(count(graph, OperatorKind::kBinary), 1);
    EXPECT_LE(graph.operators().size(), keep ? 6u : 8u);
    EXPECT_EQ(count(graph, OperatorKind::kUnary), 0);
  }
}

TEST(Permutations, InputsArePreparedBehindThem) {
  Builder b;
  TensorId y = b.input({1, 6, 5, 3});
  y = b.product(y, b.scalar(1.0f / 128));
  y = b.sum(y, b.weights({3}));
  const Graph graph = optimized(b, b.conv(to_first(b, y), 8, 3));
  EXPECT_EQ(count(graph, OperatorKind::kBinary), 0);  // all in the weights: there are no pads
  EXPECT_EQ(graph.operators().size(), 2u);
}

TEST(Permutations, OthersStayWhereTheyAre) {
  // Of the keys of an attention: the factor must stay with the product behind it.
  Builder b;
  const TensorId q = b.input({1, 2, 5, 4});
  const TensorId k = b.input({1, 5, 2, 4});
  const TensorId scaled = b.product(to_last(b, k), b.scalar(0.5f));
  const Graph graph = optimized(b, b.add(MatMulAttributes{}, {q, scaled}));
  EXPECT_EQ(count(graph, OperatorKind::kBinary), 0);
  EXPECT_EQ(count(graph, OperatorKind::kMatMul), 1);
}

TEST(Permutations, OperandsThatAreNoImagesKeepThemInPlace) {
  Builder b;
  const TensorId x = b.input({1, 4, 6, 5});
  const TensorId y = to_last(b, b.conv(x, 8, 3, 1));
  const Graph graph = optimized(b, b.sum(y, b.input({1, 6, 5, 8})));
  EXPECT_EQ(count(graph, OperatorKind::kBinary), 1);
}

TEST(Pads, OfMaximaOfWhatIsNeverNegative) {
  for (const bool relu : {true, false}) {
    Builder b;
    TensorId y = b.conv(b.input({1, 4, 6, 5}), 8, 1);
    if (relu) y = b.unary(Function::kRelu, y);
    PadAttributes pad;
    pad.before = {0, 0, 1, 0};
    pad.after = {0, 0, 1, 1};
    y = b.add(pad, {y});
    PoolAttributes pool;
    pool.kernel = {3, 2};
    pool.stride = {2, 2};
    const TensorId pooled = b.add(pool, {y});
    EXPECT_EQ(count(optimized(b, pooled), OperatorKind::kPad), relu ? 0 : 1);
  }
}

}  // namespace
}  // namespace tandem::testing
