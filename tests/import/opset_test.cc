// Which versions of ONNX's operators are read.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "import/onnx/lowerings.h"
#include "tests/import/model_builder.h"

namespace tandem::testing {
namespace {

// What tools/list_operator_versions.py printed.
std::map<std::string, int> newest_versions(int64_t* opset) {
  std::ifstream file(TANDEM_IMPORT_DATA "/operator_versions.txt");
  std::map<std::string, int> versions;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) {
      *opset = std::stoll(line.substr(line.rfind(' ') + 1));
      continue;
    }
    std::istringstream fields(line);
    std::string name;
    fields >> name >> versions[name];
  }
  return versions;
}

TEST(Opsets, EveryLoweringWasCheckedAgainstTheNewestDefinition) {
  int64_t opset = 0;
  const std::map<std::string, int> newest = newest_versions(&opset);
  ASSERT_GT(newest.size(), 150u);
  EXPECT_EQ(kLastOpset, opset);
  std::set<std::string_view> names;
  for (const Lowering& lowering : all_lowerings()) {
    const auto found = newest.find(std::string(lowering.op_type));
    ASSERT_NE(found, newest.end()) << lowering.op_type;
    EXPECT_EQ(lowering.version, found->second) << lowering.op_type;
    EXPECT_TRUE(names.insert(lowering.op_type).second) << lowering.op_type << " is there twice";
  }
  EXPECT_GT(names.size(), 80u);
}

ModelBuilder relu_of(int64_t opset) {
  ModelBuilder model(opset);
  model.input("x", {2});
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  return model;
}

TEST(Opsets, FromTheFirstToTheLast) {
  for (int64_t opset = 7; opset <= kLastOpset; ++opset) {
    const StatusOr<Model> model = relu_of(opset).load();
    EXPECT_TRUE(model.ok()) << model.status().to_string();
  }
  expect_error(relu_of(6).load(), StatusCode::kUnsupported, {"opset 6", "7 to"});
}

TEST(Opsets, NewerOnesAreRefusedByOperatorAndVersion) {
  ModelBuilder model = relu_of(kLastOpset + 1);
  model.floats("w", {2, 2}, {1, 2, 3, 4});
  model.node("Gemm", {"x", "w"}, {"z"});
  expect_error(model.load(), StatusCode::kUnsupported,
               {"opset " + std::to_string(kLastOpset + 1), "Relu (version 14)", "Gemm (version 13)",
                "export it for opset " + std::to_string(kLastOpset)});
}

TEST(Opsets, NewerVersionsOfTheFormatAreReadAsFarAsTheyGo) {
  ModelBuilder model = relu_of(22);
  model.proto().set_ir_version(99);
  // A field that this version does not know, as newer exporters write on every node.
  onnx::NodeProto* node = model.graph().mutable_node(0);
  node->GetReflection()->MutableUnknownFields(node)->AddLengthDelimited(9, "metadata");
  const StatusOr<Model> loaded = model.load();
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
}

TEST(Opsets, SpaceToDepthByColumnsSinceTwentyEight) {
  // Two channels of 2 x 2: with CRD the block's position is the inner part of the channel.
  const HostTensor x = ramp({1, 2, 2, 2});
  expect_output({.opset = 28,
                 .op = "SpaceToDepth",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"blocksize", int64_t{2}}, {"mode", "CRD"}}},
                {1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_output({.opset = 28,
                 .op = "SpaceToDepth",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"blocksize", int64_t{2}}}},
                {1, 8, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7});
}

}  // namespace
}  // namespace tandem::testing
