#include <algorithm>
#include <utility>

#include "graph/passes/copies.h"
#include "graph/passes/evaluate.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

// A scalar factor behind the product.
bool fuse_factor_behind(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto scale = scaled(graph, op.output);
  if (!scale || !graph.used_once(scale->x)) return false;
  const auto* product = graph.made_by<MatMulAttributes>(scale->x);
  if (!product) return false;
  MatMulAttributes matmul = *product;
  matmul.alpha *= scale->c;
  graph.replace(id, graph.producer(scale->x).name, matmul, graph.producer(scale->x).inputs);
  return true;
}

// A scalar factor of an operand.
bool fuse_factor_before(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (op.kind() != OperatorKind::kMatMul) return false;
  for (int i : {0, 1}) {
    const auto scale = scaled(graph, op.inputs[i]);
    if (!scale || !graph.used_once(op.inputs[i])) continue;
    MatMulAttributes matmul = op.as<MatMulAttributes>();
    matmul.alpha *= scale->c;
    std::vector<TensorId> inputs = op.inputs;
    inputs[i] = scale->x;
    graph.replace(id, op.name, matmul, inputs);
    return true;
  }
  return false;
}

// Where a copy into an operand ends with a transposition, the product transposes instead: then the
// copy walks along the last dimension of its source, or is not needed at all.
bool fuse_transposition(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  // Linear layers do not transpose.
  if (op.kind() != OperatorKind::kMatMul || is_constant(graph, op.inputs[1])) return false;
  for (int i : {0, 1}) {
    const TensorId operand = op.inputs[i];
    const auto* found = graph.made_by<CopyAttributes>(operand);
    if (!found || !graph.used_once(operand)) continue;
    const TensorId source = graph.producer(operand).inputs[0];
    const size_t rank = found->source_axis.size();
    const int last = static_cast<int>(graph.tensor(source).dims.size()) - 1;
    if (found->source_axis[rank - 2] != last || found->source_axis[rank - 1] == last) continue;
    CopyAttributes copy = *found;
    Dims dims = graph.tensor(operand).dims;
    std::swap(copy.source_axis[rank - 1], copy.source_axis[rank - 2]);
    std::swap(copy.step[rank - 1], copy.step[rank - 2]);
    std::swap(dims[rank - 1], dims[rank - 2]);
    MatMulAttributes matmul = op.as<MatMulAttributes>();
    bool& transpose = i == 0 ? matmul.transpose_a : matmul.transpose_b;
    transpose = !transpose;
    std::vector<TensorId> inputs = op.inputs;
    const bool is_reshape = keeps_order(copy, graph.tensor(source).dims, dims);
    if (is_reshape && dims == graph.tensor(source).dims) {
      inputs[i] = source;
    } else {
      const Attributes rest = is_reshape ? Attributes(ReshapeAttributes{}) : Attributes(copy);
      const auto walked = graph.add(graph.producer(operand).name, rest, {source}, dims);
      if (!walked.ok()) return false;
      inputs[i] = *walked;
    }
    graph.replace(id, op.name, matmul, inputs);
    return true;
  }
  return false;
}

// True if the operand is a matrix that is the same for the whole batch.
bool is_matrix(const Tensor& tensor) {
  return tensor.dims.size() >= 2 && std::all_of(tensor.dims.begin(), tensor.dims.end() - 2,
                                                [](int64_t extent) { return extent == 1; });
}

HostTensor transposed(const Tensor& matrix) {
  const Dims dims = {matrix.dims[1], matrix.dims[0]};
  return evaluate(permutation_copy({1, 0}), {&matrix}, {DataType::kFloat32, dims});
}

// The constant operand as weights [K, N], with the product's factor in them.
TensorId weights_of(GraphEditor& graph, TensorId id, const MatMulAttributes& matmul) {
  const Tensor& tensor = graph.tensor(id);
  if (tensor.dims.size() == 2 && !matmul.transpose_b && matmul.alpha == 1) return id;
  HostTensor weights = *tensor.value;
  weights.dims.assign(tensor.dims.end() - 2, tensor.dims.end());
  if (matmul.transpose_b) {
    Tensor matrix;
    matrix.dims = weights.dims;
    matrix.value = std::make_shared<const HostTensor>(std::move(weights));
    weights = transposed(matrix);
  }
  for (int64_t i = 0; i < weights.size(); ++i) weights.data<float>()[i] *= matmul.alpha;
  return graph.add_constant(tensor.name, std::move(weights));
}

bool matmul_to_linear(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (op.kind() != OperatorKind::kMatMul) return false;
  const MatMulAttributes& matmul = op.as<MatMulAttributes>();
  if (matmul.transpose_a || is_constant(graph, op.inputs[0]) || !is_constant(graph, op.inputs[1]) ||
      !is_matrix(graph.tensor(op.inputs[1]))) {
    return false;
  }
  const TensorId weights = weights_of(graph, op.inputs[1], matmul);
  graph.replace(id, op.name, LinearAttributes{}, {op.inputs[0], weights});
  return true;
}

// A reshape of the rows that a linear layer makes becomes one of the rows that it takes, where it
// is not between the layer and what may be fused into it.
bool hoist_reshape(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (op.kind() != OperatorKind::kReshape) return false;
  const TensorId y = op.inputs[0];
  const auto* linear = graph.made_by<LinearAttributes>(y);
  Dims dims = graph.tensor(op.output).dims;
  if (!linear || linear->has_residual || !graph.used_once(y) || dims.empty() ||
      dims.back() != graph.tensor(y).dims.back()) {
    return false;
  }
  const Operator& producer = graph.producer(y);
  std::vector<TensorId> inputs = producer.inputs;
  dims.back() = graph.tensor(inputs[0]).dims.back();
  const auto rows = graph.add(op.name, ReshapeAttributes{}, {inputs[0]}, dims);
  if (!rows.ok()) return false;
  inputs[0] = *rows;
  graph.replace(id, producer.name, *linear, inputs);
  return true;
}

bool fuse_matmul(GraphEditor& graph, OperatorId id) {
  return fuse_factor_behind(graph, id) || fuse_factor_before(graph, id) ||
         fuse_transposition(graph, id) || matmul_to_linear(graph, id) || hoist_reshape(graph, id);
}

}  // namespace

StatusOr<Graph> fuse_matmuls(const Graph& graph) { return rewrite(graph, fuse_matmul); }

}  // namespace tandem
