#include "import/onnx/importer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "import/onnx/assembler.h"
#include "import/onnx/external_data.h"
#include "import/onnx/functions.h"
#include "import/onnx/inputs.h"
#include "import/onnx/lowerings.h"
#include "import/onnx/node_order.h"
#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

constexpr int64_t kFirstOpset = 7;

// Operators may mean something else by then.
Status newer_opset(const onnx::GraphProto& graph, int64_t opset) {
  std::set<std::string> operators;
  for (const onnx::NodeProto& node : graph.node()) {
    const Lowering* lowering = is_standard(node.domain()) ? find_lowering(node.op_type()) : nullptr;
    if (!lowering) continue;
    operators.insert(node.op_type() + " (version " + std::to_string(lowering->version) + ")");
  }
  std::string known;
  for (const std::string& text : operators) known += (known.empty() ? "" : ", ") + text;
  return unsupported("it uses opset " + std::to_string(opset) + "; Tandem reads " +
                     std::to_string(kFirstOpset) + " to " + std::to_string(kLastOpset) +
                     ", and knows no newer definition of its operators than " + known +
                     ": export it for opset " + std::to_string(kLastOpset) +
                     ", or convert it by onnx.version_converter");
}

StatusOr<int64_t> read_opset(const onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& entry : model.opset_import()) {
    if (!is_standard(entry.domain())) continue;
    if (entry.version() > kLastOpset) return newer_opset(model.graph(), entry.version());
    if (entry.version() >= kFirstOpset) return entry.version();
    return unsupported("it uses opset " + std::to_string(entry.version()) + "; Tandem reads " +
                       std::to_string(kFirstOpset) + " to " + std::to_string(kLastOpset) +
                       ": convert it by onnx.version_converter");
  }
  if (model.opset_import_size() == 0) {
    return corrupt("it does not say which opset it uses: not an ONNX model?");
  }
  return unsupported("it uses operators of the domain " + model.opset_import(0).domain() + " only");
}

// What to do about operators that are missing on purpose.
std::string advice_on(std::string_view op_type) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), op_type) != list.end();
  };
  if (is_one_of({"NonMaxSuppression", "NonZero", "TopK", "Unique", "Compress"})) {
    return ": export the network without its post-processing, and do that outside";
  }
  if (is_one_of({"If", "Loop", "Scan"})) {
    return ": export the model without control flow, for example for fixed shapes";
  }
  if (is_one_of({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv",
                 "QLinearMatMul", "ConvInteger", "MatMulInteger"})) {
    return ": export the model before it is quantized";
  }
  return ": replace it in the model, or leave it to code around the model";
}

bool has_weights(std::string_view op_type) {
  constexpr std::string_view kWithWeights[] = {"Conv",
                                               "ConvTranspose",
                                               "Gemm",
                                               "MatMul",
                                               "BatchNormalization",
                                               "GroupNormalization",
                                               "InstanceNormalization",
                                               "LayerNormalization"};
  return std::find(std::begin(kWithWeights), std::end(kWithWeights), op_type) !=
         std::end(kWithWeights);
}

// Infinite constants have their uses, as masks and bounds; infinite weights have none.
Status expect_finite(const std::optional<Value>& weights) {
  if (!weights || !weights->constant || weights->type != DataType::kFloat32) return {};
  const float* begin = weights->constant->data<float>();
  const float* end = begin + weights->constant->size();
  const auto is_finite = [](float value) { return std::isfinite(value); };
  const float* first = std::find_if_not(begin, end, is_finite);
  if (first == end) return {};
  const auto count = (end - first) - std::count_if(first, end, is_finite);
  return corrupt("its weights '" + weights->name + "' hold " +
                 (std::isnan(*first) ? "NaN" : "infinity") + " (element " +
                 std::to_string(first - begin) + "; " + std::to_string(count) + " of " +
                 std::to_string(end - begin) +
                 " are not finite): the file is damaged, or training went wrong");
}

bool is_half(int onnx_type) {
  return onnx_type == onnx::TensorProto::FLOAT16 || onnx_type == onnx::TensorProto::BFLOAT16;
}

class Importer {
 public:
  Importer(onnx::ModelProto model, const std::string& label, std::optional<std::string> folder,
           const LoadOptions& options)
      : model_(std::move(model)),
        file_(*model_.mutable_graph()),
        files_(std::move(folder)),
        options_(options),
        assembler_(file_.name().empty() ? label : file_.name(), value_names(file_)) {}

