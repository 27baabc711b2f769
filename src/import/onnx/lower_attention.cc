// Attention: softmax(scale * q * k^T + mask) * v.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "graph/passes/copies.h"
#include "import/onnx/lowerings.h"
#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

// Whatever needs keys and values of earlier runs, or numbers of tokens that are data.
Status expect_plain(Node& node) {
  if (node.has(4) || node.has(5)) return unsupported("keys and values of earlier runs");
  if (node.has(6)) return unsupported("numbers of tokens known at run time only");
  if (node.number("softcap", 0) != 0) return unsupported("softcap");
  for (int output : {1, 2, 3}) {
    if (node.wants(output)) return unsupported("another output than the result");
  }
  return {};
}

// [batch, tokens, heads * width] as [batch, heads, tokens, width]; what has rank 4 is that already.
StatusOr<Value> by_heads(Node& node, const Value& x, std::string_view heads_attribute,
                         const std::string& suffix) {
  if (x.rank() == 4) return x;
  const int64_t heads = node.integer(heads_attribute, 0);
  if (x.rank() != 3 || heads < 1 || x.dims[2] % heads != 0) {
    return invalid_argument(std::to_string(heads) + " heads of '" + x.name + "' " +
                            to_string(x.dims));
  }
  const Dims split = {x.dims[0], x.dims[1], heads, x.dims[2] / heads};
  TANDEM_ASSIGN_OR_RETURN(const Value y, node.reshape(x, split, suffix + "_split"));
  return node.emit(permutation_copy({0, 2, 1, 3}), {y}, {split[0], heads, split[1], split[3]},
                   suffix);
}

// Truth values say what is seen; the rest is minus infinity.
StatusOr<Value> as_summand(Node& node, const HostTensor& seen) {
  HostTensor mask(DataType::kFloat32, seen.dims);
  const int64_t columns = seen.dims.empty() ? 1 : seen.dims.back();
  int64_t hidden = 0;  // of the row so far
  for (int64_t i = 0; i < seen.size(); ++i) {
    const bool is_seen = seen.data<int64_t>()[i] != 0;
    mask.data<float>()[i] = is_seen ? 0 : -std::numeric_limits<float>::infinity();
    hidden = i % columns == 0 ? !is_seen : hidden + !is_seen;
    if (hidden == columns) return unsupported("a mask that hides everything from a query");
  }
  return node.constant(std::move(mask), "mask");
}

StatusOr<Value> add_masks(Node& node, Value scores) {
  const Dims dims = scores.dims;
  if (node.has(3)) {
    Value mask = node.value(3);
    if (mask.type != DataType::kFloat32) {
      if (!mask.constant) return unsupported("a mask of truth values known at run time only");
      TANDEM_ASSIGN_OR_RETURN(mask, as_summand(node, *mask.constant));
    }
    TANDEM_ASSIGN_OR_RETURN(scores, node.emit(BinaryAttributes{}, {scores, mask}, {}, "masked"));
  }
  if (node.integer("is_causal", 0) != 0) {
    TANDEM_RETURN_IF_ERROR(check_computed_dims({dims[2], dims[3]}));
    HostTensor seen(DataType::kInt64, {dims[2], dims[3]});
    for (int64_t i = 0; i < seen.size(); ++i) {
      seen.data<int64_t>()[i] = i % dims[3] <= i / dims[3];
    }
    TANDEM_ASSIGN_OR_RETURN(const Value mask, as_summand(node, seen));
    TANDEM_ASSIGN_OR_RETURN(scores, node.emit(BinaryAttributes{}, {scores, mask}, {}, "causal"));
  }
  if (scores.dims != dims) return invalid_argument("its mask does not broadcast to the scores");
  return scores;
}

Status lower_attention(Node& node) {
  TANDEM_RETURN_IF_ERROR(expect_plain(node));
  TANDEM_ASSIGN_OR_RETURN(const Value q, by_heads(node, node.value(0), "q_num_heads", "q"));
  TANDEM_ASSIGN_OR_RETURN(const Value k, by_heads(node, node.value(1), "kv_num_heads", "k"));
  TANDEM_ASSIGN_OR_RETURN(const Value v, by_heads(node, node.value(2), "kv_num_heads", "v"));
  if (q.dims[1] != k.dims[1] || q.dims[1] != v.dims[1]) {
    return unsupported(std::to_string(q.dims[1]) + " heads of queries for " +
                       std::to_string(k.dims[1]) + " of keys");
  }
  const float usual = 1 / std::sqrt(static_cast<float>(q.dims[3]));
  const MatMulAttributes product = {
      .transpose_a = false, .transpose_b = true, .alpha = node.number("scale", usual)};
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(product, {q, k}, {}, "scores"));
  TANDEM_ASSIGN_OR_RETURN(y, add_masks(node, y));
  TANDEM_ASSIGN_OR_RETURN(
      y, node.emit(SoftmaxAttributes{.axis = 3, .log = false}, {y}, {}, "softmax"));
  TANDEM_ASSIGN_OR_RETURN(y, node.emit(MatMulAttributes{}, {y, v}));
  if (node.value(0).rank() == 3) {
    const Dims rows = {y.dims[0], y.dims[2], y.dims[1], y.dims[3]};
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(permutation_copy({0, 2, 1, 3}), {y}, rows, "rows"));
    TANDEM_ASSIGN_OR_RETURN(y, node.reshape(y, {rows[0], rows[1], rows[2] * rows[3]}, "output"));
  }
  node.set_output(0, std::move(y));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"Attention", 25, lower_attention, 3},
};

}  // namespace

std::span<const Lowering> attention_lowerings() { return kLowerings; }

}  // namespace tandem
