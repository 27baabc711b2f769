#include "graph/passes/editor.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// Emits operators into a new graph, each behind those that it depends on.
class Emitter {
 public:
  Emitter(const GraphEditor& editor, Graph* graph) : editor_(editor), graph_(graph) {}

  void emit_input(TensorId id) {
    const Tensor& tensor = editor_.tensor(id);
    ids(id) = graph_->add_input(tensor.name, tensor.type, tensor.dims, tensor.layout);
  }

  // Only operators that were added lie behind their readers, so that the recursion is shallow.
  Status emit(OperatorId id) {
    const Operator& op = editor_.op(id);
    if (ids(op.output) != kNone) return {};
    std::vector<TensorId> inputs;
    for (TensorId input : op.inputs) {
      const Tensor& tensor = editor_.tensor(input);
      if (tensor.kind == TensorKind::kActivation) {
        TANDEM_RETURN_IF_ERROR(emit(tensor.producer));
      } else if (tensor.kind == TensorKind::kConstant && ids(input) == kNone) {
        ids(input) = graph_->add_constant(tensor.name, tensor.value);
        graph_->mutable_tensor(ids(input)).layout = tensor.layout;
      }
      inputs.push_back(ids(input));
    }
    const Tensor& output = editor_.tensor(op.output);
    TANDEM_ASSIGN_OR_RETURN(
        const TensorId made,
        graph_->add(unique(op.name), op.attributes, std::move(inputs), output.dims, output.layout));
    graph_->mutable_tensor(made).name = output.name;
    ids(op.output) = made;
    return {};
  }

  TensorId& ids(TensorId id) {
    if (static_cast<size_t>(id) >= ids_.size()) ids_.resize(static_cast<size_t>(id) + 1, kNone);
    return ids_[id];
  }

 private:
  std::string unique(const std::string& name) {
    std::string candidate = name;
    for (int i = 2; !names_.insert(candidate).second; ++i) {
      candidate = name + "#" + std::to_string(i);
    }
    return candidate;
  }

  const GraphEditor& editor_;
  Graph* graph_;
  std::vector<TensorId> ids_;  // by the editor's ids
  std::unordered_set<std::string> names_;
};

}  // namespace

GraphEditor::GraphEditor(const Graph& graph)
    : name_(graph.name),
      operators_(graph.operators().begin(), graph.operators().end()),
      tensors_(graph.tensors().begin(), graph.tensors().end()),
      removed_(graph.operators().size(), false),
      readers_(graph.tensors().size()),
      inputs_(graph.inputs()),
      outputs_(graph.outputs()) {
  for (const Tensor& tensor : tensors_) tensor_names_.insert(tensor.name);
  for (OperatorId id = 0; id < end(); ++id) add_readers(id);
  for (OperatorId id = end(); id-- > 0;) remove_if_unused(operators_[id].output);
}

bool GraphEditor::is_output(TensorId id) const {
  return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
}

std::string GraphEditor::unique(const std::string& name) {
  std::string candidate = name;
  for (int i = 2; !tensor_names_.insert(candidate).second; ++i) {
    candidate = name + "#" + std::to_string(i);
  }
  return candidate;
}

void GraphEditor::add_readers(OperatorId id) {
  for (TensorId input : operators_[id].inputs) readers_[input].push_back(id);
}

void GraphEditor::drop_reader(TensorId tensor, OperatorId reader) {
  std::vector<OperatorId>& readers = readers_[tensor];
  readers.erase(std::find(readers.begin(), readers.end(), reader));
  remove_if_unused(tensor);
}

void GraphEditor::remove_if_unused(TensorId tensor) {
  // A worklist: chains of dead operators may be long.
  std::vector<TensorId> candidates = {tensor};
  while (!candidates.empty()) {
    const TensorId candidate = candidates.back();
    candidates.pop_back();
    const OperatorId producer = tensors_[candidate].producer;
    if (producer == kNone || removed_[producer] || !readers_[candidate].empty() ||
        is_output(candidate)) {
      continue;
    }
    removed_[producer] = true;
    for (TensorId input : operators_[producer].inputs) {
      std::vector<OperatorId>& readers = readers_[input];
      readers.erase(std::find(readers.begin(), readers.end(), producer));
      candidates.push_back(input);
    }
  }
}

