// What libonnx-testdata does not cover: older opsets, one spatial dimension, rarer arguments. The
// rest of the operators are checked by the conformance tests.
#include <cmath>
#include <numbers>

#include "tests/import/model_builder.h"
#include "tests/import/tensors.h"

namespace tandem::testing {
namespace {

NodeCase unary(const std::string& op, Floats x, std::vector<Attribute> attributes = {},
               int64_t opset = 13) {
  return {.opset = opset,
          .op = op,
          .inputs = {"x0"},
          .x = {vector_of(std::move(x))},
          .constants = {},
          .attributes = std::move(attributes)};
}

TEST(Elementwise, FunctionsAndTheirDefaults) {
  expect_output(unary("Elu", {-1, 2}), {2}, {std::exp(-1.0) - 1, 2});
  expect_output(unary("Elu", {-1, 2}, {{"alpha", 2.0f}}), {2}, {2 * std::exp(-1.0) - 2, 2});
  expect_output(unary("LeakyRelu", {-1, 2}), {2}, {-0.01, 2});
  expect_output(unary("HardSigmoid", {-10, 1, 10}), {3}, {0, 0.7, 1});
  expect_output(unary("HardSigmoid", {1}, {{"alpha", 0.5f}, {"beta", 0.25f}}), {1}, {0.75});
  expect_output(unary("HardSwish", {-4, 1, 4}, {}, 14), {3}, {0, 4.0 / 6, 4});
  expect_output(unary("Softplus", {0}), {1}, {std::log(2.0)});
  expect_output(unary("Celu", {-1, 2}, {{"alpha", 2.0f}}), {2}, {2 * (std::exp(-0.5) - 1), 2});
  expect_output(unary("Selu", {1}), {1}, {1.05070102});
  expect_output(unary("Softsign", {-3, 1}), {2}, {-0.75, 0.5});
  expect_output(unary("Mish", {1}, {}, 18), {1}, {std::tanh(std::log1p(std::exp(1.0)))});
  const double gelu = 0.5 * (1 + std::erf(1 / std::numbers::sqrt2));
  expect_output(unary("Gelu", {1}, {}, 20), {1}, {gelu});
  expect_output(unary("Gelu", {1}, {{"approximate", "tanh"}}, 20), {1}, {0.841192});
}

TEST(Elementwise, ClipByAttributesAndInputs) {
  expect_output(unary("Clip", {-3, 0, 3}, {{"min", -1.0f}, {"max", 2.0f}}, 7), {3}, {-1, 0, 2});
  expect_output(unary("Clip", {-3, 0, 3}, {{"max", 2.0f}}, 7), {3}, {-3, 0, 2});
  const HostTensor x = vector_of({-3, 0, 3});
  const HostTensor one = HostTensor::floats({}, {1});
  expect_output({.op = "Clip", .inputs = {"x0", "", "c0"}, .x = {x}, .constants = {one}}, {3},
                {-3, 0, 1});
  expect_output({.op = "Clip", .inputs = {"x0"}, .x = {x}}, {3}, {-3, 0, 3});
  // A bound that is known at run time only.
  expect_output({.op = "Clip", .inputs = {"x0", "x1"}, .x = {x, HostTensor::floats({}, {1})}}, {3},
                {1, 1, 3});
}

TEST(Elementwise, PReluBySlope) {
  const HostTensor x = ramp({1, 2, 2}, -2);
  expect_output({.op = "PRelu", .inputs = {"x0", "c0"}, .x = {x}, .constants = {vector_of({0.5})}},
                {1, 2, 2}, {-1, -0.5, 0, 1});
  const HostTensor slopes = HostTensor::floats({2, 1}, {0.5, 2});
  expect_output({.op = "PRelu", .inputs = {"x0", "c0"}, .x = {x}, .constants = {slopes}}, {1, 2, 2},
                {-1, -0.5, 0, 1});
  expect_node_error({.op = "PRelu",
                     .inputs = {"x0", "c0"},
                     .x = {x},
                     .constants = {HostTensor::floats({3, 1, 1}, {1, 1, 1})}},
                    StatusCode::kInvalidArgument, {"slope"});
}

TEST(Elementwise, SeveralOperands) {
  const std::vector<HostTensor> x = {vector_of({1, 5}), vector_of({4, 2}), vector_of({3, 3})};
  const std::vector<std::string> names = {"x0", "x1", "x2"};
  expect_output({.op = "Max", .inputs = names, .x = x}, {2}, {4, 5});
  expect_output({.op = "Min", .inputs = names, .x = x}, {2}, {1, 2});
  expect_output({.op = "Sum", .inputs = names, .x = x}, {2}, {8, 10});
  expect_output({.op = "Mean", .inputs = names, .x = x}, {2}, {8.0 / 3, 10.0 / 3});
  expect_output({.op = "Sum", .inputs = {"x0"}, .x = {x[0]}}, {2}, {1, 5});
}

TEST(Elementwise, PowerWithAnIntegerExponent) {
  expect_output(
      {.op = "Pow", .inputs = {"x0", "c0"}, .x = {vector_of({2, 3})}, .constants = {list_of({3})}},
      {2}, {8, 27});
}

// ---- Convolution and pooling ----------------------------------------------------------------

TEST(Convolution, OneSpatialDimension) {
  expect_output(
      {.op = "Conv",
       .inputs = {"x0", "c0", "c1"},
       .x = {ramp({1, 1, 5})},
       .constants = {HostTensor::floats({2, 1, 3}, {1, 1, 1, 1, 0, -1}), vector_of({0, 10})},
       .attributes = {{"pads", Ints{1, 0}}, {"strides", Ints{2}}}},
      {1, 2, 2}, {1, 6, 9, 8});
}

TEST(Convolution, AutoPad) {
  const std::vector<HostTensor> one = {ramp({1, 1, 1, 4}, 1)};
  const HostTensor pair = HostTensor::floats({1, 1, 1, 2}, {1, 10});
  const auto with = [&](const char* mode) {
    return NodeCase{.op = "Conv",
                    .inputs = {"x0", "c0"},
                    .x = one,
                    .constants = {pair},
                    .attributes = {{"auto_pad", mode}}};
  };
  expect_output(with("SAME_UPPER"), {1, 1, 1, 4}, {21, 32, 43, 4});
  expect_output(with("SAME_LOWER"), {1, 1, 1, 4}, {10, 21, 32, 43});
  expect_output(with("VALID"), {1, 1, 1, 3}, {21, 32, 43});
  expect_output(with("NOTSET"), {1, 1, 1, 3}, {21, 32, 43});
  expect_node_error(with("SOMETIMES"), StatusCode::kInvalidArgument, {"SOMETIMES"});
}

TEST(Convolution, ABiasThatIsComputed) {
  expect_output({.op = "Conv",
                 .inputs = {"x0", "c0", "x1"},
                 .x = {ramp({1, 1, 1, 2}), vector_of({5, 6})},
                 .constants = {HostTensor::floats({2, 1, 1, 1}, {1, 2})}},
                {1, 2, 1, 2}, {5, 6, 6, 8});
}

TEST(Convolution, WeightsMustBeKnown) {
  expect_node_error(
      {.op = "Conv", .inputs = {"x0", "x1"}, .x = {ramp({1, 1, 2, 2}), ramp({1, 1, 1, 1})}},
      StatusCode::kUnsupported, {"weights", "x1"});
}

TEST(Convolution, ThreeSpatialDimensionsAreUnsupported) {
  expect_node_error({.op = "Conv",
                     .inputs = {"x0", "c0"},
                     .x = {ramp({1, 1, 2, 2, 2})},
                     .constants = {ramp({1, 1, 1, 1, 1})}},
                    StatusCode::kUnsupported, {"rank 5"});
}

TEST(ConvTranspose, OutputShapeAndOneDimension) {
  const HostTensor x = HostTensor::floats({1, 1, 2}, {1, 10});
  const HostTensor w = HostTensor::floats({1, 1, 2}, {1, 2});
  const NodeCase plain = {.op = "ConvTranspose",
                          .inputs = {"x0", "c0"},
                          .x = {x},
                          .constants = {w},
                          .attributes = {{"strides", Ints{2}}}};
  expect_output(plain, {1, 1, 4}, {1, 2, 10, 20});
  NodeCase larger = plain;
  larger.attributes.push_back({"output_shape", Ints{5}});
  expect_output(larger, {1, 1, 5}, {1, 2, 10, 20, 0});
  NodeCase padded = plain;
  padded.attributes.push_back({"output_padding", Ints{1}});
  expect_output(padded, {1, 1, 5}, {1, 2, 10, 20, 0});
  NodeCase same = plain;
  same.attributes.push_back({"auto_pad", "SAME_UPPER"});
  expect_output(same, {1, 1, 4}, {1, 2, 10, 20});
}

TEST(Pool, CeilModeDropsAWindowBehindTheImage) {
  const auto with = [](int64_t extent, Ints pads, int64_t ceil) {
    return NodeCase{.op = "MaxPool",
                    .inputs = {"x0"},
                    .x = {ramp({1, 1, extent})},
                    .attributes = {{"kernel_shape", Ints{2}},
                                   {"strides", Ints{2}},
                                   {"pads", std::move(pads)},
                                   {"ceil_mode", ceil}}};
  };
  expect_output(with(5, {0, 0}, 0), {1, 1, 2}, {1, 3});
  expect_output(with(5, {0, 0}, 1), {1, 1, 3}, {1, 3, 4});
  // The third window would start behind the image.
  expect_output(with(3, {1, 1}, 1), {1, 1, 2}, {0, 2});
}

TEST(Pool, AverageCountsPadsOnRequest) {
  const auto with = [](int64_t count) {
    return NodeCase{
        .op = "AveragePool",
        .inputs = {"x0"},
        .x = {ramp({1, 1, 3}, 1)},
        .attributes = {
            {"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}, {"count_include_pad", count}}};
  };
  expect_output(with(0), {1, 1, 3}, {1.5, 2, 2.5});
  expect_output(with(1), {1, 1, 3}, {1, 2, 5.0 / 3});
}

TEST(Pool, GlobalOnOneDimension) {
  expect_output({.op = "GlobalAveragePool", .inputs = {"x0"}, .x = {ramp({1, 2, 4})}}, {1, 2, 1},
                {1.5, 5.5});
  expect_output({.op = "GlobalMaxPool", .inputs = {"x0"}, .x = {ramp({1, 2, 4})}}, {1, 2, 1},
                {3, 7});
}

TEST(Pool, IndicesAreUnsupportedWhereTheyAreRead) {
  ModelBuilder model;
  model.input("x", {1, 1, 4, 4});
  model.node("MaxPool", {"x"}, {"y", "indices"}, {{"kernel_shape", Ints{2, 2}}});
  model.output("y");
  EXPECT_TRUE(model.load().ok());
  model.output("indices");
  expect_error(model.load(), StatusCode::kUnsupported, {"MaxPool", "indices"});
}

// ---- Matrices -------------------------------------------------------------------------------

TEST(Gemm, EveryOperandTransposedScaledAndAdded) {
  const HostTensor a = ramp({2, 3}, 1);  // 1 2 3 | 4 5 6
  const HostTensor a_t = HostTensor::floats({3, 2}, {1, 4, 2, 5, 3, 6});
  const HostTensor b = HostTensor::floats({3, 2}, {1, 0, 0, 1, 1, 1});
  const HostTensor b_t = HostTensor::floats({2, 3}, {1, 0, 1, 0, 1, 1});
  const std::vector<double> expected = {4 * 2 + 30, 5 * 2 + 60, 10 * 2 + 30, 11 * 2 + 60};
  for (const bool runtime_b : {false, true}) {
    for (const bool transposed : {false, true}) {
      NodeCase gemm = {.op = "Gemm", .inputs = {"x0", runtime_b ? "x1" : "c1", "c0"}};
      gemm.x = {transposed ? a_t : a};
      gemm.constants = {vector_of({10, 20})};
      (runtime_b ? gemm.x : gemm.constants).push_back(transposed ? b_t : b);
      gemm.attributes = {{"alpha", 2.0f},
                         {"beta", 3.0f},
                         {"transA", int64_t{transposed}},
                         {"transB", int64_t{transposed}}};
      expect_output(gemm, {2, 2}, expected);
    }
  }
}

TEST(Gemm, AddendsOfEveryShape) {
  const HostTensor a = HostTensor::floats({2, 1}, {1, 2});
  const HostTensor b = HostTensor::floats({1, 2}, {1, 10});
  const auto with = [&](HostTensor c) {
    return NodeCase{
        .op = "Gemm", .inputs = {"x0", "c0", "c1"}, .x = {a}, .constants = {b, std::move(c)}};
  };
  expect_output(with(HostTensor::floats({}, {5})), {2, 2}, {6, 15, 7, 25});
  expect_output(with(HostTensor::floats({1, 2}, {5, 6})), {2, 2}, {6, 16, 7, 26});
  expect_output(with(HostTensor::floats({2, 1}, {5, 6})), {2, 2}, {6, 15, 8, 26});
  expect_output(with(HostTensor::floats({2, 2}, {1, 2, 3, 4})), {2, 2}, {2, 12, 5, 24});
  expect_node_error(with(HostTensor::floats({1, 2, 2}, {1, 2, 3, 4})), StatusCode::kInvalidArgument,
                    {"addend"});
}

TEST(MatMul, VectorsAndBatches) {
  const HostTensor v = ramp({3}, 1);
  const HostTensor m = ramp({3, 2});
  expect_output({.op = "MatMul", .inputs = {"x0", "x1"}, .x = {v, m}}, {2}, {16, 22});
  expect_output({.op = "MatMul", .inputs = {"x0", "x1"}, .x = {v, v}}, {}, {14});
  expect_output({.op = "MatMul", .inputs = {"x0", "c0"}, .x = {ramp({2, 1, 3})}, .constants = {m}},
                {2, 1, 2}, {10, 13, 28, 40});
  expect_output({.op = "MatMul", .inputs = {"x0", "x1"}, .x = {ramp({2, 1, 3}), ramp({2, 3, 1})}},
                {2, 1, 1}, {5, 50});
  expect_node_error({.op = "MatMul", .inputs = {"x0", "x1"}, .x = {v, ramp({2, 2})}},
                    StatusCode::kInvalidArgument, {"MatMul", "3 and 2"});
}

// ---- Reductions and normalisations ----------------------------------------------------------

TEST(Reduce, AxesAsAttributeAndInput) {
  const HostTensor x = ramp({2, 3});
  expect_output({.opset = 11,
                 .op = "ReduceSum",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"axes", Ints{-1}}, {"keepdims", int64_t{0}}}},
                {2}, {3, 12});
  expect_output({.opset = 13,
                 .op = "ReduceSum",
                 .inputs = {"x0", "c0"},
                 .x = {x},
                 .constants = {list_of({0})}},
                {1, 3}, {3, 5, 7});
  expect_output({.opset = 18,
                 .op = "ReduceMax",
                 .inputs = {"x0", "c0"},
                 .x = {x},
                 .constants = {list_of({1})}},
                {2, 1}, {2, 5});
  expect_output({.opset = 13, .op = "ReduceMean", .inputs = {"x0"}, .x = {x}}, {1, 1}, {2.5});
  expect_output({.opset = 13,
                 .op = "ReduceSum",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"noop_with_empty_axes", int64_t{1}}}},
                {2, 3}, {0, 1, 2, 3, 4, 5});
  expect_output({.op = "ReduceL2", .inputs = {"x0"}, .x = {vector_of({3, 4})}}, {1}, {5});
  expect_output({.op = "ReduceL1", .inputs = {"x0"}, .x = {vector_of({3, -4})}}, {1}, {7});
  expect_output({.op = "ReduceSumSquare", .inputs = {"x0"}, .x = {vector_of({3, 4})}}, {1}, {25});
  expect_output({.op = "ReduceProd", .inputs = {"x0"}, .x = {vector_of({3, 4})}}, {1}, {12});
  expect_output({.op = "ReduceMin", .inputs = {"x0"}, .x = {vector_of({3, 4})}}, {1}, {3});
}

TEST(Softmax, OldOpsetsFlattenAtTheAxis) {
  const HostTensor x(DataType::kFloat32, {2, 2, 2});
  expect_output({.opset = 11, .op = "Softmax", .inputs = {"x0"}, .x = {x}}, {2, 2, 2},
                std::vector<double>(8, 0.25));
  expect_output({.opset = 13, .op = "Softmax", .inputs = {"x0"}, .x = {x}}, {2, 2, 2},
                std::vector<double>(8, 0.5));
  expect_output({.opset = 11,
                 .op = "LogSoftmax",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"axis", int64_t{0}}}},
                {2, 2, 2}, std::vector<double>(8, -std::log(8.0)));
  expect_output({.opset = 11,
                 .op = "Softmax",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"axis", int64_t{-1}}}},
                {2, 2, 2}, std::vector<double>(8, 0.5));
}

