// Everything that can be wrong with a model's file.
#include <cstdio>
#include <fstream>
#include <functional>

#include "graph/passes/layout.h"
#include "tandem/model.h"
#include "tests/import/model_builder.h"
#include "tests/import/small_models.h"

namespace tandem::testing {
namespace {

TEST(Unsupported, AllNodesInOneError) {
  ModelBuilder model(11);
  model.input("x", {1, 2, 3});
  model.node("Det", {"x"}, {"a"})->set_name("first");
  model.node("Relu", {"a"}, {"b"});  // behind it nothing is known, but this one is supported
  model.node("Foo", {"b"}, {"c"})->set_domain("com.acme");
  model.node("AveragePool", {"z"}, {"d"}, {{"kernel_shape", std::vector<int64_t>{1, 1, 1}}});
  model.input("z", {1, 1, 2, 2, 2});
  model.output("c");
  model.output("d");
  expect_error(model.load(), StatusCode::kUnsupported,
               {"3 nodes", "'first' (Det, opset 11) of [1, 2, 3]", "(com.acme.Foo, opset 11) of ?",
                "'AveragePool_d'", "[1, 1, 2, 2, 2]", "rank 5"});
}

TEST(Unsupported, WeightsOfOtherTypesAreErrorsOfTheirReaders) {
  ModelBuilder model = relu({2});
  for (const char* name : {"w", "unused"}) {
    model.floats(name, {2}, {1, 2});
    model.graph()
        .mutable_initializer(model.graph().initializer_size() - 1)
        ->set_data_type(onnx::TensorProto::UINT8);
  }
  EXPECT_TRUE(model.load().ok());
  model.node("MatMulInteger", {"x", "w"}, {"a"});
  model.node("Add", {"x", "w"}, {"b"});
  model.output("a");
  model.output("b");
  expect_error(model.load(), StatusCode::kUnsupported,
               {"2 nodes", "MatMulInteger_a", "Add_b", "'w'", "uint8"});
}

TEST(Unsupported, OtherStorage) {
  ModelBuilder sparse = relu({2});
  sparse.graph().add_sparse_initializer()->mutable_values()->set_name("s");
  expect_error(sparse.load(), StatusCode::kUnsupported, {"sparse", "'s'"});
}

TEST(Initializers, EveryTypeAndStorage) {
  const auto value = [](const std::function<void(onnx::TensorProto&)>& fill) {
    ModelBuilder model = relu({1});
    onnx::TensorProto* proto = model.graph().add_initializer();
    proto->set_name("w");
    proto->add_dims(2);
    fill(*proto);
    model.node("Cast", {"w"}, {"f"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
    model.output("f");
    const StatusOr<Model> loaded = model.load();
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    return loaded.ok() ? run(*loaded, {HostTensor(DataType::kFloat32, {1})})[1].values
                       : std::vector<double>();
  };
  const std::vector<double> expected = {1, 3};
  const auto raw = [](onnx::TensorProto& proto, int type, auto a) {
    const decltype(a) both[] = {a, static_cast<decltype(a)>(3)};
    proto.set_data_type(type);
    proto.set_raw_data(both, sizeof both);
  };
  using onnx::TensorProto;
  EXPECT_EQ(value([&](TensorProto& p) { raw(p, TensorProto::FLOAT, 1.0f); }), expected);
  EXPECT_EQ(value([&](TensorProto& p) { raw(p, TensorProto::DOUBLE, 1.0); }), expected);
  EXPECT_EQ(value([&](TensorProto& p) { raw(p, TensorProto::INT32, int32_t{1}); }), expected);
  EXPECT_EQ(value([&](TensorProto& p) { raw(p, TensorProto::INT64, int64_t{1}); }), expected);
  EXPECT_EQ(value([&](TensorProto& p) { raw(p, TensorProto::BOOL, uint8_t{1}); }), expected);
  EXPECT_EQ(value([](TensorProto& p) {
              p.set_data_type(TensorProto::FLOAT);
              p.add_float_data(1);
              p.add_float_data(3);
            }),
            expected);
  EXPECT_EQ(value([](TensorProto& p) {
              p.set_data_type(TensorProto::DOUBLE);
              p.add_double_data(1);
              p.add_double_data(3);
            }),
            expected);
  EXPECT_EQ(value([](TensorProto& p) {
              p.set_data_type(TensorProto::INT32);
              p.add_int32_data(1);
              p.add_int32_data(3);
            }),
            expected);
}

TEST(Corrupt, Initializers) {
  const auto spoiled = [](const std::function<void(onnx::TensorProto&)>& spoil) {
    ModelBuilder model = relu({2});
    model.floats("w", {2, 2}, {1, 2, 3, 4});
    spoil(*model.graph().mutable_initializer(0));
    return model.load();
  };
  expect_error(spoiled([](auto& t) { t.set_raw_data("abc"); }), StatusCode::kCorrupt,
               {"'w'", "raw_data has 3 bytes, not 16"});
  expect_error(spoiled([](auto& t) { t.clear_raw_data(); }), StatusCode::kCorrupt,
               {"'w'", "0 elements, not 4"});
  expect_error(spoiled([](auto& t) { t.set_dims(0, -2); }), StatusCode::kCorrupt, {"negative"});
  expect_error(spoiled([](auto& t) { t.set_dims(0, int64_t{1} << 62); }), StatusCode::kCorrupt,
               {"too large"});
  expect_error(spoiled([](auto& t) {
                 for (int i = 0; i < 4; ++i) t.add_dims(int64_t{1} << 32);
               }),
               StatusCode::kCorrupt, {"too large"});
  expect_error(spoiled([](auto& t) { t.clear_name(); }), StatusCode::kCorrupt, {"no name"});
  expect_error(spoiled([](auto& t) { t.set_name("y"); }), StatusCode::kCorrupt, {"'y'", "twice"});
}

TEST(Corrupt, Graphs) {
  ModelBuilder cycle = relu({2});
  cycle.node("Neg", {"b"}, {"a"});
  cycle.node("Neg", {"a"}, {"b"});
  cycle.output("b");
  expect_error(cycle.load(), StatusCode::kCorrupt, {"cycle", "Neg_"});

  ModelBuilder twice = relu({2});
  twice.node("Neg", {"x"}, {"y"});
  expect_error(twice.load(), StatusCode::kCorrupt, {"'y'", "twice", "Neg_y"});

  ModelBuilder inputs = relu({2});
  inputs.input("x", {2});
  expect_error(inputs.load(), StatusCode::kCorrupt, {"two inputs", "'x'"});

  ModelBuilder missing = relu({2});
  missing.node("Neg", {"nowhere"}, {"z"});
  missing.output("z");
  expect_error(missing.load(), StatusCode::kCorrupt, {"Neg_z", "'nowhere'"});

  ModelBuilder no_output;
  no_output.input("x", {2});
  expect_error(no_output.load(), StatusCode::kCorrupt, {"no outputs"});

  ModelBuilder undefined = relu({2});
  undefined.output("z");
  expect_error(undefined.load(), StatusCode::kCorrupt, {"'z'"});

  ModelBuilder negative = relu({-7});
  negative.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(-7);
  expect_error(negative.load(), StatusCode::kCorrupt, {"'x'", "-7"});

  ModelBuilder huge = relu({int64_t{1} << 31, int64_t{1} << 31});
  expect_error(huge.load(), StatusCode::kCorrupt, {"too large"});

  ModelBuilder untyped = relu({2});
  untyped.graph().mutable_input(0)->clear_type();
  expect_error(untyped.load(), StatusCode::kCorrupt, {"'x'", "no type"});
}

TEST(Corrupt, Nodes) {
  ModelBuilder few;
  few.input("x", {2});
  few.node("Add", {"x"}, {"y"});
  few.output("y");
  expect_error(few.load(), StatusCode::kCorrupt, {"Add_y", "input number 2"});

  ModelBuilder type;
  type.input("x", {2});
  type.node("LeakyRelu", {"x"}, {"y"}, {{"alpha", int64_t{1}}});
  type.output("y");
  expect_error(type.load(), StatusCode::kInvalidArgument, {"LeakyRelu_y", "'alpha'", "INT"});

  ModelBuilder shapes;
  shapes.input("x", {2});
  shapes.input("z", {3});
  shapes.node("Add", {"x", "z"}, {"y"});
  shapes.output("y");
  expect_error(shapes.load(), StatusCode::kInvalidArgument, {"Add_y", "[2] and [3]"});

  ModelBuilder integers;
  integers.input("x", {2}, onnx::TensorProto::INT64);
  integers.node("Relu", {"x"}, {"y"});
  integers.output("y");
  expect_error(integers.load(), StatusCode::kUnsupported, {"Relu_y", "int64"});
}

TEST(Files, ThatAreNone) {
  expect_error(Model::load("/nonexistent/model.onnx"), StatusCode::kNotFound,
               {"/nonexistent/model.onnx", "No such file"});
  expect_error(Model::load("/tmp"), StatusCode::kNotFound, {"/tmp", "folder"});
  expect_error(Model::load("zoo:nothing"), StatusCode::kNotFound, {"nothing", "resnet50"});
  expect_error(Model::parse("", "empty"), StatusCode::kCorrupt, {"empty"});
  expect_error(Model::parse("hello, world", "text"), StatusCode::kCorrupt, {"text"});
}

TEST(Files, AreReadFromDisk) {
  const std::string path = ::testing::TempDir() + "tandem_model_test.onnx";
  std::ofstream(path, std::ios::binary) << relu({2}).bytes();
  const StatusOr<Model> model = Model::load(path);
  std::remove(path.c_str());
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->inputs()[0].name, "x");
}

}  // namespace
}  // namespace tandem::testing
