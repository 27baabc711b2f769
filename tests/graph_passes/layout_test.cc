#include "graph/passes/layout.h"

#include "graph/passes/copies.h"
#include "tests/graph_passes/pass_testing.h"

namespace tandem::testing {
namespace {

using enum OperatorKind;

constexpr Layout kImage = {Order::kChannelsLast, true};
constexpr Layout kRows = {Order::kRowMajor, true};
constexpr Layout kDense = {Order::kRowMajor, false};

Graph laid_out(const Graph& graph) {
  const Graph result = after(assign_layouts, graph);
  EXPECT_EQ(check_layouts(result).to_string(), "ok");
  EXPECT_EQ(result.validate().to_string(), "ok");
  return result;
}

int count(const Graph& graph, OperatorKind kind) {
  const auto all = kinds(graph);
  return static_cast<int>(std::count(all.begin(), all.end(), kind));
}

TEST(Layout, NothingLiesBetweenConvolutions) {
  Builder b;
  TensorId x = b.conv(b.input({1, 3, 8, 8}), 8, 3, 1);
  x = b.unary(Function::kExp, x);
  const TensorId y = b.conv(b.sum(x, b.weights({8, 1, 1})), 8, 1);
  x = b.add(ConcatAttributes{1}, {x, y});
  x = b.add(PadAttributes{.mode = {}, .before = {0, 0, 1, 1}, .after = {0, 0, 1, 1}, .value = 0},
            {x});
  x = b.conv(x, 4, 3);
  const ReduceAttributes mean = {.kind = ReduceAttributes::Kind::kMean, .axes = {2, 3}};
  x = b.product(x, b.conv(b.add(mean, {x}), 4, 1));
  const Graph graph = laid_out(b.finish({b.conv(x, 2, 1)}));
  // One at the input, one at the output.
  EXPECT_EQ(count(graph, kCopy), 2);
  EXPECT_EQ(graph.op(0).kind(), kCopy);
  EXPECT_EQ(last(graph).kind(), kCopy);
}

TEST(Layout, AnInputIsConvertedOnce) {
  Builder b;
  const TensorId x = b.input({1, 3, 8, 8});
  const Graph graph = laid_out(b.finish({b.sum(b.conv(x, 8, 1), b.conv(x, 8, 3, 1))}));
  EXPECT_EQ(count(graph, kCopy), 2);
}

TEST(Layout, PicturesForConvolutionsAreDense) {
  constexpr Layout kDenseImage = {Order::kChannelsLast, false};
  Builder b;
  const TensorId picture = b.input({1, 3, 8, 8});
  const TensorId shifted = b.sum(b.input({1, 3, 8, 8}), b.weights({3, 1, 1}));
  const TensorId deep = b.input({1, 5, 8, 8});
  const TensorId pooled = b.input({1, 3, 8, 8});
  const PoolAttributes pool = {.kernel = {2, 2}};
  const Graph graph =
      laid_out(b.finish({b.conv(picture, 2, 1), b.conv(shifted, 2, 1), b.conv(deep, 2, 1),
                         b.conv(pooled, 2, 1), b.add(pool, {pooled})}));
  std::vector<Layout> layouts;
  for (const Operator& op : graph.operators()) {
    if (op.kind() == kConv) layouts.push_back(graph.tensor(op.inputs[0]).layout);
  }
  EXPECT_EQ(layouts, (std::vector{kDenseImage, kDenseImage, kImage, kImage}));
}

TEST(Layout, FewChannelsBetweenConvolutionsArePadded) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 8, 8, 8}), 3, 1);
  const Graph graph = laid_out(b.finish({b.conv(x, 2, 1)}));
  EXPECT_EQ(graph.tensor(graph.op(2).inputs[0]).layout, kImage);
}

TEST(Layout, ResidualsAreConvertedToo) {
  Builder b;
  const TensorId x = b.input({1, 4, 8, 8});
  ConvAttributes conv;
  conv.has_residual = true;
  const Graph graph = laid_out(b.finish({b.add(conv, {x, b.weights({4, 4, 1, 1}), x})}));
  EXPECT_EQ(count(graph, kCopy), 2);
}

TEST(Layout, InputsAndOutputsAreDenseAndKeepTheirNames) {
  Builder b;
  const TensorId x = b.input({1, 3, 5, 7});
  const TensorId y = b.conv(x, 5, 1);
  const Graph before = b.finish({y});
  const Graph graph = laid_out(before);
  EXPECT_EQ(graph.tensor(graph.inputs()[0]).layout, kDense);
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).layout, kDense);
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, before.tensor(before.outputs()[0]).name);
}

