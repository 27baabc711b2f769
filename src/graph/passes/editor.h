// A graph being rewritten.
#pragma once

#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace tandem {

// A copy of a graph in which operators can be replaced, removed and added. Ids of the original stay
// valid; new ones follow. An operator goes away by itself as soon as nothing uses its output.
class GraphEditor {
 public:
  explicit GraphEditor(const Graph& graph);

  OperatorId end() const { return static_cast<OperatorId>(operators_.size()); }
  bool removed(OperatorId id) const { return removed_[id]; }
  const Operator& op(OperatorId id) const { return operators_[id]; }
  const Tensor& tensor(TensorId id) const { return tensors_[id]; }
  const std::vector<TensorId>& outputs() const { return outputs_; }
  bool is_output(TensorId id) const;
  // Operators that read the tensor, once for each time that they do.
  const std::vector<OperatorId>& readers(TensorId id) const { return readers_[id]; }
  // True if the tensor is read once, and is no output of the graph: then its producer and the
  // reader can become one operator.
  bool used_once(TensorId id) const { return readers_[id].size() == 1 && !is_output(id); }
  // The operator that makes the tensor, if it is of the kind that has these attributes.
  template <typename A>
  const A* made_by(TensorId id) const {
    const OperatorId producer = tensors_[id].producer;
    return producer == kNone ? nullptr : std::get_if<A>(&operators_[producer].attributes);
  }
  const Operator& producer(TensorId id) const { return operators_[tensors_[id].producer]; }

  TensorId add_constant(const std::string& name, HostTensor value);
  // The same value as constant `id`, in another layout.
  TensorId copy_constant(TensorId id, Layout layout);
  // Names of operators are made unique by finish(). `dims` as for Graph::add().
  StatusOr<TensorId> add(std::string name, Attributes attributes, std::vector<TensorId> inputs,
                         const Dims& dims = {}, Layout layout = {});
  // The operator computes its output in another way. All inputs must be older than it, or made by
  // add().
  void replace(OperatorId id, std::string name, Attributes attributes,
               std::vector<TensorId> inputs);
  void set_input(OperatorId id, int index, TensorId tensor);
  // Whatever used the operator's output uses `tensor`, which equals it, instead. False, and nothing
  // done, if that would cost an output of the graph its name.
  bool bypass(OperatorId id, TensorId tensor);
  void set_layout(TensorId id, Layout layout) { tensors_[id].layout = layout; }
  // Makes `tensor` output number `index` of the graph, under the name of the one that was; that one
  // is called `old_name` now.
  void set_output(size_t index, TensorId tensor, const std::string& old_name);

  StatusOr<Graph> finish() const;

 private:
  std::string unique(const std::string& name);
  void add_readers(OperatorId id);
  void drop_reader(TensorId tensor, OperatorId reader);
  void remove_if_unused(TensorId tensor);

  std::string name_;
  // Deques, so that references stay valid when something is added.
  std::deque<Operator> operators_;
  std::deque<Tensor> tensors_;  // their lists of consumers are not kept
  std::vector<bool> removed_;
  std::vector<std::vector<OperatorId>> readers_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> outputs_;
  std::unordered_set<std::string> tensor_names_;
};

// Looks at one operator, and may rewrite it together with those before it. Returns whether it did.
using Rule = bool (*)(GraphEditor&, OperatorId);

// Applies the rule to every operator in order, as often as it finds something to do.
StatusOr<Graph> rewrite(const Graph& graph, Rule rule);

}  // namespace tandem
