#include "graph/work.h"

namespace tandem {
namespace {

double region_bytes(const Graph& graph, TensorId tensor, const Region& region) {
  if (is_empty(region)) return 0;
  double elements = 1;
  for (const Range& range : region) elements *= static_cast<double>(range.size());
  return elements * static_cast<double>(element_size(graph.tensor(tensor).type));
}

double flops_per_element(const ConvAttributes& conv, const Graph& graph, OperatorId op) {
  const Dims& w = graph.input_of(op, 1).dims;
  return 2.0 * static_cast<double>(w[1] * conv.kernel[0] * conv.kernel[1]) + conv.has_bias +
         conv.has_residual;
}

double flops_per_element(const ConvTransposeAttributes& conv, const Graph& graph, OperatorId op) {
  const double inputs = static_cast<double>(element_count(graph.input_of(op, 0).dims));
  const Dims& w = graph.input_of(op, 1).dims;
  const double outputs = static_cast<double>(element_count(graph.output_of(op).dims));
  return 2.0 * inputs * static_cast<double>(w[1] * w[2] * w[3]) / outputs + conv.has_bias;
}

double flops_per_element(const LinearAttributes& linear, const Graph& graph, OperatorId op) {
  return 2.0 * static_cast<double>(graph.input_of(op, 1).dims[0]) + linear.has_bias +
         linear.has_residual;
}

double flops_per_element(const MatMulAttributes& matmul, const Graph& graph, OperatorId op) {
  const Dims& a = graph.input_of(op, 0).dims;
  return 2.0 * static_cast<double>(matmul.transpose_a ? a[a.size() - 2] : a.back());
}

double flops_per_element(const PoolAttributes& pool, const Graph&, OperatorId) {
  return static_cast<double>(pool.kernel[0] * pool.kernel[1]);
}

double flops_per_element(const ReduceAttributes&, const Graph& graph, OperatorId op) {
  return static_cast<double>(element_count(graph.input_of(op, 0).dims)) /
         static_cast<double>(element_count(graph.output_of(op).dims));
}

// Maximum, difference, exponential, sum, quotient.
double flops_per_element(const SoftmaxAttributes&, const Graph&, OperatorId) { return 5; }

// Mean 1, variance 3, normalisation 2, scale and bias 2.
double flops_per_element(const LayerNormAttributes&, const Graph&, OperatorId) { return 8; }

double flops_per_element(const UnaryAttributes&, const Graph&, OperatorId) { return 1; }
double flops_per_element(const BinaryAttributes&, const Graph&, OperatorId) { return 1; }

double flops_per_element(const ResizeAttributes& resize, const Graph&, OperatorId) {
  switch (resize.mode) {
    case ResizeAttributes::Mode::kNearest:
      return 0;
    case ResizeAttributes::Mode::kLinear:
      return 2 * 4;
    case ResizeAttributes::Mode::kCubic:
      return 2 * 16;
  }
  return 0;
}

// The rest moves elements.
template <typename AnyOther>
double flops_per_element(const AnyOther&, const Graph&, OperatorId) {
  return 0;
}

Work work_of_region(const Graph& graph, OperatorId id, const Region& output) {
  const Operator& op = graph.op(id);
  const double bytes = region_bytes(graph, op.output, output);
  const double elements = bytes / static_cast<double>(element_size(graph.output_of(id).type));
  Work work;
  work.flops = elements * std::visit([&](const auto& a) { return flops_per_element(a, graph, id); },
                                     op.attributes);
  work.bytes = bytes + input_bytes(graph, id, output);
  return work;
}

}  // namespace

double input_bytes(const Graph& graph, OperatorId id, const Region& output) {
  const Operator& op = graph.op(id);
  // A gather reads as much as it writes, whatever the size of its table.
  if (op.kind() == OperatorKind::kGather) {
    return region_bytes(graph, op.output, output) +
           region_bytes(graph, op.inputs[1], input_region(graph, id, 1, output));
  }
  double bytes = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const int index = static_cast<int>(i);
    bytes += region_bytes(graph, op.inputs[i], input_region(graph, id, index, output));
  }
  return bytes;
}

Work work_of(const Graph& graph, const Slice& slice) {
  return work_of_region(graph, slice.op, output_region(graph, slice));
}

Work work_of(const Graph& graph, OperatorId op) {
  return work_of_region(graph, op, whole_region(graph.output_of(op).dims));
}

}  // namespace tandem
