// ONNX's own conformance tests, as Debian's libonnx-testdata installs them: a model, its inputs and
// the outputs that it must yield.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/model.h"
#include "tandem/status.h"
#include "tandem/tensor.h"

namespace tandem::testing {

struct NodeTest {
  std::string name;   // "node/test_relu"
  std::string bytes;  // of model.onnx
  std::vector<std::string> input_names;
  std::vector<std::shared_ptr<const HostTensor>> inputs;
  std::vector<HostTensor> outputs;
};

// The folders of all tests, sorted. Empty if the data is not installed.
std::vector<std::filesystem::path> find_node_tests();
// kUnsupported where inputs or outputs are no tensors, or have types that Tandem does not know.
StatusOr<NodeTest> read_node_test(const std::filesystem::path& folder);

// A test made ready to run.
struct LoadedTest {
  std::shared_ptr<Model> model;
  std::vector<HostTensor> inputs;  // those that are not constants of the model
};
// With as many inputs as possible given at run time; the others (weights, shapes, axes) become
// constants. kUnsupported if no choice loads.
StatusOr<LoadedTest> load_node_test(const NodeTest& test, bool optimize);

// "" if the outputs are as they must be, else what is wrong. Like ONNX's own runner this allows an
// error of 1e-3 of the expected value; and of 1e-5 near zero, where it allows 1e-7, since sums of
// floats in another order differ by as much. Integers must be equal.
std::string compare_outputs(const NodeTest& test, const std::vector<HostTensor>& outputs);

// Why a model is not supported, without the names and shapes in it: to count by.
std::string short_reason(const Status& status);

// Calls check(test, loaded), which returns what is wrong or "", for every test whose operators are
// supported. Prints counts, and reports as failures of the running gtest: what check() returns, a
// model that does not load for another reason than lack of support, and fewer passes than `floor`
// (so that support does not go away unnoticed).
void run_node_tests(bool optimize, int floor,
                    const std::function<std::string(const NodeTest&, const LoadedTest&)>& check);

}  // namespace tandem::testing