TensorId GraphEditor::add_constant(const std::string& name, HostTensor value) {
  Tensor tensor;
  tensor.name = unique(name);
  tensor.type = value.type;
  tensor.dims = value.dims;
  tensor.kind = TensorKind::kConstant;
  tensor.value = std::make_shared<const HostTensor>(std::move(value));
  tensors_.push_back(std::move(tensor));
  readers_.emplace_back();
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId GraphEditor::copy_constant(TensorId id, Layout layout) {
  Tensor tensor = tensors_[id];
  tensor.name = unique(tensor.name);
  tensor.layout = layout;
  tensors_.push_back(std::move(tensor));
  readers_.emplace_back();
  return static_cast<TensorId>(tensors_.size() - 1);
}

StatusOr<TensorId> GraphEditor::add(std::string name, Attributes attributes,
                                    std::vector<TensorId> inputs, const Dims& dims, Layout layout) {
  std::vector<const Tensor*> tensors;
  tensors.reserve(inputs.size());
  for (TensorId input : inputs) tensors.push_back(&tensors_[input]);
  TANDEM_ASSIGN_OR_RETURN(const Shape shape, output_shape(attributes, tensors, dims));
  const OperatorId id = end();
  Tensor output;
  output.name = unique(name);
  output.type = shape.type;
  output.dims = shape.dims;
  output.layout = layout;
  output.producer = id;
  tensors_.push_back(std::move(output));
  readers_.emplace_back();
  Operator op;
  op.name = std::move(name);
  op.attributes = std::move(attributes);
  op.inputs = std::move(inputs);
  op.output = static_cast<TensorId>(tensors_.size() - 1);
  operators_.push_back(std::move(op));
  removed_.push_back(false);
  add_readers(id);
  return operators_[id].output;
}

void GraphEditor::replace(OperatorId id, std::string name, Attributes attributes,
                          std::vector<TensorId> inputs) {
  const std::vector<TensorId> before = std::exchange(operators_[id].inputs, std::move(inputs));
  operators_[id].name = std::move(name);
  operators_[id].attributes = std::move(attributes);
  add_readers(id);  // first, so that what stays in use is not removed
  for (TensorId input : before) drop_reader(input, id);
}

void GraphEditor::set_input(OperatorId id, int index, TensorId tensor) {
  const TensorId before = std::exchange(operators_[id].inputs[index], tensor);
  readers_[tensor].push_back(id);
  drop_reader(before, id);
}

bool GraphEditor::bypass(OperatorId id, TensorId tensor) {
  const TensorId output = operators_[id].output;
  if (is_output(output)) {
    // The other tensor has to take the name over.
    if (tensors_[tensor].kind != TensorKind::kActivation || is_output(tensor)) return false;
    std::swap(tensors_[tensor].name, tensors_[output].name);
    std::replace(outputs_.begin(), outputs_.end(), output, tensor);
  }
  for (OperatorId reader : readers_[output]) {
    // Once for each time that it reads the tensor, like the list itself.
    auto& inputs = operators_[reader].inputs;
    *std::find(inputs.begin(), inputs.end(), output) = tensor;
    readers_[tensor].push_back(reader);
  }
  readers_[output].clear();
  remove_if_unused(output);
  return true;
}

void GraphEditor::set_output(size_t index, TensorId tensor, const std::string& old_name) {
  const TensorId before = std::exchange(outputs_[index], tensor);
  tensors_[tensor].name = std::exchange(tensors_[before].name, unique(old_name));
  remove_if_unused(before);
}

StatusOr<Graph> GraphEditor::finish() const {
  Graph graph;
  graph.name = name_;
  Emitter emitter(*this, &graph);
  for (TensorId input : inputs_) emitter.emit_input(input);
  for (OperatorId id = 0; id < end(); ++id) {
    if (!removed_[id]) TANDEM_RETURN_IF_ERROR(emitter.emit(id));
  }
  for (TensorId output : outputs_) graph.mark_output(emitter.ids(output));
  return graph;
}

StatusOr<Graph> rewrite(const Graph& graph, Rule rule) {
  GraphEditor editor(graph);
  for (OperatorId id = 0; id < editor.end(); ++id) {
    while (!editor.removed(id) && rule(editor, id)) {
    }
  }
  return editor.finish();
}

}  // namespace tandem
