#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Layout kImage{Order::kChannelsLast, true};

// Builds a graph of one operator on inputs of these extents and returns its output's, or the error.
StatusOr<Dims> shape_of(const Attributes& attributes, const std::vector<Dims>& inputs,
                        const Dims& given = {}) {
  Graph graph;
  std::vector<TensorId> ids;
  for (const Dims& dims : inputs) ids.push_back(graph.add_input("", DataType::kFloat32, dims));
  StatusOr<TensorId> id = graph.add("op", attributes, ids, given);
  if (!id.ok()) return id.status();
  return graph.tensor(*id).dims;
}

void expect_shape(const Attributes& attributes, const std::vector<Dims>& inputs,
                  const Dims& expected, const Dims& given = {}) {
  StatusOr<Dims> dims = shape_of(attributes, inputs, given);
  ASSERT_TRUE(dims.ok()) << dims.status().to_string();
  EXPECT_EQ(*dims, expected);
}

void expect_error(const Attributes& attributes, const std::vector<Dims>& inputs,
                  const std::string& message, const Dims& given = {}) {
  StatusOr<Dims> dims = shape_of(attributes, inputs, given);
  ASSERT_FALSE(dims.ok()) << to_string(*dims);
  EXPECT_THAT(dims.status().message(), HasSubstr(message));
}

TEST(ShapeRule, Conv) {
  const ConvAttributes stem{.kernel = {7, 7}, .stride = {2, 2}, .pads = {3, 3, 3, 3}};
  expect_shape(stem, {{1, 3, 224, 224}, {64, 3, 7, 7}}, {1, 64, 112, 112});
  const ConvAttributes uneven{.kernel = {3, 2},
                              .stride = {2, 1},
                              .dilation = {2, 3},
                              .pads = {1, 0, 0, 2},
                              .groups = 2,
                              .has_bias = true,
                              .has_residual = true};
  expect_shape(uneven, {{2, 8, 10, 9}, {6, 4, 3, 2}, {6}, {2, 6, 4, 8}}, {2, 6, 4, 8});
  expect_error(uneven, {{2, 8, 10, 9}, {6, 4, 3, 2}, {6}, {2, 6, 4, 7}}, "must be [2, 6, 4, 8]");
  expect_error(uneven, {{2, 8, 10, 9}, {6, 4, 3, 2}, {5}, {2, 6, 4, 8}}, "must be [6]");
  expect_error(stem, {{1, 4, 224, 224}, {64, 3, 7, 7}}, "must be [64, 4, 7, 7]");
  expect_error(stem, {{1, 3, 224}, {64, 3, 7, 7}}, "rank 4");
  expect_error(stem, {{1, 3, 224, 224}}, "2 inputs");
  expect_error(ConvAttributes{.kernel = {3, 3}}, {{1, 3, 2, 9}, {8, 3, 3, 3}}, "no elements");
  expect_error(ConvAttributes{.groups = 3}, {{1, 4, 5, 5}, {6, 1, 1, 1}}, "3 groups");
  expect_error(ConvAttributes{.stride = {0, 1}}, {{1, 4, 5, 5}, {6, 4, 1, 1}}, "positive");
}

TEST(ShapeRule, ConvTranspose) {
  const ConvTransposeAttributes a{.kernel = {3, 3},
                                  .stride = {2, 3},
                                  .pads = {1, 0, 1, 2},
                                  .output_padding = {1, 0},
                                  .groups = 2};
  expect_shape(a, {{1, 6, 5, 4}, {6, 4, 3, 3}}, {1, 8, 10, 10});
  expect_error(a, {{1, 6, 5, 4}, {5, 4, 3, 3}}, "must be [6, 4, 3, 3]");
}

TEST(ShapeRule, LinearAndMatMul) {
  expect_shape(LinearAttributes{.has_bias = true}, {{1, 50, 768}, {768, 3072}, {3072}},
               {1, 50, 3072});
  expect_shape(LinearAttributes{}, {{7}, {7, 3}}, {3});
  expect_error(LinearAttributes{}, {{2, 8}, {7, 3}}, "must be [8, 3]");
  expect_shape(MatMulAttributes{}, {{2, 1, 5, 7}, {1, 3, 7, 4}}, {2, 3, 5, 4});
  expect_shape(MatMulAttributes{.transpose_a = true, .transpose_b = true}, {{7, 5}, {4, 7}},
               {5, 4});
  expect_error(MatMulAttributes{}, {{5, 7}, {8, 4}}, "inner extents 7 and 8");
  expect_error(MatMulAttributes{}, {{2, 5, 7}, {7, 4}}, "ranks must be equal");
  expect_error(MatMulAttributes{}, {{2, 5, 7}, {3, 7, 4}}, "do not broadcast");
}

