// Networks as PyTorch and Keras export them (tests/import/data, made by
// tools/export_frameworks.py): what they compute is compared with what ONNX Runtime computed when
// they were made. Their weights are not in the files: both sides make them by the same rule.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "support/npy.h"
#include "tests/conformance/lane_runs.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

// Of the largest output. Sums in another order, in up to a hundred layers one after the other.
constexpr double kTolerance = 1e-4;

// Numbers in [0, 1) that the name determines; this and the two functions below do as those of
// tools/export_frameworks.py.
std::vector<double> unit_numbers(const std::string& name, int64_t count) {
  uint64_t seed = 14695981039346656037u;
  for (unsigned char byte : name) seed = (seed ^ byte) * 1099511628211u;
  std::vector<double> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint64_t bits = (i + seed) * 6364136223846793005u + 1442695040888963407u;
    bits ^= bits >> 29;
    bits *= 0xBF58476D1CE4E5B9u;
    numbers[i] = static_cast<double>(bits >> 40) / (1 << 24);
  }
  return numbers;
}

std::vector<float> weights_of(const std::string& name, const Dims& dims) {
  const int64_t count = element_count(dims);
  std::vector<float> values;
  for (double unit : unit_numbers(name, count)) {
    if (dims.size() < 2) {
      values.push_back(static_cast<float>(0.5 + unit));
    } else {
      const double most = 6.0 * static_cast<double>(std::max(dims[0], dims[1]));
      const double scale = std::sqrt(most / static_cast<double>(count));
      values.push_back(static_cast<float>((2 * unit - 1) * scale));
    }
  }
  return values;
}

HostTensor input_of(const Dims& dims) {
  std::vector<float> values;
  for (double unit : unit_numbers("input", element_count(dims))) {
    values.push_back(static_cast<float>(2 * unit - 1));
  }
  return HostTensor::floats(dims, std::move(values));
}

void fill_in_weights(onnx::GraphProto& graph) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    const Dims dims(tensor.dims().begin(), tensor.dims().end());
    if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.has_raw_data() ||
        tensor.float_data_size() > 0 || element_count(dims) == 0) {
      continue;
    }
    const std::vector<float> values = weights_of(tensor.name(), dims);
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  }
}

std::vector<std::string> exported_models() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(TANDEM_IMPORT_DATA)) {
    if (entry.path().extension() == ".onnx") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Without a model, and a failure reported, if it does not load.
LoadedTest load(const std::string& name, bool optimize) {
  const fs::path path = fs::path(TANDEM_IMPORT_DATA) / (name + ".onnx");
  onnx::ModelProto proto;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(proto.ParseFromIstream(&file)) << path;
  fill_in_weights(*proto.mutable_graph());
  LoadOptions options;
  options.optimize = optimize;
  StatusOr<Model> model = Model::parse(proto.SerializeAsString(), name, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  LoadedTest loaded;
  if (!model.ok()) return loaded;
  for (const TensorSpec& spec : model->inputs()) loaded.inputs.push_back(input_of(spec.dims));
  loaded.model = std::make_shared<Model>(*std::move(model));
  return loaded;
}

Compare comparison(const std::string& name) {
  StatusOr<HostTensor> expected =
      read_npy((fs::path(TANDEM_IMPORT_DATA) / (name + ".npy")).string());
  EXPECT_TRUE(expected.ok()) << expected.status().to_string();
  return [expected](const std::vector<HostTensor>& outputs) -> std::string {
    if (outputs.size() != 1 || outputs[0].dims != expected->dims) return "other extents";
    double largest = 0;
    double worst = 0;
    for (int64_t i = 0; i < expected->size(); ++i) {
      const double wanted = expected->data<float>()[i];
      const double error = std::abs(outputs[0].data<float>()[i] - wanted);
      largest = std::max(largest, std::abs(wanted));
      if (!(error <= worst)) worst = error;  // NaN, too
    }
    if (largest > 0 && worst <= kTolerance * largest) return "";
    return "an error of " + std::to_string(worst) + " in numbers of up to " +
           std::to_string(largest);
  };
}

TEST(Exported, OnTheReference) {
  const std::vector<std::string> names = exported_models();
  EXPECT_GE(names.size(), 28u);
  for (const std::string& name : names) {
    for (const bool optimize : {true, false}) {
      const LoadedTest loaded = load(name, optimize);
      if (!loaded.model) continue;
      EXPECT_EQ(comparison(name)(reference_outputs(loaded)), "")
          << name << (optimize ? "" : " without passes");
    }
  }
}

TEST(Exported, OnEveryLaneAndAcross) {
  for (const std::string& name : exported_models()) {
    SCOPED_TRACE(name);
    const LoadedTest loaded = load(name, true);
    if (!loaded.model) continue;
    for (const char* strategy : {"cpu", "gpu"}) {
      SessionOptions options = base_options();
      options.strategy = strategy;
      EXPECT_EQ(run_on_lanes(loaded, options, comparison(name)), "") << strategy;
    }
    bool cut = false;
    EXPECT_EQ(run_split(loaded, SyncMechanism::kAuto, comparison(name), &cut), "");
    EXPECT_TRUE(cut);
  }
}

}  // namespace
}  // namespace tandem::testing
