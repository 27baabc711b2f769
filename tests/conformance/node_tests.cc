#include "tests/conformance/node_tests.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "import/onnx/proto_tensor.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "/usr/share/libonnx-testdata/data";
// Tests of nodes, of small models, and of what PyTorch made of its own operators.
constexpr const char* kSuites[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The tensor in a file, or kUnsupported: some tests hold sequences or optional values instead.
StatusOr<HostTensor> read_tensor(const fs::path& path, const onnx::ValueInfoProto& value) {
  if (!value.type().has_tensor_type()) return unsupported("a value that is no tensor");
  onnx::TensorProto proto;
  if (!proto.ParseFromString(read_file(path))) return corrupt(path.string() + " is no tensor");
  ExternalData files(std::nullopt);
  StatusOr<HostTensor> tensor = to_host_tensor(proto, files);
  if (tensor.status().code() == StatusCode::kUnsupported) {
    return unsupported("a value of type " + type_name(proto.data_type()));
  }
  return tensor;
}

// Files input_0.pb, input_1.pb, ...: one per value, in order.
fs::path data_file(const fs::path& folder, const char* what, int index) {
  return folder / "test_data_set_0" / (std::string(what) + "_" + std::to_string(index) + ".pb");
}

// PyTorch's tests are of opset 6, whose operators mean what they mean in opset 7 unless they say
// how to broadcast or whether they are being trained.
void read_opset_6_as_7(onnx::ModelProto& model) {
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == "broadcast" || attribute.name() == "is_test") return;
    }
  }
  for (onnx::OperatorSetIdProto& opset : *model.mutable_opset_import()) {
    if (opset.domain().empty() && opset.version() == 6) opset.set_version(7);
  }
}

bool same_value(double actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= 1e-5 + 1e-3 * std::abs(expected);
}

}  // namespace

std::vector<fs::path> find_node_tests() {
  std::vector<fs::path> folders;
  for (const char* suite : kSuites) {
    std::error_code error;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(kData) / suite, error)) {
      if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

StatusOr<NodeTest> read_node_test(const fs::path& folder) {
  NodeTest test;
  test.name = folder.parent_path().filename().string() + "/" + folder.filename().string();
  onnx::ModelProto model;
  if (!model.ParseFromString(read_file(folder / "model.onnx"))) {
    return corrupt(folder.string() + " has no readable model.onnx");
  }
  read_opset_6_as_7(model);
  test.bytes = model.SerializeAsString();

  std::set<std::string> initialized;
  for (const auto& initializer : model.graph().initializer())
    initialized.insert(initializer.name());
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (initialized.contains(input.name())) continue;
    const int index = static_cast<int>(test.inputs.size());
    TANDEM_ASSIGN_OR_RETURN(HostTensor tensor,
                            read_tensor(data_file(folder, "input", index), input));
    test.input_names.push_back(input.name());
    test.inputs.push_back(std::make_shared<const HostTensor>(std::move(tensor)));
  }
  for (int i = 0; i < model.graph().output_size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(HostTensor tensor,
                            read_tensor(data_file(folder, "output", i), model.graph().output(i)));
    test.outputs.push_back(std::move(tensor));
  }
  return test;
}

StatusOr<LoadedTest> load_node_test(const NodeTest& test, bool optimize) {
  // Fewest constants first: none; shapes, axes and the like; everything but the data that the node
  // works on, which is the first input.
  const auto nothing = [](size_t) { return false; };
  const auto integers = [&](size_t i) { return test.inputs[i]->type == DataType::kInt64; };
  const auto small = [&](size_t i) { return integers(i) || test.inputs[i]->dims.size() < 2; };
  const auto parameters = [](size_t i) { return i > 0; };
  const std::function<bool(size_t)> choices[] = {nothing, integers, small, parameters};

  Status status;
  for (const auto& is_constant : choices) {
    LoadOptions options;
    options.optimize = optimize;
    LoadedTest loaded;
    for (size_t i = 0; i < test.inputs.size(); ++i) {
      if (is_constant(i)) {
        options.constants[test.input_names[i]] = test.inputs[i];
      } else {
        options.shapes[test.input_names[i]] = test.inputs[i]->dims;
        loaded.inputs.push_back(*test.inputs[i]);
      }
    }
    StatusOr<Model> model = Model::parse(test.bytes, test.name, options);
    if (model.ok()) {
      loaded.model = std::make_shared<Model>(std::move(*model));
      return loaded;
    }
    status = model.status();
    if (status.code() != StatusCode::kUnsupported) return status;
  }
  return status;
}

