// Gemm and MatMul.
#include <cmath>
#include <utility>

#include "graph/passes/copies.h"
#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

HostTensor scaled(const HostTensor& tensor, float factor) {
  HostTensor result = tensor;
  for (int64_t i = 0; i < result.size(); ++i) result.data<float>()[i] *= factor;
  return result;
}

StatusOr<Value> transpose(Node& node, const Value& x, std::string_view suffix) {
  return node.emit(permutation_copy({1, 0}), {x}, {x.dims[1], x.dims[0]}, suffix);
}

StatusOr<Value> scale(Node& node, const Value& x, float factor, std::string_view suffix) {
  if (factor == 1) return x;
  const std::string name = std::string(suffix) + "_factor";
  if (x.constant) return node.constant(scaled(*x.constant, factor), suffix);
  const Value constant = node.constant(HostTensor::floats({}, {factor}), name);
  return node.emit(BinaryAttributes{.kind = BinaryAttributes::Kind::kMul, .activation = {}},
                   {x, constant}, {}, suffix);
}

// The addend of a Gemm as the bias of a linear layer, if it is the same for all rows.
bool is_bias(const Value& c, int64_t columns) {
  if (!c.constant || c.type != DataType::kFloat32) return false;
  for (size_t d = 0; d + 1 < c.dims.size(); ++d) {
    if (c.dims[d] != 1) return false;
  }
  return c.dims.empty() || c.dims.back() == 1 || c.dims.back() == columns;
}

Value as_bias(Node& node, const Value& c, float beta, int64_t columns) {
  HostTensor bias(DataType::kFloat32, {columns});
  const float* from = c.constant->data<float>();
  for (int64_t i = 0; i < columns; ++i) {
    bias.data<float>()[i] = beta * (c.constant->size() == 1 ? from[0] : from[i]);
  }
  return node.constant(std::move(bias), "bias");
}

struct Gemm {
  float alpha = 1;
  float beta = 1;
  bool transpose_a = false;
  bool transpose_b = false;
};

// The product of a Gemm by weights that are known. Sets `added` if the addend went into it.
StatusOr<Value> emit_linear(Node& node, const Gemm& gemm, bool& added) {
  Value a = node.value(0);
  Value b = node.value(1);
  if (gemm.transpose_a) {
    TANDEM_ASSIGN_OR_RETURN(a, transpose(node, a, "transpose_a"));
  }
  if (gemm.transpose_b) {
    TANDEM_ASSIGN_OR_RETURN(b, transpose(node, b, "weights"));
  }
  TANDEM_ASSIGN_OR_RETURN(b, scale(node, b, gemm.alpha, "scaled_weights"));
  std::vector<Value> operands = {a, b};
  added = node.has(2) && is_bias(node.value(2), b.dims[1]);
  if (added) operands.push_back(as_bias(node, node.value(2), gemm.beta, b.dims[1]));
  return node.emit(LinearAttributes{.has_bias = added, .has_residual = false, .activation = {}},
                   operands);
}

Status lower_gemm(Node& node) {
  const Gemm gemm = {.alpha = node.number("alpha", 1),
                     .beta = node.number("beta", 1),
                     .transpose_a = node.integer("transA", 0) != 0,
                     .transpose_b = node.integer("transB", 0) != 0};
  const Value& a = node.value(0);
  const Value& b = node.value(1);
  if (a.rank() != 2 || b.rank() != 2) {
    return invalid_argument("its operands are " + to_string(a.dims) + " and " + to_string(b.dims));
  }
  bool added = false;
  Value y;
  if (b.constant && b.type == DataType::kFloat32) {
    TANDEM_ASSIGN_OR_RETURN(y, emit_linear(node, gemm, added));
  } else {
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(MatMulAttributes{.transpose_a = gemm.transpose_a,
                                                          .transpose_b = gemm.transpose_b,
                                                          .alpha = gemm.alpha},
                                         {a, b}));
  }
  if (node.has(2) && !added) {
    TANDEM_ASSIGN_OR_RETURN(const Value c, scale(node, node.value(2), gemm.beta, "addend"));
    const Dims product = y.dims;
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(BinaryAttributes{}, {y, c}, {}, "add"));
    if (y.dims != product) return invalid_argument("the addend does not broadcast to the product");
  }
  node.set_output(0, std::move(y));
  return {};
}

// Numpy's rule: a vector is a row on the left and a column on the right, and its extent of 1 is
// gone from the result; leading dimensions broadcast.
Status lower_matmul(Node& node) {
  Value a = node.value(0);
  Value b = node.value(1);
  if (a.rank() == 0 || b.rank() == 0) return invalid_argument("an operand is a scalar");
  const bool row = a.rank() == 1;
  const bool column = b.rank() == 1;
  Dims dims_a = row ? Dims{1, a.dims[0]} : a.dims;
  Dims dims_b = column ? Dims{b.dims[0], 1} : b.dims;
  const size_t rank = std::max(dims_a.size(), dims_b.size());
  dims_a.insert(dims_a.begin(), rank - dims_a.size(), 1);
  dims_b.insert(dims_b.begin(), rank - dims_b.size(), 1);
  TANDEM_ASSIGN_OR_RETURN(a, node.reshape(a, dims_a, "left"));
  TANDEM_ASSIGN_OR_RETURN(b, node.reshape(b, dims_b, "right"));
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(MatMulAttributes{}, {a, b}));
  Dims dims = y.dims;
  if (column) dims.pop_back();
  if (row) dims.erase(dims.end() - (column ? 1 : 2));
  TANDEM_ASSIGN_OR_RETURN(y, node.reshape(y, dims, "output"));
  node.set_output(0, std::move(y));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"Gemm", 13, lower_gemm, 2},
    {"MatMul", 13, lower_matmul, 2},
};

}  // namespace

std::span<const Lowering> matmul_lowerings() { return kLowerings; }

}  // namespace tandem
