#include "import/onnx/node.h"

#include <algorithm>
#include <utility>

#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

template <typename T>
std::vector<T> elements(const HostTensor& tensor) {
  return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.size());
}

}  // namespace

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::unordered_set<std::string> value_names(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& initializer : graph.initializer()) names.insert(initializer.name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

std::string node_name(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return node.op_type();
}

Node::Node(const onnx::NodeProto& proto, int64_t opset, std::vector<std::optional<Value>> inputs,
           std::vector<bool> wanted, Assembler* assembler, ExternalData* files)
    : proto_(proto),
      name_(node_name(proto)),
      opset_(opset),
      inputs_(std::move(inputs)),
      wanted_(std::move(wanted)),
      results_(static_cast<size_t>(proto.output_size())),
      assembler_(assembler),
      files_(files) {}

StatusOr<std::vector<int64_t>> Node::integers_of(int index) const {
  const Value& input = value(index);
  if (!input.constant) {
    return unsupported("its input '" + input.name + "' must be known when the model is loaded");
  }
  if (input.type != DataType::kInt64) {
    return invalid_argument("its input '" + input.name + "' should be of integers");
  }
  return elements<int64_t>(*input.constant);
}

StatusOr<std::vector<float>> Node::floats_of(int index) const {
  const Value& input = value(index);
  if (!input.constant) {
    return unsupported("its input '" + input.name + "' must be known when the model is loaded");
  }
  if (input.type != DataType::kFloat32) {
    return invalid_argument("its input '" + input.name + "' should be of floats");
  }
  return elements<float>(*input.constant);
}

StatusOr<int64_t> Node::integer_of(int index) const {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> values, integers_of(index));
  if (values.size() == 1) return values[0];
  return invalid_argument("its input '" + value(index).name + "' should be a single number");
}

StatusOr<float> Node::float_of(int index) const {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<float> values, floats_of(index));
  if (values.size() == 1) return values[0];
  return invalid_argument("its input '" + value(index).name + "' should be a single number");
}

const onnx::AttributeProto* Node::find(std::string_view attribute,
                                       onnx::AttributeProto::AttributeType type) {
  for (const onnx::AttributeProto& candidate : proto_.attribute()) {
    if (candidate.name() != attribute) continue;
    // Files of old exporters leave the type out.
    if (candidate.type() == type || candidate.type() == onnx::AttributeProto::UNDEFINED) {
      return &candidate;
    }
    if (status_.ok()) {
      status_ =
          invalid_argument("its attribute '" + std::string(attribute) + "' has type " +
                           onnx::AttributeProto::AttributeType_Name(candidate.type()) + " where " +
                           onnx::AttributeProto::AttributeType_Name(type) + " is needed");
    }
  }
  return nullptr;
}

bool Node::has_attribute(std::string_view attribute) const {
  return std::any_of(proto_.attribute().begin(), proto_.attribute().end(),
                     [&](const auto& candidate) { return candidate.name() == attribute; });
}

int64_t Node::integer(std::string_view attribute, int64_t otherwise) {
  const onnx::AttributeProto* found = find(attribute, onnx::AttributeProto::INT);
  return found ? found->i() : otherwise;
}

float Node::number(std::string_view attribute, float otherwise) {
  const onnx::AttributeProto* found = find(attribute, onnx::AttributeProto::FLOAT);
  return found ? found->f() : otherwise;
}

std::string Node::text(std::string_view attribute, std::string_view otherwise) {
  const onnx::AttributeProto* found = find(attribute, onnx::AttributeProto::STRING);
  return found ? found->s() : std::string(otherwise);
}

std::optional<std::vector<int64_t>> Node::integers(std::string_view attribute) {
  const onnx::AttributeProto* found = find(attribute, onnx::AttributeProto::INTS);
  if (!found) return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::optional<std::vector<float>> Node::numbers(std::string_view attribute) {
  const onnx::AttributeProto* found = find(attribute, onnx::AttributeProto::FLOATS);
  if (!found) return std::nullopt;
  return std::vector<float>(found->floats().begin(), found->floats().end());
}

StatusOr<std::optional<HostTensor>> Node::tensor(std::string_view attribute) {
  const onnx::AttributeProto* found = find(attribute, onnx::AttributeProto::TENSOR);
  if (!found) return std::optional<HostTensor>();
  TANDEM_ASSIGN_OR_RETURN(HostTensor value, to_host_tensor(found->t(), *files_));
  return std::optional(std::move(value));
}

StatusOr<std::optional<std::vector<int64_t>>> Node::integers_from(std::string_view attribute,
                                                                  int index) {
  if (!has(index)) return integers(attribute);
  TANDEM_ASSIGN_OR_RETURN(std::vector<int64_t> values, integers_of(index));
  return std::optional(std::move(values));
}

StatusOr<int> Node::axis(int64_t axis, int rank) const {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  return invalid_argument("axis " + std::to_string(axis) + " of a tensor of rank " +
                          std::to_string(rank));
}

StatusOr<std::vector<int>> Node::axes(const std::vector<int64_t>& axes, int rank) const {
  std::vector<int> result;
  for (int64_t a : axes) {
    TANDEM_ASSIGN_OR_RETURN(const int positive, axis(a, rank));
    result.push_back(positive);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return invalid_argument("an axis is named twice");
  }
  return result;
}

StatusOr<Value> Node::emit(Attributes attributes, const std::vector<Value>& inputs,
                           const Dims& dims, std::string_view suffix) {
  std::string name = name_;
  if (!suffix.empty()) name.append("/").append(suffix);
  return assembler_->add(name, std::move(attributes), inputs, dims);
}

StatusOr<Value> Node::reshape(const Value& x, const Dims& dims, std::string_view suffix) {
  if (dims == x.dims) return x;
  return emit(ReshapeAttributes{}, {x}, dims, suffix);
}

Value Node::constant(HostTensor tensor, std::string_view suffix) const {
  return assembler_->constant(name_ + "/" + std::string(suffix), std::move(tensor));
}

void Node::set_output(int index, Value value) {
  if (static_cast<size_t>(index) < results_.size()) results_[index] = std::move(value);
}

}  // namespace tandem
