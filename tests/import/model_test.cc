// Inputs and outputs, and names.
#include "tandem/model.h"

#include <cstdio>
#include <fstream>
#include <functional>

#include "graph/passes/layout.h"
#include "tests/import/model_builder.h"
#include "tests/import/small_models.h"

namespace tandem::testing {
namespace {

// ---- Inputs ---------------------------------------------------------------------------------

TEST(Inputs, SpecsAreThoseOfTheFile) {
  ModelBuilder model(13);
  model.input("table", {4, 3});
  model.input("rows", {2}, onnx::TensorProto::INT64);
  model.node("Gather", {"table", "rows"}, {"y"});
  model.output("y");
  const StatusOr<Model> loaded = model.load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->name(), "test");
  ASSERT_EQ(loaded->inputs().size(), 2u);
  EXPECT_EQ(loaded->inputs()[0].name, "table");
  EXPECT_EQ(loaded->inputs()[1].type, DataType::kInt64);
  ASSERT_EQ(loaded->outputs().size(), 1u);
  EXPECT_EQ(loaded->outputs()[0].name, "y");
  EXPECT_EQ(loaded->outputs()[0].dims, (Dims{2, 3}));
}

TEST(Inputs, ASymbolicBatchIsOne) {
  const StatusOr<Model> model = relu({-1, 3}).load();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->inputs()[0].dims, (Dims{1, 3}));
}

TEST(Inputs, OtherSymbolicExtentsAreRefusedWithWhatToType) {
  expect_error(relu({-1, 3, -1, -1}).load(), StatusCode::kInvalidArgument,
               {"test.onnx", "'x' [x_0, 3, x_2, x_3]", "--shape x=1,3,224,224"});
}

TEST(Inputs, ShapesAreTaken) {
  LoadOptions options;
  options.shapes["x"] = {2, 3, 5, 7};
  const StatusOr<Model> model = relu({-1, 3, -1, -1}).load(options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->outputs()[0].dims, (Dims{2, 3, 5, 7}));
}

TEST(Inputs, ASymbolIsTheSameEverywhere) {
  ModelBuilder model;
  model.input("x", {1, -1});
  model.input("z", {1, -1});
  auto* shape = model.graph().mutable_input(1)->mutable_type()->mutable_tensor_type();
  shape->mutable_shape()->mutable_dim(1)->set_dim_param("x_1");
  model.node("Add", {"x", "z"}, {"y"});
  model.output("y");
  LoadOptions options;
  options.shapes["x"] = {1, 6};
  const StatusOr<Model> loaded = model.load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->inputs()[1].dims, (Dims{1, 6}));
  options.shapes["z"] = {1, 7};
  expect_error(model.load(options), StatusCode::kInvalidArgument, {"x_1", "6", "7"});
}

TEST(Inputs, ShapesThatDoNotFitAreRefused) {
  LoadOptions options;
  options.shapes["x"] = {1, 4};
  expect_error(relu({1, 3}).load(options), StatusCode::kInvalidArgument, {"[1, 3]", "[1, 4]"});
  options.shapes["x"] = {3};
  expect_error(relu({1, 3}).load(options), StatusCode::kInvalidArgument, {"[1, 3]", "[3]"});
  options.shapes["x"] = {1, -3};
  expect_error(relu({1, -1}).load(options), StatusCode::kInvalidArgument, {"negative"});
  options.shapes["x"] = {1, 0};
  expect_error(relu({1, -1}).load(options), StatusCode::kUnsupported, {"no elements"});
  options.shapes = {{"z", {1, 3}}};
  expect_error(relu({1, 3}).load(options), StatusCode::kNotFound, {"'z'", "'x'"});
}

TEST(Inputs, AnInputWithAnInitializerIsAConstant) {
  ModelBuilder model;
  model.input("x", {2});
  model.input("w", {2});
  model.floats("w", {2}, {1, 2});
  model.node("Add", {"x", "w"}, {"y"});
  model.output("y");
  const StatusOr<Model> loaded = model.load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->inputs().size(), 1u);
}

TEST(Inputs, TheCallerMayFixInputs) {
  ModelBuilder model;
  model.input("x", {2, 3});
  model.input("shape", {1}, onnx::TensorProto::INT64);
  model.node("Reshape", {"x", "shape"}, {"y"});
  model.output("y");
  expect_error(model.load(), StatusCode::kUnsupported, {"shape", "must be known"});
  LoadOptions options;
  options.constants["shape"] = std::make_shared<HostTensor>(HostTensor::ints({1}, {6}));
  const StatusOr<Model> loaded = model.load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->outputs()[0].dims, (Dims{6}));
  options.constants["other"] = options.constants["shape"];
  expect_error(model.load(options), StatusCode::kNotFound, {"other"});
}

