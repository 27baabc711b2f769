#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tandem::zoo {
namespace {

onnx::ModelProto build_or_die(const std::string& name, uint64_t seed = 1) {
  StatusOr<onnx::ModelProto> model = build(name, seed);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *std::move(model) : onnx::ModelProto();
}

// FNV-1a, to pin bytes without storing them.
uint64_t hash_of(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string bytes_of(const onnx::ModelProto& model) {
  std::string bytes;
  EXPECT_TRUE(model.SerializeToString(&bytes));
  return bytes;
}

const onnx::TensorProto* find_initializer(const onnx::ModelProto& model, const std::string& name) {
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

std::vector<float> floats_of(const onnx::TensorProto& tensor) {
  std::vector<float> values(tensor.raw_data().size() / sizeof(float));
  std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
  return values;
}

std::string dims_of(const onnx::ValueInfoProto& info) {
  std::string dims;
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    dims += (dims.empty() ? "" : "x") + std::to_string(dim.dim_value());
  }
  return dims;
}

TEST(Zoo, HasThePublishedNumbersOfParameters) {
  std::map<std::string, int64_t> parameters;
  for (const Entry& entry : list()) parameters[entry.name] = entry.parameters;
  const std::map<std::string, int64_t> published = {
      {"vgg16", 138'357'544},
      {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"inception_v3", 23'834'568},
      {"mobilenet_v2", 3'504'872},
      {"squeezenet1_1", 1'235'496},
      {"vit_b_16", 86'567'656},
      {"vit_b_32", 88'224'232},
      {"deit_tiny", 5'717'416},
      {"inception_v4", 42'679'816},
      {"inception_resnet_v2", 55'843'464},
      {"hrnet_w18", 21'299'004},
      {"efficientnet_b0", 5'288'548},
      {"shufflenet_v2_x1_0", 2'278'604},
      {"unet", 31'037'698},
      {"yolov5n", 1'872'157},
      {"bert_base", 109'482'240},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(parameters[name], count) << name;
}

TEST(Zoo, CountsTheCostOfTheGraph) {
  std::map<std::string, double> gflops;
  for (const Entry& entry : list()) gflops[entry.name] = entry.gflops;
  // torchvision's documentation counts multiply-accumulates: 15.47, 4.09 and 0.30 billion.
  EXPECT_NEAR(gflops["vgg16"], 30.94, 0.02);
  EXPECT_NEAR(gflops["resnet50"], 8.18, 0.02);
  EXPECT_NEAR(gflops["mobilenet_v2"], 0.60, 0.01);
}

TEST(Zoo, ListIsCompleteAndBuildable) {
  const std::vector<Entry> entries = list();
  EXPECT_FALSE(entries.empty());
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " is listed twice";
    EXPECT_FALSE(entry.description.empty()) << entry.name;
    EXPECT_FALSE(entry.input_name.empty()) << entry.name;
    EXPECT_FALSE(entry.input_dims.empty()) << entry.name;
    EXPECT_GT(entry.parameters, 0) << entry.name;
    EXPECT_GT(entry.gflops, 0) << entry.name;
  }
}

TEST(Zoo, TokenIdsAreIntegers) {
  for (const Entry& entry : list()) {
    const bool tokens = entry.name.ends_with("bert") || entry.name.starts_with("bert");
    EXPECT_EQ(entry.input_type, tokens ? "int64" : "float32") << entry.name;
  }
}

TEST(Zoo, UnknownNameNamesTheKnownOnes) {
  const StatusOr<onnx::ModelProto> model = build("resnet51");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
  EXPECT_NE(model.status().message().find("resnet51"), std::string::npos);
  EXPECT_NE(model.status().message().find("resnet50"), std::string::npos);
  EXPECT_NE(model.status().message().find("tiny_conv"), std::string::npos);
}

TEST(Zoo, SameSeedSameBytes) {
  EXPECT_EQ(bytes_of(build_or_die("tiny_inception", 7)),
            bytes_of(build_or_die("tiny_inception", 7)));
  EXPECT_NE(bytes_of(build_or_die("tiny_inception", 7)),
            bytes_of(build_or_die("tiny_inception", 8)));
}

// The golden value holds on every platform: whoever changes it changes all stored results.
TEST(Zoo, WeightsAreTheSameEverywhere) {
  std::string weights;
  for (const Entry& entry : list()) {
    if (!entry.name.starts_with("tiny_")) continue;
    const onnx::ModelProto model = build_or_die(entry.name);
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      weights += tensor.raw_data();
    }
  }
  EXPECT_EQ(hash_of(weights), 4658703541245479735u);
}

TEST(Zoo, WeightsDependOnTheNameOfTheTensorOnly) {
  const onnx::ModelProto model = build_or_die("tiny_residual");
  const auto* one = find_initializer(model, "layer1.conv1.bn.running_var");
  const auto* other = find_initializer(model, "layer1.conv2.bn.running_var");
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(one->raw_data(), other->raw_data());
}

TEST(Zoo, BatchNormStatisticsAreRealistic) {
  const onnx::ModelProto model = build_or_die("resnet18");
  double square_of_mean = 0;
  size_t count = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    for (const float value : floats_of(tensor)) {
      ASSERT_TRUE(std::isfinite(value)) << tensor.name();
      if (tensor.name().ends_with(".running_var")) {
        ASSERT_GE(value, 0.5f);
        ASSERT_LT(value, 1.5f);
      } else if (tensor.name().ends_with(".running_mean")) {
        square_of_mean += value * value;
        ++count;
      }
    }
  }
  EXPECT_NEAR(std::sqrt(square_of_mean / static_cast<double>(count)), 0.1, 0.01);
}

