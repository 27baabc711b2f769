// Frameworks whose images are channels-last write a permutation before and behind every operator on
// images. Here permutations move towards each other until they meet, and are gone.
#include <algorithm>
#include <utility>

#include "graph/passes/copies.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace tandem {
namespace {

using Permutation = std::vector<int>;

// N, C, H, W seen as N, H, W, C, and back.
const Permutation& to_last() {
  static const Permutation permutation = {0, 2, 3, 1};
  return permutation;
}
const Permutation& to_first() {
  static const Permutation permutation = {0, 3, 1, 2};
  return permutation;
}

Dims permuted(const Dims& dims, const Permutation& permutation) {
  Dims result;
  for (int axis : permutation) result.push_back(dims[axis]);
  return result;
}

// x of t = x permuted so. Where all but one extent are 1 that is a reshape.
std::optional<TensorId> permuted_from(const GraphEditor& graph, TensorId t,
                                      const Permutation& permutation) {
  const Dims& dims = graph.tensor(t).dims;
  if (graph.tensor(t).producer == kNone || dims.size() != 4) return std::nullopt;
  const Operator& op = graph.producer(t);
  const Dims& from = graph.tensor(op.inputs[0]).dims;
  if (from.size() != 4 || permuted(from, permutation) != dims) return std::nullopt;
  const CopyAttributes whole = permutation_copy(permutation);
  if (const auto* copy = std::get_if<CopyAttributes>(&op.attributes)) {
    if (copy->source_axis != whole.source_axis || copy->step != whole.step ||
        copy->start != whole.start) {
      return std::nullopt;
    }
    return op.inputs[0];
  }
  if (op.kind() == OperatorKind::kReshape && keeps_order(whole, from, dims)) return op.inputs[0];
  return std::nullopt;
}

bool is_image_operator(OperatorKind kind) {
  return kind == OperatorKind::kConv || kind == OperatorKind::kConvTranspose ||
         kind == OperatorKind::kPool || kind == OperatorKind::kResize;
}

bool is_pointwise(OperatorKind kind) {
  return kind == OperatorKind::kUnary || kind == OperatorKind::kBinary;
}

// True for what an operator on images makes, also behind others that keep the order of axes.
// (Permutations have other uses: keys of an attention, for example, are transposed so.)
bool comes_from_image(const GraphEditor& graph, TensorId t) {
  while (graph.tensor(t).producer != kNone) {
    const Operator& op = graph.producer(t);
    if (is_image_operator(op.kind())) return true;
    if (!is_pointwise(op.kind()) && op.kind() != OperatorKind::kPad &&
        op.kind() != OperatorKind::kConcat) {
      return false;
    }
    t = op.inputs[0];
  }
  return false;
}

// The image that t shows with its channels last.
std::optional<TensorId> image_behind(const GraphEditor& graph, TensorId t) {
  const auto image = permuted_from(graph, t, to_last());
  return image && comes_from_image(graph, *image) ? image : std::nullopt;
}

// Whether channels_first() can make something of an operand of N, H, W, C.
bool can_be_first(const GraphEditor& graph, TensorId t) {
  const Dims& dims = graph.tensor(t).dims;
  if (image_behind(graph, t)) return true;
  if (is_constant(graph, t)) return dims.size() <= 4;
  return dims.size() == 4 &&
         keeps_order(permutation_copy(to_first()), dims, permuted(dims, to_first()));
}

// The operand as it broadcasts to N, C, H, W.
StatusOr<TensorId> channels_first(GraphEditor& graph, TensorId t) {
  if (const auto image = image_behind(graph, t)) return *image;
  const std::string name = graph.tensor(t).name;
  Dims dims = graph.tensor(t).dims;
  if (is_constant(graph, t) && graph.tensor(t).value->size() == 1) return t;
  if (dims.size() != 4) {
    dims.insert(dims.begin(), 4 - dims.size(), 1);
    TANDEM_ASSIGN_OR_RETURN(t, graph.add(name + "/rank", ReshapeAttributes{}, {t}, dims));
  }
  return graph.add(name + "/channels_first", permutation_copy(to_first()), {t},
                   permuted(dims, to_first()));
}

// Attributes of an operator on N, H, W, C, for N, C, H, W.
Attributes first_attributes(const Operator& op) {
  Attributes attributes = op.attributes;
  if (auto* pad = std::get_if<PadAttributes>(&attributes)) {
    pad->before = permuted(pad->before, to_first());
    pad->after = permuted(pad->after, to_first());
  }
  if (auto* concat = std::get_if<ConcatAttributes>(&attributes)) {
    concat->axis = to_last()[concat->axis];
  }
  if (auto* reduce = std::get_if<ReduceAttributes>(&attributes)) {
    for (int& axis : reduce->axes) axis = to_last()[axis];
    std::sort(reduce->axes.begin(), reduce->axes.end());
  }
  return attributes;
}

// Of a reduction that drops axes: whether those that stay have the same order either way.
bool keeps_rest_in_order(const ReduceAttributes& reduce) {
  std::vector<int> rest;
  for (int axis = 0; axis < 4; ++axis) {
    const bool reduced =
        std::find(reduce.axes.begin(), reduce.axes.end(), axis) != reduce.axes.end();
    if (!reduced) rest.push_back(to_last()[axis]);
  }
  return std::is_sorted(rest.begin(), rest.end());
}

// An operator on permuted images becomes one on the images, and the permutation follows it.
bool sink(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto* reduce = std::get_if<ReduceAttributes>(&op.attributes);
  const bool drops_axes = reduce && !reduce->keep_dims;
  if (!is_pointwise(op.kind()) && op.kind() != OperatorKind::kPad &&
      op.kind() != OperatorKind::kConcat && !reduce) {
    return false;
  }
  const bool any = std::any_of(op.inputs.begin(), op.inputs.end(),
                               [&](TensorId t) { return image_behind(graph, t).has_value(); });
  const bool all = std::all_of(op.inputs.begin(), op.inputs.end(),
                               [&](TensorId t) { return can_be_first(graph, t); });
  const Dims dims = graph.tensor(op.output).dims;
  if (!any || !all || (drops_axes ? !keeps_rest_in_order(*reduce) : dims.size() != 4)) return false;
  const std::string name = op.name;
  const Attributes attributes = first_attributes(op);
  std::vector<TensorId> inputs;
  for (const TensorId input : std::vector<TensorId>(op.inputs)) {
    const auto first = channels_first(graph, input);
    if (!first.ok()) return false;
    inputs.push_back(*first);
  }
  if (drops_axes) {
    graph.replace(id, name, attributes, inputs);
    return true;
  }
  const auto y = graph.add(name, attributes, inputs);
  if (!y.ok()) return false;
  graph.replace(id, name + "/channels_last", permutation_copy(to_last()), {*y});
  return true;
}

// Whether t is made from an input of the graph, by arithmetic with constants alone.
bool is_prepared_input(const GraphEditor& graph, TensorId t) {
  while (graph.tensor(t).kind == TensorKind::kActivation) {
    const Operator& op = graph.producer(t);
    const Dims& dims = graph.tensor(op.inputs[0]).dims;
    if (!is_pointwise(op.kind()) || !graph.used_once(t) || dims != graph.tensor(t).dims) {
      return false;
    }
    if (op.inputs.size() > 1 && !is_constant(graph, op.inputs[1])) return false;
    t = op.inputs[0];
  }
  return graph.tensor(t).kind == TensorKind::kInput;
}

// A picture that is prepared with its channels last is permuted first, and prepared then: the
// permutation of an input is a mere view of it.
bool hoist(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto source = permuted_from(graph, op.output, to_first());
  if (!source || graph.tensor(*source).kind != TensorKind::kActivation ||
      !is_prepared_input(graph, *source)) {
    return false;
  }
  const Operator& prepare = graph.producer(*source);
  const std::string name = prepare.name;
  const Attributes attributes = prepare.attributes;
  std::vector<TensorId> inputs = prepare.inputs;
  for (TensorId& input : inputs) {
    const auto first = channels_first(graph, input);
    if (!first.ok()) return false;
    input = *first;
  }
  graph.replace(id, name, attributes, inputs);
  return true;
}

bool move_permutation(GraphEditor& graph, OperatorId id) {
  return sink(graph, id) || hoist(graph, id);
}

// The mean of an image's channels is a global pooling, for which lanes have faster kernels.
bool pool_mean(GraphEditor& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  const auto* reduce = std::get_if<ReduceAttributes>(&op.attributes);
  if (!reduce || reduce->kind != ReduceAttributes::Kind::kMean ||
      reduce->axes != std::vector<int>{2, 3} || !comes_from_image(graph, op.inputs[0])) {
    return false;
  }
  const TensorId image = op.inputs[0];
  const Dims& dims = graph.tensor(image).dims;
  if (dims.size() != 4) return false;
  PoolAttributes pool;
  pool.kind = PoolAttributes::Kind::kAverage;
  pool.kernel = {dims[2], dims[3]};
  const std::string name = op.name;
  if (reduce->keep_dims) {
    graph.replace(id, name, pool, {image});
    return true;
  }
  const auto pooled = graph.add(name, pool, {image});
  if (!pooled.ok()) return false;
  graph.replace(id, name + "/flat", ReshapeAttributes{}, {*pooled});
  return true;
}

}  // namespace

StatusOr<Graph> move_permutations(const Graph& graph) {
  TANDEM_ASSIGN_OR_RETURN(const Graph moved, rewrite(graph, move_permutation));
  TANDEM_ASSIGN_OR_RETURN(const Graph folded, fold_constants(moved));
  return rewrite(folded, pool_mean);
}

}  // namespace tandem
