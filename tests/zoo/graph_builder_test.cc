#include "zoo/graph_builder.h"

#include <gtest/gtest.h>

#include <utility>

namespace tandem::zoo {
namespace {

GraphBuilder make_builder() { return GraphBuilder("test", 1, Weights::kShapesOnly); }

TEST(GraphBuilder, TracksShapes) {
  GraphBuilder g = make_builder();
  const Value x = g.input("x", {1, 3, 32, 20});
  const Value y = g.conv(x, "conv", {.out = 8, .kernel = {3, 5}, .stride = {2, 1}, .pad = {1, 2}});
  EXPECT_EQ(y.shape, (Shape{1, 8, 16, 20}));
  EXPECT_EQ(g.max_pool(y, {.kernel = 3, .stride = 2}).shape, (Shape{1, 8, 7, 9}));
  EXPECT_EQ(g.max_pool(y, {.kernel = 3, .stride = 2, .ceil = true}).shape, (Shape{1, 8, 8, 10}));
  EXPECT_EQ(g.conv_transpose(y, "up", {.out = 4, .kernel = 2, .stride = 2}).shape,
            (Shape{1, 4, 32, 40}));
  EXPECT_EQ(g.reshape(y, {8, -1}).shape, (Shape{8, 320}));
  EXPECT_EQ(g.transpose(y, {0, 2, 3, 1}).shape, (Shape{1, 16, 20, 8}));
  EXPECT_EQ(g.gather(y, g.integer(0), 1).shape, (Shape{1, 16, 20}));
  EXPECT_EQ(g.split(y, {3, 5}, 1)[1].shape, (Shape{1, 5, 16, 20}));
  EXPECT_EQ(g.concat({y, y}, -1).shape, (Shape{1, 8, 16, 40}));
  EXPECT_EQ(g.mul(y, g.global_average_pool(y)).shape, y.shape);
  EXPECT_EQ(g.reduce_mean(y, {2, 3}, false).shape, (Shape{1, 8}));
  EXPECT_EQ(g.squeeze(g.unsqueeze(y, 0), 0).shape, y.shape);
  EXPECT_EQ(g.upsample_nearest(y, 2).shape, (Shape{1, 8, 32, 40}));
  g.output(y, "y");
  EXPECT_TRUE(std::move(g).finish().ok());
}

TEST(GraphBuilder, KeepsTheFirstError) {
  GraphBuilder g = make_builder();
  const Value x = g.input("x", {1, 3, 8, 8});
  {
    const auto scope = g.scope("layer1");
    const Value bad = g.add(x, g.conv(x, "conv", {.out = 5}));
    g.output(g.linear(g.flatten(bad), "fc", 10), "y");
  }
  const Status status = std::move(g).finish().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("layer1.add: [1, 3, 8, 8] and [1, 5, 8, 8] do not broadcast"),
            std::string::npos)
      << status.message();
}

TEST(GraphBuilder, RefusesAGraphWithoutOutput) {
  GraphBuilder g = make_builder();
  g.relu(g.input("x", {1, 3}));
  EXPECT_FALSE(std::move(g).finish().ok());
}

TEST(GraphBuilder, NamesNodesByScope) {
  GraphBuilder g = make_builder();
  Value x = g.input("x", {1, 3, 8, 8});
  {
    const auto outer = g.scope("layer1");
    const auto inner = g.scope("0");
    x = g.relu(g.relu(x));
  }
  g.output(g.relu(x), "y");
  const StatusOr<onnx::ModelProto> model = std::move(g).finish();
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->graph().node(0).name(), "layer1.0.relu");
  EXPECT_EQ(model->graph().node(1).name(), "layer1.0.relu_1");
  EXPECT_EQ(model->graph().node(2).name(), "relu");
  EXPECT_EQ(model->graph().node(2).output(0), "y");
}

TEST(GraphBuilder, LinearIsGemmOnMatricesAndMatMulAbove) {
  GraphBuilder g = make_builder();
  const Value x = g.input("x", {2, 6});
  g.linear(x, "gemm", 4);
  g.output(g.linear(g.reshape(x, {1, 2, 6}), "matmul", 4), "y");
  EXPECT_EQ(g.parameters(), 2 * (6 * 4 + 4));
  EXPECT_EQ(g.multiply_accumulates(), 2 * (2 * 6 * 4));
  const StatusOr<onnx::ModelProto> model = std::move(g).finish();
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->graph().node(0).op_type(), "Gemm");
  EXPECT_EQ(model->graph().node(3).op_type(), "MatMul");
  EXPECT_EQ(model->graph().node(4).op_type(), "Add");
}

}  // namespace
}  // namespace tandem::zoo