  StatusOr<Graph> run() {
    TANDEM_ASSIGN_OR_RETURN(opset_, read_opset(model_));
    TANDEM_RETURN_IF_ERROR(read_initializers());
    TANDEM_RETURN_IF_ERROR(read_inputs());
    TANDEM_RETURN_IF_ERROR(lower_nodes());
    TANDEM_RETURN_IF_ERROR(mark_outputs());
    return std::move(assembler_).take();
  }

 private:
  Status define(const std::string& name, Value value) {
    if (name.empty()) return corrupt("a tensor or an input has no name");
    if (values_.emplace(name, std::move(value)).second) return {};
    return corrupt("the name '" + name + "' is defined twice");
  }

  Status define_constant(const std::string& name, std::shared_ptr<const HostTensor> tensor) {
    Value value;
    value.name = name;
    value.type = tensor->type;
    value.dims = tensor->dims;
    value.constant = std::move(tensor);
    return define(name, std::move(value));
  }

  // Types that Tandem does not read are errors of the nodes that do: quantized models should get
  // the list of these.
  Status read_initializers() {
    if (file_.sparse_initializer_size() > 0) {
      return unsupported("it has sparse tensors ('" + file_.sparse_initializer(0).values().name() +
                         "')");
    }
    for (onnx::TensorProto& proto : *file_.mutable_initializer()) {
      const Status type = constant_type(proto.data_type()).status();
      if (!type.ok()) {
        unreadable_.emplace(proto.name(), "'" + proto.name() + "': " + type.message());
        continue;
      }
      TANDEM_ASSIGN_OR_RETURN(HostTensor tensor, to_host_tensor(proto, files_));
      // Weights are not held twice.
      std::unique_ptr<std::string>(proto.release_raw_data()).reset();
      TANDEM_RETURN_IF_ERROR(
          define_constant(proto.name(), std::make_shared<const HostTensor>(std::move(tensor))));
    }
    return {};
  }

  // Inputs that have an initializer, or that the caller fixed, are constants.
  Status read_inputs() {
    std::unordered_set<std::string> names;
    std::vector<const onnx::ValueInfoProto*> open;
    for (const onnx::ValueInfoProto& input : file_.input()) {
      if (!names.insert(input.name()).second) {
        return corrupt("two inputs are called '" + input.name() + "'");
      }
      const auto constant = options_.constants.find(input.name());
      if (constant != options_.constants.end()) {
        values_.erase(input.name());  // an initializer is only the input's default
        TANDEM_RETURN_IF_ERROR(define_constant(input.name(), constant->second));
      } else if (!values_.contains(input.name()) && !unreadable_.contains(input.name())) {
        open.push_back(&input);
      }
    }
    for (const auto& [name, tensor] : options_.constants) {
      if (!names.contains(name)) return not_found("there is no input '" + name + "' to fix");
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<InputSpec> specs,
                            resolve_inputs(open, options_.shapes));
    for (const InputSpec& spec : specs) {
      if (spec.onnx_type != onnx::TensorProto::FLOAT &&
          spec.onnx_type != onnx::TensorProto::INT64) {
        return unsupported(
            "input '" + spec.name + "' is " + type_name(spec.onnx_type) +
            "; Tandem takes float32 and int64" +
            (is_half(spec.onnx_type) ? ": convert the weights alone (keep_io_types=True)" : ""));
      }
      const DataType type =
          spec.onnx_type == onnx::TensorProto::FLOAT ? DataType::kFloat32 : DataType::kInt64;
      TANDEM_RETURN_IF_ERROR(define(spec.name, assembler_.add_input(spec.name, type, spec.dims)));
    }
    return {};
  }

  Status lower_nodes() {
    std::unordered_set<std::string> known;
    for (const auto& [name, value] : values_) known.insert(name);
    for (const auto& [name, reason] : unreadable_) known.insert(name);
    TANDEM_ASSIGN_OR_RETURN(const std::vector<const onnx::NodeProto*> order,
                            order_nodes(file_, known));
    for (const auto& output : file_.output()) read_.insert(output.name());
    for (const onnx::NodeProto* proto : order) {
      read_.insert(proto->input().begin(), proto->input().end());
    }
    read_.erase("");
    for (const onnx::NodeProto* proto : order) {
      Status status = lower(*proto);
      if (!status.ok()) problems_.emplace_back(proto, std::move(status));
    }
    return problems();
  }