TEST(BatchNormalization, PerChannel) {
  const NodeCase node = {
      .op = "BatchNormalization",
      .inputs = {"x0", "c0", "c1", "c2", "c3"},
      .x = {ramp({1, 2, 2})},
      .constants = {vector_of({2, 1}), vector_of({0, 5}), vector_of({1, 2}), vector_of({4, 1})},
      .attributes = {{"epsilon", 0.0f}}};
  expect_output(node, {1, 2, 2}, {-1, 0, 5, 6});
  NodeCase training = node;
  training.attributes.push_back({"training_mode", int64_t{1}});
  expect_node_error(training, StatusCode::kUnsupported, {"training"});
  NodeCase wrong = node;
  wrong.constants[2] = vector_of({1, 2, 3});
  expect_node_error(wrong, StatusCode::kInvalidArgument, {"'c2'", "[2]"});
}

TEST(LayerNormalization, OverSeveralDimensions) {
  const HostTensor x = HostTensor::floats({2, 2, 1}, {1, 3, 10, 30});
  const HostTensor scale = HostTensor::floats({2, 1}, {1, 2});
  const HostTensor bias = HostTensor::floats({2, 1}, {0, 10});
  expect_output({.opset = 17,
                 .op = "LayerNormalization",
                 .inputs = {"x0", "c0", "c1"},
                 .x = {x},
                 .constants = {scale, bias},
                 .attributes = {{"axis", int64_t{1}}, {"epsilon", 0.0f}}},
                {2, 2, 1}, {-1, 12, -1, 12});
  expect_output({.opset = 17,
                 .op = "LayerNormalization",
                 .inputs = {"x0", "c0"},
                 .x = {x},
                 .constants = {HostTensor::floats({1}, {3})},
                 .attributes = {{"axis", int64_t{1}}, {"epsilon", 0.0f}}},
                {2, 2, 1}, {-3, 3, -3, 3});
}

