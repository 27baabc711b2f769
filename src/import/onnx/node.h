// One node of an ONNX model while it is lowered to operators of the graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "import/onnx/assembler.h"
#include "import/onnx/external_data.h"

namespace tandem {

class Node {
 public:
  // `inputs`: one per input of the node, nullopt where an optional one is left out. `wanted`: one
  // per output, false where nothing reads it.
  Node(const onnx::NodeProto& proto, int64_t opset, std::vector<std::optional<Value>> inputs,
       std::vector<bool> wanted, Assembler* assembler, ExternalData* files);

  const std::string& name() const { return name_; }
  const std::string& type() const { return proto_.op_type(); }
  int64_t opset() const { return opset_; }

  // Inputs. value() is legal where has() is true; required inputs are checked by the table of
  // lowerings.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int index) const { return index < inputs() && inputs_[index].has_value(); }
  const Value& value(int index) const { return *inputs_[index]; }
  // The elements of an input that must be known at load.
  StatusOr<std::vector<int64_t>> integers_of(int index) const;
  StatusOr<std::vector<float>> floats_of(int index) const;
  StatusOr<int64_t> integer_of(int index) const;
  StatusOr<float> float_of(int index) const;

  // Attributes. A wrong type is remembered, and reported by status(): the caller reads on with the
  // default.
  bool has_attribute(std::string_view attribute) const;
  int64_t integer(std::string_view attribute, int64_t otherwise);
  float number(std::string_view attribute, float otherwise);
  std::string text(std::string_view attribute, std::string_view otherwise);
  std::optional<std::vector<int64_t>> integers(std::string_view attribute);
  std::optional<std::vector<float>> numbers(std::string_view attribute);
  StatusOr<std::optional<HostTensor>> tensor(std::string_view attribute);
  const Status& status() const { return status_; }

  // What many operators take as an attribute in old opsets and as an input in newer ones.
  StatusOr<std::optional<std::vector<int64_t>>> integers_from(std::string_view attribute,
                                                              int index);

  // `axis` counted from the front; kInvalidArgument if it is not in [-rank, rank).
  StatusOr<int> axis(int64_t axis, int rank) const;
  StatusOr<std::vector<int>> axes(const std::vector<int64_t>& axes, int rank) const;  // ascending

  // Adds an operator. The node's main one is added without a suffix and gets the node's name.
  StatusOr<Value> emit(Attributes attributes, const std::vector<Value>& inputs,
                       const Dims& dims = {}, std::string_view suffix = "");
  StatusOr<Value> reshape(const Value& x, const Dims& dims, std::string_view suffix);
  // A constant that is not in the file.
  Value constant(HostTensor tensor, std::string_view suffix) const;

  // Outputs. Lowerings set those that they can compute; asking for another is an error.
  int outputs() const { return proto_.output_size(); }
  bool wants(int index) const { return index < outputs() && wanted_[index]; }
  void set_output(int index, Value value);
  const std::vector<std::optional<Value>>& results() const { return results_; }

 private:
  const onnx::AttributeProto* find(std::string_view attribute,
                                   onnx::AttributeProto::AttributeType type);

  const onnx::NodeProto& proto_;
  std::string name_;
  int64_t opset_;
  std::vector<std::optional<Value>> inputs_;
  std::vector<bool> wanted_;
  std::vector<std::optional<Value>> results_;
  Assembler* assembler_;
  ExternalData* files_;
  Status status_;
};

// True for ONNX's own operators.
bool is_standard(const std::string& domain);

// Every name of a value, so that names made up on the way differ from all of them.
std::unordered_set<std::string> value_names(const onnx::GraphProto& graph);

// The node's name, or that of its first output.
std::string node_name(const onnx::NodeProto& node);

}  // namespace tandem
