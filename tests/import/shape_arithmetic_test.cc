// What models compute from shapes and constants is known at load, and leaves no operators.
#include <cmath>

#include "tests/import/model_builder.h"

namespace tandem::testing {
namespace {

using Ints = std::vector<int64_t>;

// The one output of a model that depends on nothing but constants and the shape of `x`.
std::vector<double> folded(ModelBuilder& model) {
  model.input("x", {2, 3, 4, 5});
  model.output("y");
  const StatusOr<Model> loaded = model.load();
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
  if (!loaded.ok()) return {};
  // The output is copied from a constant, by one operator.
  EXPECT_EQ(loaded->graph().operators().size(), 1u);
  return run(*loaded, {HostTensor(DataType::kFloat32, {2, 3, 4, 5})})[0].values;
}

TEST(ShapeArithmetic, ShapeAndSize) {
  ModelBuilder shape(15);
  shape.node("Shape", {"x"}, {"y"}, {{"start", int64_t{1}}, {"end", int64_t{-1}}});
  EXPECT_EQ(folded(shape), (std::vector<double>{3, 4}));
  ModelBuilder size;
  size.node("Size", {"x"}, {"y"});
  EXPECT_EQ(folded(size), (std::vector<double>{120}));
}

TEST(ShapeArithmetic, ShapeOfWhatIsComputedAtRunTime) {
  ModelBuilder model;
  model.node("Relu", {"x"}, {"r"});
  model.node("Shape", {"r"}, {"y"});
  EXPECT_EQ(folded(model), (std::vector<double>{2, 3, 4, 5}));
}

TEST(ShapeArithmetic, WhatExportersWrite) {
  // [2, 3 * 4, 5 / 2] of x, by a detour.
  ModelBuilder model;
  model.initializer("zero", HostTensor::ints({}, {0}));
  model.ints("one", {1});
  model.ints("three", {3});
  model.ints("two", {2});
  model.ints("axis", {0});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "zero"}, {"n"});
  model.node("Unsqueeze", {"n", "axis"}, {"n1"});
  model.node("Slice", {"shape", "one", "three"}, {"hw"});
  model.node("ReduceProd", {"hw"}, {"area"}, {{"keepdims", int64_t{1}}});
  model.node("Slice", {"shape", "three", "max"}, {"w"});
  model.ints("max", {std::numeric_limits<int64_t>::max()});
  model.node("Cast", {"w"}, {"w32"}, {{"to", int64_t{onnx::TensorProto::INT32}}});
  model.node("Cast", {"w32"}, {"w64"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  model.node("Div", {"w64", "two"}, {"half"});
  model.node("Concat", {"n1", "area", "half"}, {"y"}, {{"axis", int64_t{0}}});
  EXPECT_EQ(folded(model), (std::vector<double>{2, 12, 2}));
}

TEST(ShapeArithmetic, FloatsAndBack) {
  // floor(5 * 0.5) as resizing computes it.
  ModelBuilder model;
  model.ints("last", {3});
  model.floats("half", {1}, {0.5});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "last"}, {"w"});
  model.node("Cast", {"w"}, {"f"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  model.node("Mul", {"f", "half"}, {"m"});
  model.node("Floor", {"m"}, {"d"});
  model.node("Cast", {"d"}, {"y"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  EXPECT_EQ(folded(model), (std::vector<double>{2}));
}

TEST(ShapeArithmetic, ExpandWithMinusOne) {
  // PyTorch's expand: where(shape == -1, ones, shape).
  ModelBuilder model;
  model.ints("shape", {-1, 7});
  model.ints("minus_one", {-1});
  model.ints("rank", {2});
  model.node("ConstantOfShape", {"rank"}, {"ones"}, {{"value", HostTensor::ints({1}, {1})}});
  model.node("Equal", {"shape", "minus_one"}, {"open"});
  model.node("Where", {"open", "ones", "shape"}, {"y"});
  EXPECT_EQ(folded(model), (std::vector<double>{1, 7}));
}

TEST(ShapeArithmetic, RangesOfBothTypes) {
  ModelBuilder ints;
  ints.initializer("a", HostTensor::ints({}, {5}));
  ints.initializer("b", HostTensor::ints({}, {-1}));
  ints.initializer("c", HostTensor::ints({}, {-2}));
  ints.node("Range", {"a", "b", "c"}, {"y"});
  EXPECT_EQ(folded(ints), (std::vector<double>{5, 3, 1}));
  ModelBuilder floats;
  floats.floats("a", {}, {0});
  floats.floats("b", {}, {1});
  floats.floats("c", {}, {0.25});
  floats.node("Range", {"a", "b", "c"}, {"y"});
  EXPECT_EQ(folded(floats), (std::vector<double>{0, 0.25, 0.5, 0.75}));
}

TEST(ShapeArithmetic, IntegersDivideAndWrapAsOnnxSays) {
  const auto binary = [](const std::string& op, int64_t a, int64_t b,
                         const std::vector<Attribute>& attributes = {}) {
    ModelBuilder model;
    model.ints("a", {a});
    model.ints("b", {b});
    model.node(op, {"a", "b"}, {"y"}, attributes);
    const std::vector<double> y = folded(model);
    return y.size() == 1 ? y[0] : std::nan("");
  };
  EXPECT_EQ(binary("Div", -7, 2), -3);
  EXPECT_EQ(binary("Mod", -7, 3), 2);
  EXPECT_EQ(binary("Mod", 7, -3), -2);
  EXPECT_EQ(binary("Mod", -7, 3, {{"fmod", int64_t{1}}}), -1);
  EXPECT_EQ(binary("Pow", 3, 4), 81);
  EXPECT_EQ(binary("Max", 3, 4), 4);
  EXPECT_EQ(binary("Less", 3, 4), 1);
  EXPECT_EQ(binary("And", 3, 0), 0);
}

TEST(ShapeArithmetic, ListsThatTurnOutEmpty) {
  ModelBuilder model;
  model.ints("five", {5});
  model.ints("nine", {9});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Slice", {"shape", "five", "nine"}, {"none"});
  model.node("Concat", {"none", "five"}, {"y"}, {{"axis", int64_t{0}}});
  EXPECT_EQ(folded(model), (std::vector<double>{5}));
}

TEST(ShapeArithmetic, OverflowsAreErrors) {
  for (const std::string op : {"Mul", "Add", "Div"}) {
    ModelBuilder model;
    model.input("x", {1});
    model.ints("a", {std::numeric_limits<int64_t>::max()});
    model.ints("b", {op == "Div" ? 0 : 2});
    model.node(op, {"a", "b"}, {"y"});
    model.output("y");
    expect_error(model.load(), StatusCode::kInvalidArgument, {op, "overflow"});
  }
}

TEST(ShapeArithmetic, HugeConstantsAreRefused) {
  ModelBuilder model;
  model.input("x", {1});
  model.ints("shape", {1 << 20, 1 << 20});
  model.node("ConstantOfShape", {"shape"}, {"y"});
  model.output("y");
  expect_error(model.load(), StatusCode::kUnsupported, {"too large"});
  ModelBuilder sum;
  sum.input("x", {1});
  sum.initializer("a", HostTensor(DataType::kInt64, {1 << 15, 1}));
  sum.initializer("b", HostTensor(DataType::kInt64, {1 << 15}));
  sum.node("Add", {"a", "b"}, {"y"});
  sum.output("y");
  expect_error(sum.load(), StatusCode::kUnsupported, {"too large"});
}

TEST(ShapeArithmetic, FloatConstantsAreFoldedToo) {
  ModelBuilder model;
  model.floats("a", {2}, {1, 4});
  model.node("Sqrt", {"a"}, {"r"});
  model.node("Neg", {"r"}, {"y"});
  EXPECT_EQ(folded(model), (std::vector<double>{-1, -2}));
}

TEST(ShapeArithmetic, ConstantNodesOfEveryForm) {
  const auto value = [](const Attribute& attribute) {
    ModelBuilder model;
    model.node("Constant", {}, {"y"}, {attribute});
    return folded(model);
  };
  EXPECT_EQ(value({"value", HostTensor::ints({2}, {1, 2})}), (std::vector<double>{1, 2}));
  EXPECT_EQ(value({"value_int", int64_t{3}}), (std::vector<double>{3}));
  EXPECT_EQ(value({"value_float", 0.5f}), (std::vector<double>{0.5}));
  EXPECT_EQ(value({"value_ints", Ints{3, 4}}), (std::vector<double>{3, 4}));
  EXPECT_EQ(value({"value_floats", std::vector<float>{3, 4}}), (std::vector<double>{3, 4}));
}

}  // namespace
}  // namespace tandem::testing
