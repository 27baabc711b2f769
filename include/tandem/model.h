// A network: a static DAG of operators with fixed tensor shapes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/status.h"
#include "tandem/tensor.h"

namespace tandem {

class Graph;

// What the caller must know of an input or output.
struct TensorSpec {
  std::string name;
  Dims dims;  // as in the file: N, C, H, W for images
  DataType type = DataType::kFloat32;
};

struct LoadOptions {
  // Input name -> extents, for inputs whose file shape has symbolic or unknown dimensions. A
  // leading (batch) dimension that stays symbolic becomes 1; any other that stays so is refused by
  // name.
  std::map<std::string, Dims> shapes;
  // Inputs turned into constants before anything else looks at the model. Tests use it.
  std::map<std::string, std::shared_ptr<const HostTensor>> constants;
  // Fuse and simplify. Off: every node of the file stays an operator of its own (so that a failing
  // pass can be told from a failing kernel), except those that depend on constants and shapes
  // alone.
  bool optimize = true;
};

// What loading a model took, in milliseconds.
struct LoadTimes {
  double parse_ms = 0;   // reading the file, or building a network of the zoo
  double import_ms = 0;  // to operators
  double pass_ms = 0;    // fusing, simplifying, choosing layouts
};

// Immutable after load; cheap to copy; may be shared by sessions and threads.
class Model {
 public:
  // A path of an ONNX file, or "zoo:NAME" for a built-in network (`tandem zoo list`).
  static StatusOr<Model> load(const std::string& path, const LoadOptions& options = {});
  // The bytes of an ONNX file. `label` names it in errors.
  static StatusOr<Model> parse(std::string_view bytes, const std::string& label,
                               const LoadOptions& options = {});
  explicit Model(std::shared_ptr<const Graph> graph, const LoadTimes& times = {});

  const std::string& name() const;
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  const Graph& graph() const { return *graph_; }
  std::shared_ptr<const Graph> shared_graph() const { return graph_; }
  const LoadTimes& load_times() const { return load_times_; }

 private:
  std::shared_ptr<const Graph> graph_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  LoadTimes load_times_;
};

}  // namespace tandem