TEST(ShapeRule, Pool) {
  const PoolAttributes a{.kernel = {3, 3}, .stride = {2, 2}};
  expect_shape(a, {{1, 8, 112, 112}}, {1, 8, 55, 55});
  expect_shape(a, {{1, 8, 112, 112}}, {1, 8, 56, 56}, {1, 8, 56, 56});
  expect_error(a, {{1, 8, 112, 112}}, "between", {1, 8, 57, 56});
}

TEST(ShapeRule, ReduceSoftmaxLayerNorm) {
  expect_shape(ReduceAttributes{.axes = {1, 3}}, {{2, 3, 4, 5}}, {2, 1, 4, 1});
  expect_shape(ReduceAttributes{.axes = {1, 3}, .keep_dims = false}, {{2, 3, 4, 5}}, {2, 4});
  expect_shape(ReduceAttributes{.axes = {0, 1}, .keep_dims = false}, {{2, 3}}, {});
  expect_error(ReduceAttributes{.axes = {3, 1}}, {{2, 3, 4, 5}}, "ascending");
  expect_error(ReduceAttributes{.axes = {2}}, {{2, 3}}, "ascending");
  expect_shape(SoftmaxAttributes{1, false}, {{2, 10}}, {2, 10});
  expect_error(SoftmaxAttributes{-1, false}, {{2, 10}}, "axis -1");
  expect_shape(LayerNormAttributes{}, {{2, 10}, {10}, {10}}, {2, 10});
  expect_error(LayerNormAttributes{}, {{2, 10}, {2}, {10}}, "must be [10]");
}

TEST(ShapeRule, Binary) {
  expect_shape(BinaryAttributes{}, {{5, 1}, {2, 3, 1, 18}}, {2, 3, 5, 18});
  expect_shape(BinaryAttributes{}, {{}, {}}, {});
  expect_error(BinaryAttributes{}, {{5, 2}, {3}}, "do not broadcast");
}

TEST(ShapeRule, Movement) {
  expect_shape(ConcatAttributes{1}, {{2, 3, 4}, {2, 5, 4}, {2, 1, 4}}, {2, 9, 4});
  expect_error(ConcatAttributes{1}, {{2, 3, 4}, {2, 5, 3}}, "must be [2, 5, 4]");
  expect_error(ConcatAttributes{1}, {{2, 3, 4}, {2, 3}}, "must be");
  expect_shape(CopyAttributes{{1, kNone, 0}, {-2, 1, 1}, {0, 6}}, {{3, 7}}, {4, 5, 3}, {4, 5, 3});
  expect_error(CopyAttributes{{1, 0}, {-2, 1}, {0, 5}}, {{3, 7}}, "outside of axis 1", {4, 3});
  expect_error(CopyAttributes{{1, 0}, {1, 1}, {0, 0}}, {{3, 7}}, "outside of axis 0", {7, 4});
  expect_error(CopyAttributes{{1}, {1}, {0, 0}}, {{3, 7}}, "entry per dimension", {7, 3});
  expect_shape(ReshapeAttributes{}, {{3, 8}}, {2, 12}, {2, 12});
  expect_error(ReshapeAttributes{}, {{3, 8}}, "cannot become", {2, 13});
  expect_shape(PadAttributes{.before = {1, 0}, .after = {2, 3}}, {{3, 8}}, {6, 11});
  expect_error(PadAttributes{.mode = PadAttributes::Mode::kReflect, .before = {3}, .after = {0}},
               {{3}}, "reflection");
  expect_error(PadAttributes{.before = {-1}, .after = {0}}, {{3}}, "negative");
  expect_shape(ResizeAttributes{}, {{1, 8, 5, 5}}, {1, 8, 10, 3}, {1, 8, 10, 3});
  expect_error(ResizeAttributes{}, {{1, 8, 5, 5}}, "height and width only", {1, 4, 10, 3});
}

TEST(ShapeRule, GatherKeepsTypeOfItsTable) {
  Graph graph;
  const TensorId table = graph.add_input("", DataType::kInt64, {4, 6, 5});
  const TensorId indices = graph.add_input("", DataType::kInt64, {2, 3});
  StatusOr<TensorId> y = graph.add("gather", GatherAttributes{1}, {table, indices});
  ASSERT_TRUE(y.ok());
  EXPECT_THAT(graph.tensor(*y).dims, ElementsAre(4, 2, 3, 5));
  EXPECT_EQ(graph.tensor(*y).type, DataType::kInt64);
}

