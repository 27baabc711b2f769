// Whole networks: fusing changes nothing but the number of operators.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "graph/passes/layout.h"
#include "tests/import/model_builder.h"
#include "tests/support/random.h"
#include "zoo/zoo.h"

namespace tandem::testing {
namespace {

std::vector<HostTensor> random_inputs(const Model& model) {
  Random random(3);
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : model.inputs()) {
    HostTensor tensor(spec.type, spec.dims);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (spec.type == DataType::kInt64) {
        tensor.data<int64_t>()[i] = random.integer(0, 9);
      } else {
        tensor.data<float>()[i] = static_cast<float>(random.real(-1, 1));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// Loads the network with and without optimization; both are well-formed and compute the same.
void expect_optimization_changes_nothing(const std::string& path, LoadOptions options = {}) {
  const StatusOr<Model> optimized = Model::load(path, options);
  ASSERT_TRUE(optimized.ok()) << optimized.status().to_string();
  options.optimize = false;
  const StatusOr<Model> plain = Model::load(path, options);
  ASSERT_TRUE(plain.ok()) << plain.status().to_string();
  EXPECT_EQ(check_layouts(optimized->graph()).to_string(), "ok");
  EXPECT_EQ(check_layouts(plain->graph()).to_string(), "ok");
  EXPECT_LT(optimized->graph().operators().size(), plain->graph().operators().size());
  const std::vector<HostTensor> inputs = random_inputs(*plain);
  const std::vector<ReferenceTensor> expected = run(*plain, inputs);
  const std::vector<ReferenceTensor> actual = run(*optimized, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(optimized->outputs()[k].name, plain->outputs()[k].name);
    ASSERT_EQ(actual[k].dims, expected[k].dims);
    double largest = 0;
    for (double value : expected[k].values) largest = std::max(largest, std::abs(value));
    ASSERT_GT(largest, 0);
    for (size_t i = 0; i < expected[k].values.size(); ++i) {
      ASSERT_NEAR(actual[k].values[i], expected[k].values[i], 2e-5 * largest) << "element " << i;
    }
  }
}

TEST(Zoo, OptimizationChangesNoTinyNetwork) {
  int count = 0;
  for (const zoo::Entry& entry : zoo::list()) {
    if (!entry.name.starts_with("tiny_")) continue;
    SCOPED_TRACE(entry.name);
    expect_optimization_changes_nothing("zoo:" + entry.name);
    ++count;
  }
  EXPECT_GE(count, 9);
}

int count(const Model& model, OperatorKind kind) {
  const auto& operators = model.graph().operators();
  return static_cast<int>(std::count_if(operators.begin(), operators.end(),
                                        [&](const Operator& op) { return op.kind() == kind; }));
}

TEST(Zoo, ConvolutionalNetworksConsistOfConvolutions) {
  const StatusOr<Model> resnet = Model::load("zoo:resnet50");
  ASSERT_TRUE(resnet.ok()) << resnet.status().to_string();
  // Beside them: conversion, two poolings, a reshape (a view), and the classifier.
  EXPECT_EQ(count(*resnet, OperatorKind::kConv), 53);
  EXPECT_EQ(resnet->graph().operators().size(), 58u);
  const StatusOr<Model> mobilenet = Model::load("zoo:mobilenet_v2");
  ASSERT_TRUE(mobilenet.ok()) << mobilenet.status().to_string();
  EXPECT_EQ(count(*mobilenet, OperatorKind::kConv), 52);
  EXPECT_EQ(mobilenet->graph().operators().size(), 56u);
}

TEST(Zoo, TransformersHaveNoArithmeticOfTheirOwnLeft) {
  for (const char* name : {"zoo:tiny_vit", "zoo:tiny_deit", "zoo:tiny_bert"}) {
    const StatusOr<Model> model = Model::load(name);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    EXPECT_EQ(count(*model, OperatorKind::kUnary), 0) << name;
    EXPECT_EQ(count(*model, OperatorKind::kMatMul), 4) << name;  // two blocks
    // Embeddings only.
    EXPECT_LE(count(*model, OperatorKind::kBinary), 2) << name;
  }
}

// PP-OCR's models, from the PyPI package rapidocr_onnxruntime: a folder named by the environment.
std::filesystem::path pp_ocr(const char* file) {
  const char* folder = std::getenv("TANDEM_PP_OCR");
  return folder ? std::filesystem::path(folder) / file : std::filesystem::path();
}

struct PpOcrModel {
  const char* file;
  Dims shape;
  int convolutions;
};

class PpOcr : public ::testing::TestWithParam<PpOcrModel> {};

TEST_P(PpOcr, OptimizationChangesNothing) {
  const std::filesystem::path path = pp_ocr(GetParam().file);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "TANDEM_PP_OCR names no folder with it";
  LoadOptions options;
  options.shapes["x"] = GetParam().shape;
  expect_optimization_changes_nothing(path.string(), options);
  const StatusOr<Model> model = Model::load(path.string(), options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(count(*model, OperatorKind::kConv), GetParam().convolutions);
  EXPECT_EQ(count(*model, OperatorKind::kUnary), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Models, PpOcr,
    ::testing::Values(PpOcrModel{"ch_PP-OCRv4_det_infer.onnx", {1, 3, 64, 96}, 62},
                      PpOcrModel{"ch_PP-OCRv4_rec_infer.onnx", {1, 3, 48, 64}, 38},
                      PpOcrModel{"ch_ppocr_mobile_v2.0_cls_infer.onnx", {1, 3, 48, 64}, 53}),
    [](const auto& test) { return "Number" + std::to_string(test.index); });

}  // namespace
}  // namespace tandem::testing