std::string compare_outputs(const NodeTest& test, const std::vector<HostTensor>& outputs) {
  if (outputs.size() != test.outputs.size()) {
    return std::to_string(outputs.size()) + " outputs instead of " +
           std::to_string(test.outputs.size());
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const HostTensor& actual = outputs[k];
    const HostTensor& expected = test.outputs[k];
    const std::string where = "output " + std::to_string(k);
    if (actual.dims != expected.dims) {
      return where + " is " + to_string(actual.dims) + " instead of " + to_string(expected.dims);
    }
    if (actual.type != expected.type) {
      return where + " is " + to_string(actual.type) + " instead of " + to_string(expected.type);
    }
    for (int64_t i = 0; i < actual.size(); ++i) {
      if (actual.type == DataType::kInt64) {
        if (actual.data<int64_t>()[i] == expected.data<int64_t>()[i]) continue;
        return where + ", element " + std::to_string(i) + ": " +
               std::to_string(actual.data<int64_t>()[i]) + " instead of " +
               std::to_string(expected.data<int64_t>()[i]);
      }
      if (same_value(actual.data<float>()[i], expected.data<float>()[i])) continue;
      return where + ", element " + std::to_string(i) + ": " +
             std::to_string(actual.data<float>()[i]) + " instead of " +
             std::to_string(expected.data<float>()[i]);
    }
  }
  return "";
}

std::string short_reason(const Status& status) {
  std::string reason = status.message();
  // "LABEL: 1 node is not supported:\n  'name' (Type, opset 15) of [2, 3]: the reason\n ..."
  static const std::regex node(R"(\n\s*'[^']*' \(([\w.]+), opset \d+\)[^:]*: ([^\n]*))");
  std::smatch match;
  if (std::regex_search(reason, match, node)) {
    reason = match[1].str() + ": " + match[2].str();
  }
  static const std::regex names(R"('[^']*')");
  static const std::regex folders(R"(^[\w-]+/\w+: )");
  reason = std::regex_replace(reason, folders, "");
  return std::regex_replace(reason, names, "...");
}

void run_node_tests(bool optimize, int floor,
                    const std::function<std::string(const NodeTest&, const LoadedTest&)>& check) {
  int run = 0;
  int passed = 0;
  std::map<std::string, int> skips;  // by reason
  const std::vector<fs::path> folders = find_node_tests();
  EXPECT_FALSE(folders.empty()) << "install Debian's libonnx-testdata";
  for (const fs::path& folder : folders) {
    StatusOr<NodeTest> test = read_node_test(folder);
    if (test.status().code() == StatusCode::kUnsupported) {
      ++skips[short_reason(test.status())];
      continue;
    }
    if (!test.ok()) {
      ADD_FAILURE() << folder << ": " << test.status().to_string();
      continue;
    }
    StatusOr<LoadedTest> loaded = load_node_test(*test, optimize);
    if (loaded.status().code() == StatusCode::kUnsupported) {
      ++skips[short_reason(loaded.status())];
      continue;
    }
    ++run;
    if (!loaded.ok()) {
      ADD_FAILURE() << test->name << ": " << loaded.status().to_string();
      continue;
    }
    const std::string wrong = check(*test, *loaded);
    EXPECT_EQ(wrong, "") << test->name;
    if (wrong.empty()) ++passed;
  }

  int skipped = 0;
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [reason, count] : skips) {
    skipped += count;
    reasons.emplace_back(-count, reason);
  }
  std::sort(reasons.begin(), reasons.end());
  std::printf("%d run, %d passed, %d skipped\n", run, passed, skipped);
  for (const auto& [count, reason] : reasons) {
    std::printf("  %4d skipped: %s\n", -count, reason.c_str());
  }
  EXPECT_GE(passed, floor) << "support for some operator was lost";
}

}  // namespace tandem::testing
