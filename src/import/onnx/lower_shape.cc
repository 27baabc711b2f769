// Operators that give elements other coordinates: reshapes and permutations.
#include <algorithm>
#include <utility>

#include "graph/passes/copies.h"
#include "import/onnx/lowerings.h"
#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

Status lower_transpose(Node& node) {
  const Value& x = node.value(0);
  std::vector<int64_t> order(x.dims.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(order.size() - 1 - d);
  if (const auto stated = node.integers("perm")) order = *stated;
  if (order.size() != x.dims.size()) return invalid_argument("perm does not fit the input");
  TANDEM_RETURN_IF_ERROR(node.axes(order, x.rank()).status());  // none may be missing
  std::vector<int> permutation;
  Dims dims;
  for (int64_t axis : order) {
    TANDEM_ASSIGN_OR_RETURN(const int positive, node.axis(axis, x.rank()));
    permutation.push_back(positive);
    dims.push_back(x.dims[positive]);
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(permutation_copy(permutation), {x}, dims));
  node.set_output(0, std::move(y));
  return {};
}

Status reshape_to(Node& node, const Dims& dims) {
  TANDEM_RETURN_IF_ERROR(check_dims(dims));
  const Value& x = node.value(0);
  if (element_count(dims) != element_count(x.dims)) {
    return invalid_argument(to_string(x.dims) + " cannot become " + to_string(dims));
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, node.reshape(x, dims, ""));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_reshape(Node& node) {
  const Dims& from = node.value(0).dims;
  TANDEM_ASSIGN_OR_RETURN(const auto stated, node.integers_from("shape", 1));
  if (!stated) return invalid_argument("it has no shape");
  Dims dims = *stated;
  const bool copy_zeros = node.integer("allowzero", 0) == 0;
  int64_t known = 1;
  int64_t* unknown = nullptr;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0 && copy_zeros) {
      if (d >= from.size()) return invalid_argument("a 0 in the shape stands for no dimension");
      dims[d] = from[d];
    }
    if (dims[d] == -1) {
      if (unknown) return invalid_argument("two extents of the shape are -1");
      unknown = &dims[d];
    } else if (__builtin_mul_overflow(known, dims[d], &known)) {
      return invalid_argument("the shape is too large: " + to_string(dims));
    }
  }
  if (unknown) {
    if (known <= 0 || element_count(from) % known != 0) {
      return invalid_argument(to_string(from) + " cannot become " + to_string(dims));
    }
    *unknown = element_count(from) / known;
  }
  return reshape_to(node, dims);
}

Status lower_flatten(Node& node) {
  const Dims& from = node.value(0).dims;
  const int64_t rank = node.value(0).rank();
  int64_t axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank) return invalid_argument("axis " + std::to_string(axis));
  if (axis < 0) axis += rank;
  return reshape_to(node, {element_count(Dims(from.begin(), from.begin() + axis)),
                           element_count(Dims(from.begin() + axis, from.end()))});
}

Status lower_squeeze(Node& node) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const auto listed, node.integers_from("axes", 1));
  Dims dims;
  if (listed) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<int> axes, node.axes(*listed, x.rank()));
    for (int d = 0; d < x.rank(); ++d) {
      if (!std::binary_search(axes.begin(), axes.end(), d)) {
        dims.push_back(x.dims[d]);
      } else if (x.dims[d] != 1) {
        return invalid_argument("axis " + std::to_string(d) + " of " + to_string(x.dims) +
                                " is not 1");
      }
    }
  } else {
    std::copy_if(x.dims.begin(), x.dims.end(), std::back_inserter(dims),
                 [](int64_t extent) { return extent != 1; });
  }
  return reshape_to(node, dims);
}

Status lower_unsqueeze(Node& node) {
  const Value& x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(const auto listed, node.integers_from("axes", 1));
  if (!listed) return invalid_argument("it has no axes");
  const int rank = x.rank() + static_cast<int>(listed->size());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int> axes, node.axes(*listed, rank));
  Dims dims = x.dims;
  for (int axis : axes) dims.insert(dims.begin() + axis, 1);
  return reshape_to(node, dims);
}

// x viewed as `view`, its dimensions permuted, viewed as `dims`.
Status rearrange(Node& node, const Dims& view, const std::vector<int>& permutation,
                 const Dims& dims) {
  TANDEM_ASSIGN_OR_RETURN(Value y, node.reshape(node.value(0), view, "view"));
  Dims permuted;
  for (int axis : permutation) permuted.push_back(view[axis]);
  TANDEM_ASSIGN_OR_RETURN(y, node.emit(permutation_copy(permutation), {y}, permuted));
  TANDEM_ASSIGN_OR_RETURN(y, node.reshape(y, dims, "output"));
  node.set_output(0, std::move(y));
  return {};
}

StatusOr<int64_t> block_size(Node& node) {
  const int64_t block = node.integer("blocksize", 0);
  if (block < 1 || block > 1024) return invalid_argument("blocksize is " + std::to_string(block));
  if (node.value(0).rank() != 4) {
    return invalid_argument("its input is " + to_string(node.value(0).dims));
  }
  return block;
}

Status lower_depth_to_space(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t block, block_size(node));
  const Dims& x = node.value(0).dims;
  const std::string mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return invalid_argument("mode is '" + mode + "'");
  if (x[1] % (block * block) != 0) return invalid_argument("its input is " + to_string(x));
  const int64_t depth = x[1] / (block * block);
  const Dims dims = {x[0], depth, x[2] * block, x[3] * block};
  if (mode == "DCR") {
    return rearrange(node, {x[0], block, block, depth, x[2], x[3]}, {0, 3, 4, 1, 5, 2}, dims);
  }
  return rearrange(node, {x[0], depth, block, block, x[2], x[3]}, {0, 1, 4, 2, 5, 3}, dims);
}

Status lower_space_to_depth(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t block, block_size(node));
  const Dims& x = node.value(0).dims;
  const std::string mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return invalid_argument("mode is '" + mode + "'");
  if (x[2] % block != 0 || x[3] % block != 0) {
    return invalid_argument("its input is " + to_string(x));
  }
  const std::vector<int> order =
      mode == "DCR" ? std::vector<int>{0, 3, 5, 1, 2, 4} : std::vector<int>{0, 1, 3, 5, 2, 4};
  return rearrange(node, {x[0], x[1], x[2] / block, block, x[3] / block, block}, order,
                   {x[0], x[1] * block * block, x[2] / block, x[3] / block});
}

constexpr Lowering kLowerings[] = {
    {"DepthToSpace", 28, lower_depth_to_space},
    {"Flatten", 25, lower_flatten},
    {"Reshape", 25, lower_reshape},
    {"SpaceToDepth", 28, lower_space_to_depth},
    {"Squeeze", 25, lower_squeeze},
    {"Transpose", 25, lower_transpose},
    {"Unsqueeze", 25, lower_unsqueeze},
};

}  // namespace

std::span<const Lowering> shape_lowerings() { return kLowerings; }

}  // namespace tandem
