#include "import/onnx/functions.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "import/onnx/node.h"

namespace tandem {
namespace {

// A file of a few hundred bytes can ask for billions of nodes: no model has so many.
constexpr int kMaxNodes = 200'000;

// Fields that are newer than the library, which keeps them as they were in the file.
constexpr int kNodeOverload = 8;
constexpr int kFunctionAttributeProto = 11;
constexpr int kFunctionOverload = 13;

std::vector<std::string> newer_field(const google::protobuf::Message& message, int number) {
  std::vector<std::string> values;
  const google::protobuf::UnknownFieldSet& fields =
      message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != number ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    values.push_back(field.length_delimited());
  }
  return values;
}

std::string key_of(const std::string& domain, const std::string& name,
                   const google::protobuf::Message& message, int overload) {
  std::string key = (is_standard(domain) ? "" : domain) + "." + name;
  for (const std::string& value : newer_field(message, overload)) key += ":" + value;
  return key;
}

struct Function {
  const onnx::FunctionProto* proto = nullptr;
  std::vector<onnx::AttributeProto> defaults;
};

class Inliner {
 public:
  explicit Inliner(onnx::ModelProto& model) : model_(model), taken_(value_names(model.graph())) {}

  Status run() {
    TANDEM_RETURN_IF_ERROR(read_functions());
    google::protobuf::RepeatedPtrField<onnx::NodeProto> calls;
    calls.Swap(model_.mutable_graph()->mutable_node());
    for (onnx::NodeProto& node : calls) TANDEM_RETURN_IF_ERROR(unfold(std::move(node)));
    return {};
  }

 private:
  Status read_functions() {
    for (const onnx::FunctionProto& proto : model_.functions()) {
      Function function = {&proto, {}};
      for (const std::string& bytes : newer_field(proto, kFunctionAttributeProto)) {
        if (!function.defaults.emplace_back().ParseFromString(bytes)) {
          return corrupt("the function '" + proto.name() + "' has a damaged attribute");
        }
      }
      if (!functions_
               .emplace(key_of(proto.domain(), proto.name(), proto, kFunctionOverload),
                        std::move(function))
               .second) {
        return corrupt("the function '" + proto.name() + "' is defined twice");
      }
    }
    return {};
  }

  // Adds the node, or what it calls, to the model's graph.
  Status unfold(onnx::NodeProto node) {
    if (++unfolded_ > kMaxNodes) {
      return corrupt("its functions unfold to more than " + std::to_string(kMaxNodes) + " nodes");
    }
    const std::string key = key_of(node.domain(), node.op_type(), node, kNodeOverload);
    const auto found = functions_.find(key);
    if (found == functions_.end()) {
      *model_.mutable_graph()->add_node() = std::move(node);
      return {};
    }
    if (std::find(active_.begin(), active_.end(), key) != active_.end()) {
      return corrupt("the function '" + node.op_type() + "' calls itself");
    }
    active_.push_back(key);
    TANDEM_RETURN_IF_ERROR(
        unfold_call(node, found->second).with_context("function '" + node.op_type() + "'"));
    active_.pop_back();
    return {};
  }

  Status unfold_call(const onnx::NodeProto& call, const Function& function) {
    const onnx::FunctionProto& proto = *function.proto;
    TANDEM_RETURN_IF_ERROR(check_opset(proto));
    if (call.input_size() > proto.input_size() || call.output_size() > proto.output_size()) {
      return corrupt("node '" + node_name(call) + "' passes it more than it takes");
    }
    std::string prefix = node_name(call) + "/";
    for (int i = 2; !prefixes_.insert(prefix).second; ++i) {
      prefix = node_name(call) + "#" + std::to_string(i) + "/";
    }
    std::unordered_map<std::string, std::string> names = {{"", ""}};
    for (int i = 0; i < proto.input_size(); ++i) {
      names[proto.input(i)] = i < call.input_size() ? call.input(i) : "";
    }
    std::vector<std::pair<std::string, std::string>> copies;  // from a name to another for it
    for (int i = 0; i < call.output_size(); ++i) {
      if (call.output(i).empty()) continue;
      const auto [name, added] = names.emplace(proto.output(i), call.output(i));
      if (!added) copies.emplace_back(name->second, call.output(i));
    }
    for (const onnx::NodeProto& inner : proto.node()) {
      onnx::NodeProto node = inner;
      node.set_name(prefix + node_name(inner));
      for (std::string& input : *node.mutable_input()) input = rename(input, prefix, names);
      for (std::string& output : *node.mutable_output()) output = rename(output, prefix, names);
      fill_in_attributes(call, function, node);
      TANDEM_RETURN_IF_ERROR(unfold(std::move(node)));
    }
    for (const auto& [from, to] : copies) {
      onnx::NodeProto node;
      node.set_op_type("Identity");
      node.add_input(from);
      node.add_output(to);
      TANDEM_RETURN_IF_ERROR(unfold(std::move(node)));
    }
    return {};
  }

  // Outside the function, for a name inside.
  std::string rename(const std::string& name, const std::string& prefix,
                     std::unordered_map<std::string, std::string>& names) {
    const auto [found, added] = names.try_emplace(name);
    if (added) {
      found->second = prefix + name;
      for (int i = 2; !taken_.insert(found->second).second; ++i) {
        found->second = prefix + name + "#" + std::to_string(i);
      }
    }
    return found->second;
  }

  // Attributes that stand for attributes of the call get these, or the function's own values, or go
  // away.
  static void fill_in_attributes(const onnx::NodeProto& call, const Function& function,
                                 onnx::NodeProto& node) {
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> attributes;
    attributes.Swap(node.mutable_attribute());
    for (onnx::AttributeProto& attribute : attributes) {
      if (attribute.ref_attr_name().empty()) {
        *node.add_attribute() = std::move(attribute);
        continue;
      }
      const auto is_meant = [&](const onnx::AttributeProto& candidate) {
        return candidate.name() == attribute.ref_attr_name();
      };
      const onnx::AttributeProto* value = nullptr;
      const auto given = std::find_if(call.attribute().begin(), call.attribute().end(), is_meant);
      const auto usual = std::find_if(function.defaults.begin(), function.defaults.end(), is_meant);
      if (given != call.attribute().end()) {
        value = &*given;
      } else if (usual != function.defaults.end()) {
        value = &*usual;
      } else {
        continue;
      }
      onnx::AttributeProto* filled = node.add_attribute();
      *filled = *value;
      filled->set_name(attribute.name());
    }
  }

  Status check_opset(const onnx::FunctionProto& function) const {
    for (const onnx::OperatorSetIdProto& own : function.opset_import()) {
      if (!is_standard(own.domain())) continue;
      for (const onnx::OperatorSetIdProto& entry : model_.opset_import()) {
        if (!is_standard(entry.domain()) || entry.version() == own.version()) continue;
        return unsupported("it uses opset " + std::to_string(own.version()) + ", the model opset " +
                           std::to_string(entry.version()) +
                           "; give them the same (onnx.version_converter)");
      }
    }
    return {};
  }

  onnx::ModelProto& model_;
  std::unordered_set<std::string> taken_;  // names of values
  std::unordered_map<std::string, Function> functions_;
  std::unordered_set<std::string> prefixes_;  // of calls
  std::vector<std::string> active_;           // functions being unfolded
  int unfolded_ = 0;                          // nodes, calls included
};

}  // namespace

Status inline_functions(onnx::ModelProto& model) {
  if (model.functions_size() == 0) return {};
  return Inliner(model).run();
}

}  // namespace tandem