TEST(Zoo, FiltersBehindReluSumToZero) {
  const onnx::ModelProto model = build_or_die("resnet18");
  const auto* tensor = find_initializer(model, "layer1.0.conv2.conv.weight");
  ASSERT_NE(tensor, nullptr);
  const std::vector<float> weights = floats_of(*tensor);
  const size_t columns = weights.size() / static_cast<size_t>(tensor->dims(0));
  double sum = 0, square = 0;
  for (size_t i = 0; i < columns; ++i) sum += weights[i];
  for (const float weight : weights) square += weight * weight;
  EXPECT_NEAR(sum, 0, 1e-3);
  EXPECT_GT(square / static_cast<double>(weights.size()), 0.5 / static_cast<double>(columns));
}

void expect_unique_names(const onnx::GraphProto& graph) {
  std::set<std::string> nodes, values;
  for (const auto& input : graph.input()) values.insert(input.name());
  for (const auto& tensor : graph.initializer()) {
    EXPECT_TRUE(values.insert(tensor.name()).second) << tensor.name();
  }
  for (const auto& node : graph.node()) {
    EXPECT_TRUE(nodes.insert(node.name()).second) << node.name();
    for (const auto& input : node.input()) {
      EXPECT_TRUE(input.empty() || values.contains(input)) << node.name() << " reads " << input;
    }
    for (const auto& output : node.output()) EXPECT_TRUE(values.insert(output).second) << output;
  }
}

// Networks are tests' parameters by name: entries would be printed byte by byte.
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Entry& entry : list()) names.push_back(entry.name);
  return names;
}

class ZooNetwork : public testing::TestWithParam<std::string> {};

// One test, since the weights of the large networks take a second. That ONNX itself accepts the
// models, and infers the same shapes, is checked by tools/zoo_check.py.
TEST_P(ZooNetwork, IsAConsistentModel) {
  const onnx::ModelProto model = build_or_die(GetParam());
  expect_unique_names(model.graph());
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    int64_t elements = 1;
    for (const int64_t dim : tensor.dims()) elements *= dim;
    EXPECT_EQ(tensor.raw_data().size(), static_cast<size_t>(elements) * sizeof(float))
        << tensor.name();
  }
  EXPECT_GT(model.graph().output_size(), 0);
  for (const auto& output : model.graph().output()) {
    EXPECT_FALSE(dims_of(output).empty()) << output.name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ZooNetwork, testing::ValuesIn(all_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::zoo
