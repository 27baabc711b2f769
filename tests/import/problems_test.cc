// One error says everything that is wrong with a model, and what to do about it.
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/import/model_builder.h"

namespace tandem::testing {
namespace {

TEST(Problems, AllAreListedWhateverTheirKind) {
  ModelBuilder model;
  model.input("x", {1, 4, 8, 8});
  model.floats("w", {4, 4, 1, 1}, std::vector<float>(16, 1));
  model.floats("v", {4, 3, 1, 1}, std::vector<float>(12, 1));
  model.node("NonMaxSuppression", {"x", "x"}, {"a"});
  model.node("Conv", {"x", "v"}, {"b"});
  model.node("Resize", {"x", "", "scales"}, {"c"}, {{"mode", "linear"}, {"antialias", int64_t{1}}});
  model.floats("scales", {4}, {1, 1, 2, 2});
  model.node("Conv", {"x", "w"}, {"d"}, {{"auto_pad", "SOMETIMES"}});
  model.node("QuantizeLinear", {"x", "w"}, {"e"});
  for (const char* output : {"a", "b", "c", "d", "e"}) model.output(output);
  expect_error(model.load(), StatusCode::kInvalidArgument,
               {"5 nodes are wrong or not supported", "'NonMaxSuppression_a' (NonMaxSuppression",
                "without its post-processing", "'Conv_b' (Conv", "'Resize_c'", "antialias",
                "'Conv_d'", "SOMETIMES", "'QuantizeLinear_e'", "before it is quantized"});
}

TEST(Problems, WeightsThatAreNoNumbers) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    ModelBuilder model;
    model.input("x", {1, 2, 4, 4});
    std::vector<float> weights(8, 1);
    weights[5] = bad;
    weights[7] = bad;
    model.floats("w", {4, 2, 1, 1}, weights);
    model.node("Conv", {"x", "w"}, {"y"});
    model.floats("b", {4, 4}, std::vector<float>(16, bad));
    model.node("MatMul", {"y", "b"}, {"z"});
    model.node("MatMul", {"x", "b"}, {"u"});
    model.output("z");
    model.output("u");
    expect_error(model.load(), StatusCode::kCorrupt,
                 {"2 nodes", "'Conv_y' (Conv", "'w'", std::isnan(bad) ? "NaN" : "infinity",
                  "element 5; 2 of 8", "'MatMul_u'", "'b'", "16 of 16", "damaged"});
  }
}

TEST(Problems, InfiniteConstantsThatAreNoWeights) {
  ModelBuilder model;
  model.input("x", {2});
  model.floats("mask", {2}, {0, -std::numeric_limits<float>::infinity()});
  model.node("Add", {"x", "mask"}, {"y"});
  model.output("y");
  const StatusOr<Model> loaded = model.load();
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
}

TEST(Problems, NegativeVariances) {
  ModelBuilder model;
  model.input("x", {1, 2, 4, 4});
  model.floats("s", {2}, {1, 1});
  model.floats("v", {2}, {1, -1});
  model.node("BatchNormalization", {"x", "s", "s", "s", "v"}, {"y"});
  model.output("y");
  expect_error(model.load(), StatusCode::kInvalidArgument, {"BatchNormalization_y", "channel 1"});
}

TEST(Problems, HalfPrecisionInputs) {
  ModelBuilder model;
  model.input("x", {2}, onnx::TensorProto::FLOAT16);
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  expect_error(model.load(), StatusCode::kUnsupported, {"'x'", "float16", "keep_io_types"});
}

// What converters of weights to half precision write: inputs and outputs stay single.
TEST(HalfPrecision, IsComputedInSinglePrecision) {
  for (const auto& [type, one_and_half, minus_two] :
       {std::tuple(onnx::TensorProto::FLOAT16, uint16_t{0x3e00}, uint16_t{0xc000}),
        std::tuple(onnx::TensorProto::BFLOAT16, uint16_t{0x3fc0}, uint16_t{0xc000})}) {
    for (const bool raw : {true, false}) {
      ModelBuilder model;
      model.input("x", {2});
      onnx::TensorProto* w = model.graph().add_initializer();
      w->set_name("w");
      w->set_data_type(type);
      w->add_dims(2);
      const uint16_t bits[] = {one_and_half, minus_two};
      if (raw) {
        w->set_raw_data(bits, sizeof bits);
      } else {
        for (uint16_t element : bits) w->add_int32_data(element);
      }
      model.node("Cast", {"x"}, {"h"}, {{"to", int64_t{type}}});
      model.node("Mul", {"h", "w"}, {"p"});
      model.node("Cast", {"p"}, {"y"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
      model.output("y");
      const StatusOr<Model> loaded = model.load();
      ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
      EXPECT_EQ(run(*loaded, {HostTensor::floats({2}, {2, 3})})[0].values,
                (std::vector<double>{3, -6}));
    }
  }
}

}  // namespace
}  // namespace tandem::testing
