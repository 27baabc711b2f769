// ONNX's conformance tests on the double-precision reference: tells a mistake of the importer from
// one of a lane, and is how the reference itself is checked.
#include "graph/reference.h"

#include <gtest/gtest.h>

#include "tests/conformance/node_tests.h"

namespace tandem::testing {
namespace {

constexpr int kFloor = 520;  // tests that must pass

std::string run_reference(const NodeTest& test, const LoadedTest& loaded) {
  const Graph& graph = loaded.model->graph();
  const std::vector<ReferenceTensor> values = reference(graph, loaded.inputs);
  std::vector<HostTensor> outputs;
  for (TensorId id : graph.outputs()) {
    HostTensor output(graph.tensor(id).type, graph.tensor(id).dims);
    for (int64_t i = 0; i < output.size(); ++i) {
      if (output.type == DataType::kFloat32) {
        output.data<float>()[i] = static_cast<float>(values[id].values[i]);
      } else {
        output.data<int64_t>()[i] = static_cast<int64_t>(values[id].values[i]);
      }
    }
    outputs.push_back(std::move(output));
  }
  return compare_outputs(test, outputs);
}

TEST(OnnxReference, WithPasses) { run_node_tests(true, kFloor, run_reference); }
TEST(OnnxReference, WithoutPasses) { run_node_tests(false, kFloor, run_reference); }

}  // namespace
}  // namespace tandem::testing
