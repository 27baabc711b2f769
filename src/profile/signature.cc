#include "profile/signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem {
namespace {

std::string text_of(const Activation& activation) {
  return fmt::format("{}({},{})", to_string(activation.function), activation.alpha,
                     activation.beta);
}

std::string text_of(const ConvAttributes& a) {
  return fmt::format("k{} s{} d{} p{} g{} {}{} {}", fmt::join(a.kernel, "x"),
                     fmt::join(a.stride, "x"), fmt::join(a.dilation, "x"), fmt::join(a.pads, "x"),
                     a.groups, a.has_bias ? "b" : "", a.has_residual ? "r" : "",
                     text_of(a.activation));
}

std::string text_of(const ConvTransposeAttributes& a) {
  return fmt::format("k{} s{} d{} p{} o{} g{} {} {}", fmt::join(a.kernel, "x"),
                     fmt::join(a.stride, "x"), fmt::join(a.dilation, "x"), fmt::join(a.pads, "x"),
                     fmt::join(a.output_padding, "x"), a.groups, a.has_bias ? "b" : "",
                     text_of(a.activation));
}

std::string text_of(const LinearAttributes& a) {
  return fmt::format("{}{} {}", a.has_bias ? "b" : "", a.has_residual ? "r" : "",
                     text_of(a.activation));
}

std::string text_of(const MatMulAttributes& a) {
  return fmt::format("{}{} {}", a.transpose_a ? "t" : "n", a.transpose_b ? "t" : "n", a.alpha);
}

std::string text_of(const PoolAttributes& a) {
  return fmt::format("{} k{} s{} d{} p{} {}", a.kind == PoolAttributes::Kind::kMax ? "max" : "avg",
                     fmt::join(a.kernel, "x"), fmt::join(a.stride, "x"), fmt::join(a.dilation, "x"),
                     fmt::join(a.pads, "x"), a.count_include_pad ? "i" : "");
}

std::string text_of(const ReduceAttributes& a) {
  return fmt::format("{} {}", static_cast<int>(a.kind), fmt::join(a.axes, ","));
}

std::string text_of(const SoftmaxAttributes& a) {
  return fmt::format("{}{}", a.axis, a.log ? " log" : "");
}

std::string text_of(const LayerNormAttributes&) { return ""; }
std::string text_of(const UnaryAttributes& a) { return text_of(a.function); }

std::string text_of(const BinaryAttributes& a) {
  return fmt::format("{} {}", static_cast<int>(a.kind), text_of(a.activation));
}

std::string text_of(const ConcatAttributes& a) { return fmt::format("{}", a.axis); }

std::string text_of(const CopyAttributes& a) {
  return fmt::format("{} step {} start {}", fmt::join(a.source_axis, ","), fmt::join(a.step, ","),
                     fmt::join(a.start, ","));
}

std::string text_of(const ReshapeAttributes&) { return ""; }
std::string text_of(const GatherAttributes& a) { return fmt::format("{}", a.axis); }

std::string text_of(const PadAttributes& a) {
  return fmt::format("{} {} {}", static_cast<int>(a.mode), fmt::join(a.before, ","),
                     fmt::join(a.after, ","));
}

std::string text_of(const ResizeAttributes& a) {
  return fmt::format("{} {} {} {}", static_cast<int>(a.mode), static_cast<int>(a.coordinates),
                     static_cast<int>(a.nearest), fmt::join(a.scale, "x"));
}

std::string text_of(const Tensor& tensor, const Dims& strides) {
  return fmt::format("{}[{}]/{}", tensor.type == DataType::kInt64 ? "i" : "",
                     fmt::join(tensor.dims, ","), fmt::join(strides, ","));
}

}  // namespace

std::string signature(const Graph& graph, const Placement& placement, OperatorId id) {
  const Operator& op = graph.op(id);
  std::string text = fmt::format(
      "{} {}", to_string(op.kind()),
      std::visit([](const auto& attributes) { return text_of(attributes); }, op.attributes));
  for (TensorId input : op.inputs) {
    text += " " + text_of(graph.tensor(input), placement.tensors[input].strides);
  }
  return text + " -> " + text_of(graph.tensor(op.output), placement.tensors[op.output].strides);
}

}  // namespace tandem