TEST(InstanceAndGroupNormalization, PerChannelScale) {
  const HostTensor x = HostTensor::floats({1, 2, 2}, {1, 3, 10, 30});
  const std::vector<HostTensor> constants = {vector_of({1, 2}), vector_of({0, 10})};
  expect_output({.op = "InstanceNormalization",
                 .inputs = {"x0", "c0", "c1"},
                 .x = {x},
                 .constants = constants,
                 .attributes = {{"epsilon", 0.0f}}},
                {1, 2, 2}, {-1, 1, 8, 12});
  expect_output({.opset = 21,
                 .op = "GroupNormalization",
                 .inputs = {"x0", "c0", "c1"},
                 .x = {x},
                 .constants = constants,
                 .attributes = {{"num_groups", int64_t{2}}, {"epsilon", 0.0f}}},
                {1, 2, 2}, {-1, 1, 8, 12});
  expect_output({.opset = 18,
                 .op = "GroupNormalization",
                 .inputs = {"x0", "c0", "c1"},
                 .x = {HostTensor::floats({1, 2, 1}, {1, 3})},
                 .constants = {vector_of({2}), vector_of({1})},
                 .attributes = {{"num_groups", int64_t{1}}, {"epsilon", 0.0f}}},
                {1, 2, 1}, {-1, 3});
}

}  // namespace
}  // namespace tandem::testing
