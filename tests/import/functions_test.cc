// Functions that a model defines itself.
#include "tests/import/model_builder.h"

namespace tandem::testing {
namespace {

constexpr const char* kDomain = "local";

onnx::FunctionProto* add_function(ModelBuilder& model, const std::string& name,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs) {
  onnx::FunctionProto* function = model.proto().add_functions();
  function->set_domain(kDomain);
  function->set_name(name);
  for (const std::string& input : inputs) function->add_input(input);
  for (const std::string& output : outputs) function->add_output(output);
  return function;
}

onnx::NodeProto* add_node(onnx::FunctionProto* function, const std::string& op,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& domain = "") {
  onnx::NodeProto* node = function->add_node();
  node->set_op_type(op);
  node->set_domain(domain);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return node;
}

onnx::NodeProto* call(ModelBuilder& model, const std::string& name,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  onnx::NodeProto* node = model.node(name, inputs, outputs);
  node->set_domain(kDomain);
  return node;
}

std::vector<double> run_on(const ModelBuilder& model, std::vector<float> x) {
  const StatusOr<Model> loaded = model.load();
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
  if (!loaded.ok()) return {};
  const Dims dims = {static_cast<int64_t>(x.size())};
  return run(*loaded, {HostTensor::floats(dims, std::move(x))})[0].values;
}

// A field that the library does not know yet.
void add_newer_field(google::protobuf::Message& message, int number, const std::string& bytes) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(number, bytes);
}

TEST(Functions, TwoCallsDoNotShareNames) {
  ModelBuilder model;
  model.input("x", {2});
  onnx::FunctionProto* twice_minus = add_function(model, "TwiceMinus", {"a", "b"}, {"c"});
  add_node(twice_minus, "Add", {"a", "a"}, {"t"});
  add_node(twice_minus, "Sub", {"t", "b"}, {"c"});
  model.node("Relu", {"x"}, {"t"});  // a name that is used inside, too
  call(model, "TwiceMinus", {"x", "t"}, {"u"});
  call(model, "TwiceMinus", {"u", "x"}, {"y"});
  model.output("y");
  EXPECT_EQ(run_on(model, {3, -1}), (std::vector<double>{3, -3}));
}

TEST(Functions, CallFunctions) {
  ModelBuilder model;
  model.input("x", {2});
  add_node(add_function(model, "Half", {"a"}, {"b"}), "Relu", {"a"}, {"b"});
  onnx::FunctionProto* outer = add_function(model, "Outer", {"a"}, {"b"});
  add_node(outer, "Half", {"a"}, {"h"}, kDomain);
  add_node(outer, "Neg", {"h"}, {"b"});
  call(model, "Outer", {"x"}, {"y"});
  model.output("y");
  EXPECT_EQ(run_on(model, {3, -1}), (std::vector<double>{-3, 0}));
}

TEST(Functions, AttributesAreThoseOfTheCallOrUsualOnes) {
  ModelBuilder model;
  model.input("x", {1});
  onnx::FunctionProto* leaky = add_function(model, "Leaky", {"a"}, {"b"});
  onnx::AttributeProto* reference = add_node(leaky, "LeakyRelu", {"a"}, {"b"})->add_attribute();
  reference->set_name("alpha");
  reference->set_ref_attr_name("slope");
  reference->set_type(onnx::AttributeProto::FLOAT);
  onnx::NodeProto* node = call(model, "Leaky", {"x"}, {"y"});
  model.output("y");
  EXPECT_NEAR(run_on(model, {-2})[0], -0.02, 1e-6);  // LeakyRelu's own default
  onnx::AttributeProto usual;
  usual.set_name("slope");
  usual.set_type(onnx::AttributeProto::FLOAT);
  usual.set_f(0.25f);
  add_newer_field(*leaky, 11, usual.SerializeAsString());
  EXPECT_EQ(run_on(model, {-2})[0], -0.5);
  *node->add_attribute() = usual;
  node->mutable_attribute(0)->set_f(0.5f);
  EXPECT_EQ(run_on(model, {-2})[0], -1);
}

TEST(Functions, OverloadsAreToldApart) {
  ModelBuilder model;
  model.input("x", {1});
  onnx::FunctionProto* first = add_function(model, "F", {"a"}, {"b"});
  add_node(first, "Neg", {"a"}, {"b"});
  onnx::FunctionProto* second = add_function(model, "F", {"a"}, {"b"});
  add_node(second, "Abs", {"a"}, {"b"});
  add_newer_field(*second, 13, "other");
  call(model, "F", {"x"}, {"t"});
  add_newer_field(*call(model, "F", {"t"}, {"y"}), 8, "other");
  model.output("y");
  EXPECT_EQ(run_on(model, {2})[0], 2);
}

TEST(Functions, OptionalInputsAndOutputsThatAreInputs) {
  ModelBuilder model;
  model.input("x", {2});
  model.floats("two", {}, {2});
  onnx::FunctionProto* bounded = add_function(model, "Bounded", {"a", "low", "high"}, {"b", "a"});
  add_node(bounded, "Clip", {"a", "low", "high"}, {"b"});
  call(model, "Bounded", {"x", "", "two"}, {"b", "c"});
  model.node("Add", {"b", "c"}, {"y"});
  model.output("y");
  EXPECT_EQ(run_on(model, {3, -1}), (std::vector<double>{5, -2}));
}

TEST(Functions, WhatCannotBeUnfolded) {
  ModelBuilder loop;
  loop.input("x", {1});
  add_node(add_function(loop, "F", {"a"}, {"b"}), "G", {"a"}, {"b"}, kDomain);
  add_node(add_function(loop, "G", {"a"}, {"b"}), "F", {"a"}, {"b"}, kDomain);
  call(loop, "F", {"x"}, {"y"});
  loop.output("y");
  expect_error(loop.load(), StatusCode::kCorrupt, {"test.onnx", "'F'", "calls itself"});

  // Every function calls the one before twice, and the first does nothing.
  ModelBuilder bomb;
  bomb.input("x", {1});
  add_function(bomb, "F0", {"a"}, {"a"});
  for (int i = 1; i < 60; ++i) {
    onnx::FunctionProto* f = add_function(bomb, "F" + std::to_string(i), {"a"}, {"b"});
    add_node(f, "F" + std::to_string(i - 1), {"a"}, {"t"}, kDomain);
    add_node(f, "F" + std::to_string(i - 1), {"t"}, {"b"}, kDomain);
  }
  call(bomb, "F59", {"x"}, {"y"});
  bomb.output("y");
  expect_error(bomb.load(), StatusCode::kCorrupt, {"unfold to more than"});

  ModelBuilder opset(13);
  opset.input("x", {1});
  onnx::FunctionProto* old = add_function(opset, "F", {"a"}, {"b"});
  add_node(old, "Relu", {"a"}, {"b"});
  old->add_opset_import()->set_version(11);
  call(opset, "F", {"x"}, {"y"});
  opset.output("y");
  expect_error(opset.load(), StatusCode::kUnsupported, {"'F'", "opset 11", "opset 13"});

  ModelBuilder more;
  more.input("x", {1});
  add_node(add_function(more, "F", {"a"}, {"b"}), "Relu", {"a"}, {"b"});
  call(more, "F", {"x", "x"}, {"y"});
  more.output("y");
  expect_error(more.load(), StatusCode::kCorrupt, {"'F'", "more than it takes"});
}

}  // namespace
}  // namespace tandem::testing