TEST(ShapeRule, RefusesTypesThatAnOperatorCannotTake) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kInt64, {4});
  StatusOr<TensorId> y = graph.add("relu", UnaryAttributes{{Function::kRelu}}, {x});
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(y.status().message(), HasSubstr("x is int64 where float32 is needed"));
}

TEST(ShapeRule, DerivedExtentsAreCheckedAgainstGivenOnes) {
  expect_error(BinaryAttributes{}, {{5}, {5}}, "the output is [5], not [6]", {6});
}

// A small valid graph to break in one way at a time.
struct Small {
  Graph graph;
  TensorId x, w, y, z;

  Small() {
    x = graph.add_input("x", DataType::kFloat32, {1, 4, 6, 6}, kImage);
    w = graph.add_constant("w", HostTensor(DataType::kFloat32, {8, 4, 1, 1}));
    y = graph.add("conv", ConvAttributes{}, {x, w}, {}, kImage).value();
    z = graph.add("sum", BinaryAttributes{}, {y, y}, {}, kImage).value();
    graph.mark_output(z);
  }
};

TEST(Graph, LinksProducersAndConsumers) {
  const Small s;
  EXPECT_TRUE(s.graph.validate().ok()) << s.graph.validate().to_string();
  EXPECT_EQ(s.graph.tensor(s.y).producer, 0);
  EXPECT_THAT(s.graph.tensor(s.y).consumers, ElementsAre(1)) << "read twice, listed once";
  EXPECT_TRUE(s.graph.is_output(s.z));
  EXPECT_FALSE(s.graph.is_output(s.y));
  EXPECT_TRUE(is_packed_input(s.graph.op(0), 1));
  EXPECT_FALSE(is_packed_input(s.graph.op(0), 0));
}

TEST(Graph, MakesNamesWhereNoneIsGiven) {
  Graph graph;
  const TensorId x = graph.add_input("", DataType::kFloat32, {4});
  const TensorId y = graph.add("", UnaryAttributes{}, {x}).value();
  graph.add("", UnaryAttributes{}, {y}).value();
  EXPECT_TRUE(graph.validate().ok());
  EXPECT_EQ(graph.op(0).name, "unary0");
  EXPECT_EQ(graph.op(1).name, "unary1");
}

TEST(Graph, RefusesInputsThatDoNotExist) {
  Graph graph;
  EXPECT_FALSE(graph.add("relu", UnaryAttributes{}, {0}).ok());
}

TEST(GraphValidate, NamesWhatIsBroken) {
  const auto message = [](auto&& breakage) {
    Small s;
    breakage(s);
    return s.graph.validate().message();
  };
  EXPECT_THAT(message([](Small& s) { s.graph.mutable_tensor(s.y).name = "x"; }),
              HasSubstr("not unique"));
  EXPECT_THAT(message([](Small& s) {
                s.graph.mutable_tensor(s.y).dims = {1, 8, 6, 5};
              }),
              HasSubstr("conv"));
  EXPECT_THAT(message([](Small& s) { s.graph.mutable_tensor(s.w).value = nullptr; }),
              HasSubstr("constants and only they have a value"));
  EXPECT_THAT(message([](Small& s) { s.graph.mutable_tensor(s.y).consumers.clear(); }),
              HasSubstr("consumers"));
  EXPECT_THAT(message([](Small& s) { s.graph.mark_output(99); }), HasSubstr("does not exist"));
  EXPECT_THAT(message([](Small& s) { s.graph.mutable_tensor(s.x).dims[0] = 0; }),
              HasSubstr("no elements"));
  EXPECT_THAT(message([](Small& s) {
                s.graph.mutable_tensor(s.w).value = nullptr;
                s.graph.mutable_tensor(s.w).kind = TensorKind::kInput;
              }),
              HasSubstr("w must be a constant"));
}

TEST(GraphValidate, KeepsImagesChannelsLast) {
  Small s;
  s.graph.mutable_tensor(s.x).layout = {};
  EXPECT_THAT(s.graph.validate().message(), HasSubstr("channels-last tensors only"));
}

TEST(GraphValidate, KeepsMatricesRowMajor) {
  Graph graph;
  const TensorId a = graph.add_input("a", DataType::kFloat32, {1, 2, 3, 4}, kImage);
  const TensorId b = graph.add_input("b", DataType::kFloat32, {1, 2, 4, 5});
  graph.add("product", MatMulAttributes{}, {a, b}).value();
  EXPECT_THAT(graph.validate().message(), HasSubstr("row-major"));
}

}  // namespace
}  // namespace tandem
