// The graph under construction, and the values that nodes of an ONNX model pass to one another.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace tandem {

// What a name of the model stands for: something known at load (`constant` is set, and it may have
// no elements), or a tensor of the graph.
struct Value {
  std::string name;  // for errors
  DataType type = DataType::kFloat32;
  Dims dims;
  std::shared_ptr<const HostTensor> constant;
  TensorId id = kNone;  // not for constants

  int rank() const { return static_cast<int>(dims.size()); }
};

// Operators whose inputs are all constants are computed on the spot and leave no trace in the
// graph; that folds shape arithmetic, and weights that are computed from others.
class Assembler {
 public:
  // `reserved`: every name of a value in the model. Other tensors get names that differ from these.
  Assembler(std::string graph_name, std::unordered_set<std::string> reserved);

  // `name` is made unique.
  Value constant(const std::string& name, HostTensor tensor);
  Value add_input(const std::string& name, DataType type, Dims dims);
  // `name` is made unique here, too.
  StatusOr<Value> add(const std::string& name, Attributes attributes,
                      const std::vector<Value>& inputs, const Dims& dims = {});
  // `value` is the model's value `name`. Its tensor takes that name, unless it has one already.
  Value name_value(const std::string& name, Value value);
  // `name` is the one that the caller knows the output by: its tensor is renamed, or copied where
  // it cannot be.
  Status mark_output(const std::string& name, const Value& value);

  Graph take() && { return std::move(graph_); }

 private:
  std::string unique(const std::string& name, std::unordered_set<std::string>& taken);
  TensorId tensor_of(const Value& value);

  Graph graph_;
  std::unordered_set<std::string> taken_operator_names_;
  std::unordered_set<std::string> taken_tensor_names_;
  std::unordered_set<TensorId> named_;  // tensors that carry a name of the model
  std::unordered_map<const HostTensor*, TensorId> constants_;
};

}  // namespace tandem