  // One error for everything that is wrong.
  Status problems() const {
    if (problems_.empty()) return {};
    const auto wrong = std::find_if(problems_.begin(), problems_.end(), [](const auto& problem) {
      return problem.second.code() != StatusCode::kUnsupported;
    });
    const bool supported = wrong != problems_.end();
    if (supported && problems_.size() == 1) {
      const auto& [proto, status] = problems_[0];
      return status.with_context("node '" + node_name(*proto) + "' (" + proto->op_type() + ")");
    }
    std::string text = std::to_string(problems_.size()) +
                       (problems_.size() == 1 ? " node is" : " nodes are") +
                       (supported ? " wrong or not supported:" : " not supported:");
    for (const auto& [proto, status] : problems_) {
      text += "\n  " + describe(*proto) + ": " + status.message();
    }
    return {supported ? wrong->second.code() : StatusCode::kUnsupported, text};
  }

  // Behind a node that fails values are missing: the nodes there are only looked up.
  Status lower(const onnx::NodeProto& proto) {
    if (!is_standard(proto.domain())) {
      return unsupported("Tandem knows no operators of the domain " + proto.domain() +
                         ": export the model with ONNX's own");
    }
    const Lowering* lowering = find_lowering(proto.op_type());
    if (!lowering) return unsupported("Tandem has no such operator" + advice_on(proto.op_type()));
    std::vector<std::optional<Value>> inputs;
    for (const std::string& input : proto.input()) {
      const auto value = values_.find(input);
      const auto unreadable = unreadable_.find(input);
      if (unreadable != unreadable_.end()) return unsupported(unreadable->second);
      if (!input.empty() && value == values_.end()) return {};
      inputs.push_back(input.empty() ? std::nullopt : std::optional(value->second));
    }
    for (int i = 0; i < lowering->required_inputs; ++i) {
      if (static_cast<size_t>(i) >= inputs.size() || !inputs[i]) {
        return corrupt("its input number " + std::to_string(i + 1) + " is missing");
      }
    }
    if (has_weights(proto.op_type())) {
      for (const std::optional<Value>& input : inputs) TANDEM_RETURN_IF_ERROR(expect_finite(input));
    }
    std::vector<bool> wanted;
    for (const std::string& output : proto.output()) wanted.push_back(read_.contains(output));
    Node node(proto, opset_, std::move(inputs), std::move(wanted), &assembler_, &files_);
    const Status status = lowering->lower(node);
    TANDEM_RETURN_IF_ERROR(node.status());
    TANDEM_RETURN_IF_ERROR(status);
    for (int i = 0; i < proto.output_size(); ++i) {
      const std::string& name = proto.output(i);
      if (!node.wants(i)) continue;
      if (!node.results()[i]) return unsupported("its output '" + name + "'");
      TANDEM_RETURN_IF_ERROR(define(name, assembler_.name_value(name, *node.results()[i])));
    }
    return {};
  }

  // "'detect' (NonMaxSuppression, opset 11) of [1, 8400, 4], [1, 80, 8400]".
  std::string describe(const onnx::NodeProto& proto) const {
    std::string text = "'" + node_name(proto) + "' (" +
                       (is_standard(proto.domain()) ? "" : proto.domain() + ".") + proto.op_type() +
                       ", opset " + std::to_string(opset_) + ")";
    const char* separator = " of ";
    for (const std::string& input : proto.input()) {
      if (input.empty()) continue;
      const auto value = values_.find(input);
      text += separator + (value == values_.end() ? "?" : to_string(value->second.dims));
      separator = ", ";
    }
    return text;
  }

  Status mark_outputs() {
    if (file_.output_size() == 0) return corrupt("it has no outputs");
    for (const onnx::ValueInfoProto& output : file_.output()) {
      const auto value = values_.find(output.name());
      if (unreadable_.contains(output.name())) return unsupported(unreadable_.at(output.name()));
      if (value == values_.end()) return corrupt("output '" + output.name() + "' is not defined");
      TANDEM_RETURN_IF_ERROR(assembler_.mark_output(output.name(), value->second)
                                 .with_context("output '" + output.name() + "'"));
    }
    return {};
  }

  onnx::ModelProto model_;
  onnx::GraphProto& file_;  // of model_
  ExternalData files_;
  const LoadOptions& options_;
  int64_t opset_ = 0;
  Assembler assembler_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, std::string> unreadable_;  // initializers, and what is wrong
  std::unordered_set<std::string> read_;  // names that a node reads, or that are outputs
  std::vector<std::pair<const onnx::NodeProto*, Status>> problems_;
};

}  // namespace

StatusOr<Graph> import_onnx(onnx::ModelProto model, const std::string& label,
                            std::optional<std::string> folder, const LoadOptions& options) {
  TANDEM_RETURN_IF_ERROR(inline_functions(model).with_context(label));
  StatusOr<Graph> graph = Importer(std::move(model), label, std::move(folder), options).run();
  if (graph.ok()) return graph;
  return graph.status().with_context(label);
}

}  // namespace tandem