TEST(Inputs, TypesThatTandemDoesNotTake) {
  for (const int type :
       std::initializer_list<int>{onnx::TensorProto::DOUBLE, onnx::TensorProto::FLOAT16,
                                  onnx::TensorProto::INT32, onnx::TensorProto::STRING, 77}) {
    ModelBuilder model;
    model.input("x", {2}, type);
    model.node("Relu", {"x"}, {"y"});
    model.output("y");
    expect_error(model.load(), StatusCode::kUnsupported, {"'x'"});
  }
}

// ---- Outputs and names ----------------------------------------------------------------------

TEST(Outputs, OneValueUnderSeveralNames) {
  ModelBuilder model;
  model.input("x", {2});
  model.node("Identity", {"x"}, {"same"});
  model.node("Relu", {"x"}, {"a"});
  model.node("Identity", {"a"}, {"b"});
  for (const char* name : {"same", "a", "b"}) model.output(name);
  for (const bool optimize : {false, true}) {
    LoadOptions options;
    options.optimize = optimize;
    const StatusOr<Model> loaded = model.load(options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    std::vector<std::string> names;
    for (const TensorSpec& spec : loaded->outputs()) names.push_back(spec.name);
    EXPECT_EQ(names, (std::vector<std::string>{"same", "a", "b"}));
    const auto y = run(*loaded, {HostTensor::floats({2}, {-1, 2})});
    EXPECT_EQ(y[0].values, (std::vector<double>{-1, 2}));
    EXPECT_EQ(y[1].values, (std::vector<double>{0, 2}));
    EXPECT_EQ(y[2].values, (std::vector<double>{0, 2}));
  }
}

TEST(Outputs, WeightsMayBeOutputsToo) {
  ModelBuilder model;
  model.input("x", {2});
  model.floats("w", {2}, {3, 4});
  model.node("Add", {"x", "w"}, {"y"});
  model.output("y");
  model.output("w");
  const StatusOr<Model> loaded = model.load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->outputs()[1].name, "w");
  EXPECT_EQ(run(*loaded, {ramp({2})})[1].values, (std::vector<double>{3, 4}));
}

TEST(Outputs, AnInputThatIsAnOutputIsUnsupported) {
  ModelBuilder model;
  model.input("x", {2});
  model.output("x");
  expect_error(model.load(), StatusCode::kUnsupported, {"'x'"});
}

TEST(Names, OperatorsKeepThoseOfTheirNodes) {
  ModelBuilder model;
  model.input("x", {1, 2, 4, 4});
  model.floats("w", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6});
  model.node("Conv", {"x", "w"}, {"c"})->set_name("first");
  model.node("Relu", {"c"}, {"r"})->clear_name();
  model.node("Conv", {"r", "v"}, {"y"})->set_name("first");  // names may clash in files
  model.floats("v", {1, 3, 1, 1}, {1, 2, 3});
  model.output("y");
  LoadOptions options;
  options.optimize = false;
  const StatusOr<Model> loaded = model.load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  std::vector<std::string> names;
  for (const Operator& op : loaded->graph().operators()) names.push_back(op.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"x/channels_last", "first", "r", "first#2", "y/output"}));
}

TEST(Names, ValuesThatLookLikeOursDoNotClash) {
  ModelBuilder model;
  model.input("x", {1, 2, 4, 4});
  model.floats("y/scale", {2}, {1, 2});
  model.floats("y", {2}, {1, 2});
  model.floats("BatchNormalization_z/scale", {2}, {1, 1});
  model.node("BatchNormalization", {"x", "y/scale", "y", "y", "BatchNormalization_z/scale"}, {"z"});
  model.output("z");
  LoadOptions options;
  options.optimize = false;
  const StatusOr<Model> loaded = model.load(options);
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
}

TEST(Names, SameBytesSameGraph) {
  const auto describe = [] {
    const StatusOr<Model> model = Model::load("zoo:tiny_inception");
    EXPECT_TRUE(model.ok());
    std::string text;
    for (const Operator& op : model->graph().operators()) {
      text += op.name + ":";
      for (TensorId input : op.inputs) text += model->graph().tensor(input).name + ",";
      text += "\n";
    }
    return text;
  };
  EXPECT_EQ(describe(), describe());
}

TEST(Order, NodesMayComeInAnyOrder) {
  ModelBuilder model;
  model.input("x", {2});
  model.node("Relu", {"a"}, {"y"});
  model.node("Neg", {"x"}, {"a"});
  model.output("y");
  const StatusOr<Model> loaded = model.load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(run(*loaded, {HostTensor::floats({2}, {-1, 2})})[0].values,
            (std::vector<double>{1, 0}));
}

TEST(Order, NodesThatNothingNeedsAreIgnored) {
  ModelBuilder model = relu({2});
  model.node("NonMaxSuppression", {"x"}, {"unused"});
  EXPECT_TRUE(model.load().ok());
}

}  // namespace
}  // namespace tandem::testing