TEST(Layout, AnOutputWhosePaddingIsNotNeededIsDenseAtOnce) {
  Builder b;
  const Graph graph = laid_out(b.finish({b.linear(b.input({1, 20}), 10)}));
  EXPECT_EQ(kinds(graph), std::vector{kLinear});
}

TEST(Layout, AnOutputOfSeveralPaddedRowsIsCopied) {
  Builder b;
  const Graph graph = laid_out(b.finish({b.linear(b.input({3, 20}), 10)}));
  EXPECT_EQ(kinds(graph), (std::vector{kLinear, kCopy}));
  EXPECT_EQ(graph.output_of(0).layout, kRows);
}

TEST(Layout, OperatorsThatMoveElementsWriteOutputsThemselves) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 3, 5, 5}), 6, 1);
  const Graph graph =
      laid_out(b.finish({b.add(permutation_copy({0, 2, 3, 1}), {x}, {1, 5, 5, 6})}));
  EXPECT_EQ(kinds(graph), (std::vector{kCopy, kConv, kCopy}));
  EXPECT_EQ(graph.tensor(graph.outputs()[0]).layout, kDense);
}

TEST(Layout, GlobalPoolingAndFlattenAreFree) {
  Builder b;
  TensorId x = b.conv(b.input({1, 3, 6, 6}), 20, 1);
  x = b.add(PoolAttributes{.kind = PoolAttributes::Kind::kAverage, .kernel = {6, 6}}, {x});
  x = b.add(ReshapeAttributes{}, {x}, {1, 20});
  const Graph graph = laid_out(b.finish({b.linear(x, 10)}));
  ASSERT_EQ(kinds(graph), (std::vector{kCopy, kConv, kPool, kReshape, kLinear}));
  EXPECT_TRUE(alias_strides(graph, 3).has_value());
}

TEST(Layout, ImageToTokensIsFree) {
  Builder b;
  TensorId x = b.conv(b.input({1, 3, 6, 6}), 20, 1);
  x = b.add(permutation_copy({0, 2, 3, 1}), {x}, {1, 6, 6, 20});
  x = b.add(ReshapeAttributes{}, {x}, {1, 36, 20});
  const Graph graph = laid_out(b.finish({b.linear(x, 16)}));
  ASSERT_EQ(kinds(graph), (std::vector{kCopy, kConv, kCopy, kReshape, kLinear}));
  EXPECT_TRUE(alias_strides(graph, 2).has_value());
  EXPECT_TRUE(alias_strides(graph, 3).has_value());
}

TEST(Layout, LinearOnImagesIsConverted) {
  // The last dimension is the width: the linear layer wants it innermost.
  Builder b;
  const TensorId x = b.conv(b.input({1, 3, 4, 6}), 5, 1);
  const Graph graph = laid_out(b.finish({b.conv(b.linear(x, 6), 2, 1)}));
  EXPECT_EQ(kinds(graph), (std::vector{kCopy, kConv, kCopy, kLinear, kCopy, kConv, kCopy}));
}

TEST(Layout, AFullConstantFollowsTheImage) {
  Builder b;
  const TensorId x = b.conv(b.input({1, 3, 4, 6}), 5, 1);
  const TensorId w = b.weights({1, 5, 4, 6});
  const TensorId rows = b.linear(b.input({1, 5, 4, 2}), 6);
  const Graph graph = laid_out(b.finish({b.conv(b.sum(x, w), 5, 1), b.sum(rows, w)}));
  int images = 0;
  for (const Tensor& tensor : graph.tensors()) {
    images += tensor.kind == TensorKind::kConstant && tensor.layout == kImage;
  }
  EXPECT_EQ(images, 1);
}

TEST(Layout, ElementwiseOnAnInputGoesWithItsConsumer) {
  Builder b;
  const TensorId x = b.sum(b.input({1, 3, 4, 6}), b.weights({3, 1, 1}));
  const Graph graph = laid_out(b.finish({b.conv(x, 5, 1)}));
  EXPECT_EQ(kinds(graph), (std::vector{kCopy, kBinary, kConv, kCopy}));
}

TEST(Layout, CheckFindsAWrongLayout) {
  Builder b;
  Graph graph = laid_out(b.finish({b.conv(b.input({1, 3, 4, 6}), 5, 1)}));
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    if (graph.tensor(static_cast<TensorId>(t)).layout == kImage) {
      graph.mutable_tensor(static_cast<TensorId>(t)).layout = kRows;
      break;
    }
  }
  EXPECT_FALSE(check_layouts(graph).ok());
}

}  // namespace
}  // namespace tandem::testing
