// Writes ONNX models for tests, and runs them by the reference interpreter.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "graph/reference.h"
#include "tandem/model.h"

namespace tandem::testing {

using AttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, HostTensor>;

struct Attribute {
  std::string name;
  AttributeValue value;
};

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 13);

  // Extents of -1 are symbolic: "name_0", "name_1", ... by their position.
  void input(const std::string& name, const Dims& dims, int type = onnx::TensorProto::FLOAT);
  void initializer(const std::string& name, const HostTensor& value);
  void floats(const std::string& name, Dims dims, std::vector<float> values);
  void ints(const std::string& name, std::vector<int64_t> values);  // rank 1
  // An empty name leaves an optional input out. Returns the node, for tests that spoil it.
  onnx::NodeProto* node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<Attribute>& attributes = {});
  void output(const std::string& name);

  onnx::ModelProto& proto() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  std::string bytes() const { return model_.SerializeAsString(); }
  StatusOr<Model> load(const LoadOptions& options = {}) const;

 private:
  onnx::ModelProto model_;
};

onnx::TensorProto to_proto(const HostTensor& tensor);

// The outputs of a model.
std::vector<ReferenceTensor> run(const Model& model, const std::vector<HostTensor>& inputs);

// 0, 1, 2, ... times `step`, from `first` on.
HostTensor ramp(Dims dims, float first = 0, float step = 1);

// One node on float inputs `x0`, `x1`, ... and constants given as initializers `c0`, `c1`, ...: the
// node's inputs name them. Checks that the model yields `expected`, optimized and as it is.
struct NodeCase {
  int64_t opset = 13;
  std::string op;
  std::vector<std::string> inputs = {};
  std::vector<HostTensor> x = {};
  std::vector<HostTensor> constants = {};
  std::vector<Attribute> attributes = {};
};
void expect_output(const NodeCase& node, const Dims& dims, const std::vector<double>& expected,
                   double tolerance = 1e-5);
// That it does not load, with this code and a message that contains each of the `parts`.
void expect_error(const StatusOr<Model>& model, StatusCode code,
                  std::initializer_list<std::string> parts);
void expect_node_error(const NodeCase& node, StatusCode code,
                       std::initializer_list<std::string> parts);

}  // namespace tandem::testing
