// Reductions over axes.
#include <algorithm>
#include <numeric>
#include <utility>

#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

using Kind = ReduceAttributes::Kind;

struct Row {
  std::string_view op_type;
  Kind kind;
};

constexpr Row kRows[] = {
    {"ReduceL1", Kind::kSum},    {"ReduceL2", Kind::kL2},         {"ReduceMax", Kind::kMax},
    {"ReduceMean", Kind::kMean}, {"ReduceMin", Kind::kMin},       {"ReduceProd", Kind::kProd},
    {"ReduceSum", Kind::kSum},   {"ReduceSumSquare", Kind::kSum},
};

// `x` instead of the node's input, whose axes are meant.
Status reduce(Node& node, const Value& x) {
  TANDEM_ASSIGN_OR_RETURN(const auto listed, node.integers_from("axes", 1));
  const bool none = !listed || listed->empty();
  ReduceAttributes attributes;
  attributes.kind = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) {
                      return row.op_type == node.type();
                    })->kind;
  attributes.keep_dims = node.integer("keepdims", 1) != 0;
  if (none && node.integer("noop_with_empty_axes", 0) != 0) {
    node.set_output(0, x);
    return {};
  }
  if (none) {
    attributes.axes.resize(static_cast<size_t>(x.rank()));
    std::iota(attributes.axes.begin(), attributes.axes.end(), 0);
  } else {
    TANDEM_ASSIGN_OR_RETURN(attributes.axes, node.axes(*listed, x.rank()));
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(attributes, {x}));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_reduce(Node& node) { return reduce(node, node.value(0)); }

Status lower_reduce_l1(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Value x,
                          node.emit(UnaryAttributes{{Function::kAbs}}, {node.value(0)}, {}, "abs"));
  return reduce(node, x);
}

Status lower_reduce_sum_square(Node& node) {
  const BinaryAttributes multiply = {.kind = BinaryAttributes::Kind::kMul, .activation = {}};
  TANDEM_ASSIGN_OR_RETURN(const Value x,
                          node.emit(multiply, {node.value(0), node.value(0)}, {}, "square"));
  return reduce(node, x);
}

constexpr Lowering kLowerings[] = {
    {"ReduceL1", 18, lower_reduce_l1}, {"ReduceL2", 18, lower_reduce},
    {"ReduceMax", 20, lower_reduce},   {"ReduceMean", 18, lower_reduce},
    {"ReduceMin", 20, lower_reduce},   {"ReduceProd", 18, lower_reduce},
    {"ReduceSum", 13, lower_reduce},   {"ReduceSumSquare", 18, lower_reduce_sum_square},
};

}  // namespace

std::span<const Lowering> reduction_lowerings() { return kLowerings; }

}  // namespace tandem
