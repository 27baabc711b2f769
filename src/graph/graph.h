// A static DAG of operators over tensors of fixed shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator.h"
#include "graph/tensor.h"
#include "tandem/status.h"

namespace tandem {

// Operators are kept in a topological order: an operator's id is greater than the ids of the
// producers of its inputs. Passes build a new Graph rather than edit one in place.
class Graph {
 public:
  std::string name;

  // Adders return the new id. Names must be unique (checked by validate()); an empty name is
  // replaced by one made of the kind and the id.
  TensorId add_input(std::string name, DataType type, Dims dims, Layout layout = {});
  TensorId add_constant(std::string name, HostTensor value);
  TensorId add_constant(std::string name, std::shared_ptr<const HostTensor> value);
  // Adds an operator and its output tensor of the same name, whose dims and type come from the
  // shape rule (output_shape below). kResize, kCopy and kReshape need theirs given in `dims`, and
  // so does kPool where the importer resolved a ceil_mode.
  StatusOr<TensorId> add(std::string name, Attributes attributes, std::vector<TensorId> inputs,
                         Dims dims = {}, Layout layout = {});
  void mark_output(TensorId tensor) { outputs_.push_back(tensor); }

  const std::vector<Operator>& operators() const { return operators_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<TensorId>& inputs() const { return inputs_; }
  const std::vector<TensorId>& outputs() const { return outputs_; }
  const Operator& op(OperatorId id) const { return operators_[id]; }
  const Tensor& tensor(TensorId id) const { return tensors_[id]; }
  Tensor& mutable_tensor(TensorId id) { return tensors_[id]; }
  const Tensor& output_of(OperatorId id) const { return tensors_[operators_[id].output]; }
  const Tensor& input_of(OperatorId id, int index) const {
    return tensors_[operators_[id].inputs[index]];
  }
  bool is_output(TensorId id) const;

  // Every invariant stated in these headers; the first broken one, named.
  Status validate() const;

 private:
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> outputs_;
};

// The shape rule: output extents and type of an operator on these inputs, or why they do not fit.
// `given` is what the caller of Graph::add passed: checked where the rule can, used where extents
// cannot be derived (kReshape, kCopy, kResize, kPool with ceil_mode).
struct Shape {
  DataType type = DataType::kFloat32;
  Dims dims;
};
StatusOr<Shape> output_shape(const Attributes& attributes, const std::vector<const Tensor*>& inputs,
                             const Dims& given);

Work work_of(const Graph& graph, OperatorId op);

// How a tensor lies inside the memory of another.
struct AliasView {
  Dims strides;        // elements, per logical dimension of the alias
  int64_t offset = 0;  // elements from the source's element (0, 0, ...)
};

// Where the output of a kReshape or kCopy can be a view of its source, so that the operator need
// not run: a reshape whose view has the very strides of the output's own layout; and a copy that
// only drops or moves extents of 1, or is a slice of step 1, if kernels can tell the view from a
// tensor with memory of its own by its strides alone: it starts on a cache line, its innermost
// stride is 1, and all other dimensions make up rows of one pitch, which is a multiple of
// kLineFloats. Where kMatMul alone reads the output, it is enough that rows are whole
// (has_whole_rows()), and steps may be larger: so do the heads of attention lie in the rows of
// tokens. The source may itself be such a view (memory_strides()).
std::optional<AliasView> alias_strides(const Graph& graph, OperatorId op);

// Rows, along the last dimension, are in one piece each, and any two lie a multiple of kLineFloats
// apart: what kMatMul needs of its operands and its output.
bool has_whole_rows(const Dims& dims, const Dims& strides);

// The strides of a tensor in memory: its layout's, or those of the view that it is.
Dims memory_strides(const Graph& graph, TensorId tensor);

}  // namespace tandem
