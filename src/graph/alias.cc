// Tensors that are views of others.
#include <algorithm>

#include "graph/graph.h"
#include "graph/reshape_groups.h"

namespace tandem {
namespace {

// Strides may differ where the extent is 1.
bool same_where_it_matters(const Dims& dims, const Dims& a, const Dims& b) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

// The strides under which source memory shows the output of a reshape, if there are any.
std::optional<Dims> reshaped_strides(const Dims& source, const Dims& source_strides,
                                     const Dims& output) {
  Dims strides(output.size(), 1);
  for (const ReshapeGroup& group : reshape_groups(source, output)) {
    // The dimensions of the group must lie in memory like a single one.
    int64_t innermost = 1;
    int64_t expected = 0;  // 0: no dimension of extent > 1 seen yet
    for (size_t s = group.source_end; s-- > group.source_begin;) {
      if (source[s] == 1) continue;
      if (expected == 0) {
        innermost = source_strides[s];
      } else if (source_strides[s] != expected) {
        return std::nullopt;
      }
      expected = source_strides[s] * source[s];
    }
    int64_t stride = innermost;
    for (size_t o = group.output_end; o-- > group.output_begin;) {
      strides[o] = stride;
      stride *= output[o];
    }
  }
  return strides;
}

// Rows of one pitch, in the order of the layout that the tensor would have by itself.
bool has_uniform_rows(const Tensor& tensor, const Dims& strides) {
  const Dims own = strides_of(tensor.dims, tensor.layout);
  std::vector<size_t> outward;
  for (size_t d = 0; d < own.size(); ++d) {
    if (tensor.dims[d] > 1) outward.push_back(d);
  }
  std::sort(outward.begin(), outward.end(), [&](size_t a, size_t b) { return own[a] < own[b]; });
  if (outward.empty()) return true;
  if (strides[outward[0]] != 1) return false;
  if (outward.size() == 1) return true;
  if (!tensor.layout.padded || strides[outward[1]] % kLineFloats != 0) return false;
  for (size_t i = 2; i < outward.size(); ++i) {
    const size_t inner = outward[i - 1];
    if (strides[outward[i]] != strides[inner] * tensor.dims[inner]) return false;
  }
  return true;
}

// Batched matrix products walk over any strides between rows, as long as each row is in one piece
// and starts on a line: the heads of attention need not be brought together.
bool only_matmuls_read(const Graph& graph, TensorId id) {
  const std::vector<OperatorId>& consumers = graph.tensor(id).consumers;
  return !graph.is_output(id) && std::all_of(consumers.begin(), consumers.end(), [&](OperatorId c) {
    return graph.op(c).kind() == OperatorKind::kMatMul;
  });
}

std::optional<AliasView> copy_alias(const Graph& graph, OperatorId id, const Dims& source_strides) {
  const auto& copy = graph.op(id).as<CopyAttributes>();
  const Tensor& output = graph.output_of(id);
  const Dims own = strides_of(output.dims, output.layout);
  AliasView view;
  for (size_t a = 0; a < source_strides.size(); ++a) {
    view.offset += copy.start[a] * source_strides[a];
  }
  if (view.offset % kLineFloats != 0) return std::nullopt;
  bool steps = false;
  for (size_t d = 0; d < output.dims.size(); ++d) {
    if (output.dims[d] == 1) {
      view.strides.push_back(own[d]);
      continue;
    }
    if (copy.source_axis[d] == kNone || copy.step[d] < 1) return std::nullopt;
    steps = steps || copy.step[d] > 1;
    view.strides.push_back(source_strides[copy.source_axis[d]] * copy.step[d]);
  }
  const bool plain = same_where_it_matters(output.dims, view.strides, own) ||
                     has_uniform_rows(output, view.strides);
  if ((plain && !steps) || (has_whole_rows(output.dims, view.strides) &&
                            only_matmuls_read(graph, graph.op(id).output))) {
    return view;
  }
  return std::nullopt;
}

}  // namespace

bool has_whole_rows(const Dims& dims, const Dims& strides) {
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool innermost = d + 1 == dims.size();
    if (dims[d] > 1 && (innermost ? strides[d] != 1 : strides[d] % kLineFloats != 0)) return false;
  }
  return true;
}

std::optional<AliasView> alias_strides(const Graph& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  if (op.kind() != OperatorKind::kReshape && op.kind() != OperatorKind::kCopy) return std::nullopt;
  const Tensor& source = graph.input_of(id, 0);
  const Tensor& output = graph.output_of(id);
  const Dims source_strides = memory_strides(graph, op.inputs[0]);
  if (op.kind() == OperatorKind::kCopy) {
    return copy_alias(graph, id, source_strides);
  }
  const std::optional<Dims> strides = reshaped_strides(source.dims, source_strides, output.dims);
  const Dims own = strides_of(output.dims, output.layout);
  if (!strides || !same_where_it_matters(output.dims, *strides, own)) return std::nullopt;
  return AliasView{own, 0};
}

Dims memory_strides(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  if (tensor.producer != kNone) {
    if (std::optional<AliasView> view = alias_strides(graph, tensor.producer)) return view->strides;
  }
  return strides_of(tensor.dims, tensor.layout);
}

}  // namespace tandem
