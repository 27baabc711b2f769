// The shape rule of every operator kind.
#include <algorithm>
#include <string>

#include "graph/graph.h"

namespace tandem {
namespace {

using Inputs = std::vector<const Tensor*>;

Status expect_inputs(const Inputs& inputs, size_t count) {
  if (inputs.size() == count) return {};
  return invalid_argument("takes " + std::to_string(count) + " inputs, not " +
                          std::to_string(inputs.size()));
}

Status expect_rank(const Tensor& tensor, size_t rank) {
  if (tensor.dims.size() == rank) return {};
  return invalid_argument(tensor.name + " must have rank " + std::to_string(rank) + ", but is " +
                          to_string(tensor.dims));
}

Status expect_dims(const Tensor& tensor, const Dims& dims) {
  if (tensor.dims == dims) return {};
  return invalid_argument(tensor.name + " must be " + to_string(dims) + ", but is " +
                          to_string(tensor.dims));
}

Status expect_axis(int axis, size_t rank) {
  if (axis >= 0 && static_cast<size_t>(axis) < rank) return {};
  return invalid_argument("axis " + std::to_string(axis) + " of a tensor of rank " +
                          std::to_string(rank));
}

Status expect_window(const Size2& kernel, const Size2& stride, const Size2& dilation,
                     const Pads& pads) {
  for (int i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1) {
      return invalid_argument("kernel, stride and dilation must be positive");
    }
  }
  if (*std::min_element(pads.begin(), pads.end()) < 0) {
    return invalid_argument("pads must not be negative");
  }
  return {};
}

// Positions that a window of `kernel` elements takes on `extent` padded ones; `ceil`: the last may
// reach past the end.
int64_t window_positions(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation,
                         bool ceil) {
  const int64_t room = extent - dilation * (kernel - 1) - 1;
  if (room < 0) return ceil && room > -stride ? 1 : 0;
  return (room + (ceil ? stride - 1 : 0)) / stride + 1;
}

// Bias and residual, which conv and linear take alike. `next` is the first input behind w.
Status expect_epilogue(const Inputs& inputs, size_t next, bool has_bias, bool has_residual,
                       int64_t channels, const Dims& output) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, next + has_bias + has_residual));
  if (has_bias) TANDEM_RETURN_IF_ERROR(expect_dims(*inputs[next], {channels}));
  if (has_residual) TANDEM_RETURN_IF_ERROR(expect_dims(*inputs[next + has_bias], output));
  return {};
}

// Numpy's rule, aligned at the last dimension.
StatusOr<Dims> broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t extent_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      return invalid_argument(to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    result[rank - 1 - i] = std::max(extent_a, extent_b);
  }
  return result;
}

// What convolutions and transposed ones ask alike.
template <typename Attributes>
Status expect_conv(const Attributes& conv, const Inputs& inputs) {
  if (inputs.size() < 2) return invalid_argument("takes at least 2 inputs");
  TANDEM_RETURN_IF_ERROR(expect_rank(*inputs[0], 4));
  TANDEM_RETURN_IF_ERROR(expect_rank(*inputs[1], 4));
  return expect_window(conv.kernel, conv.stride, conv.dilation, conv.pads);
}

StatusOr<Dims> dims_of(const ConvAttributes& conv, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_conv(conv, inputs));
  const Tensor& x = *inputs[0];
  const Tensor& w = *inputs[1];
  const int64_t m = w.dims[0];
  if (conv.groups < 1 || m % conv.groups != 0 || x.dims[1] % conv.groups != 0) {
    return invalid_argument(std::to_string(conv.groups) + " groups do not divide the channels");
  }
  TANDEM_RETURN_IF_ERROR(
      expect_dims(w, {m, x.dims[1] / conv.groups, conv.kernel[0], conv.kernel[1]}));
  Dims dims = {x.dims[0], m};
  for (int i = 0; i < 2; ++i) {
    dims.push_back(window_positions(x.dims[2 + i] + conv.pads[i] + conv.pads[2 + i], conv.kernel[i],
                                    conv.stride[i], conv.dilation[i], false));
  }
  TANDEM_RETURN_IF_ERROR(expect_epilogue(inputs, 2, conv.has_bias, conv.has_residual, m, dims));
  return dims;
}

StatusOr<Dims> dims_of(const ConvTransposeAttributes& conv, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_conv(conv, inputs));
  const Tensor& x = *inputs[0];
  const Tensor& w = *inputs[1];
  const int64_t c = x.dims[1];
  if (conv.groups < 1 || c % conv.groups != 0) {
    return invalid_argument(std::to_string(conv.groups) + " groups do not divide the channels");
  }
  TANDEM_RETURN_IF_ERROR(expect_dims(w, {c, w.dims[1], conv.kernel[0], conv.kernel[1]}));
  const int64_t m = w.dims[1] * conv.groups;
  Dims dims = {x.dims[0], m};
  for (int i = 0; i < 2; ++i) {
    if (conv.output_padding[i] < 0) return invalid_argument("output padding is negative");
    dims.push_back(conv.stride[i] * (x.dims[2 + i] - 1) + conv.output_padding[i] +
                   conv.dilation[i] * (conv.kernel[i] - 1) + 1 - conv.pads[i] - conv.pads[2 + i]);
  }
  TANDEM_RETURN_IF_ERROR(expect_epilogue(inputs, 2, conv.has_bias, false, m, dims));
  return dims;
}

StatusOr<Dims> dims_of(const LinearAttributes& linear, const Inputs& inputs, const Dims&) {
  if (inputs.size() < 2) return invalid_argument("takes at least 2 inputs");
  const Tensor& x = *inputs[0];
  const Tensor& w = *inputs[1];
  if (x.dims.empty()) return invalid_argument(x.name + " is a scalar");
  TANDEM_RETURN_IF_ERROR(expect_rank(w, 2));
  TANDEM_RETURN_IF_ERROR(expect_dims(w, {x.dims.back(), w.dims[1]}));
  Dims dims = x.dims;
  dims.back() = w.dims[1];
  TANDEM_RETURN_IF_ERROR(
      expect_epilogue(inputs, 2, linear.has_bias, linear.has_residual, w.dims[1], dims));
  return dims;
}

StatusOr<Dims> dims_of(const MatMulAttributes& matmul, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 2));
  const Dims& a = inputs[0]->dims;
  const Dims& b = inputs[1]->dims;
  const size_t rank = a.size();
  if (rank < 2 || b.size() != rank) {
    return invalid_argument("ranks must be equal and at least 2, but the operands are " +
                            to_string(a) + " and " + to_string(b));
  }
  const int64_t k_a = a[matmul.transpose_a ? rank - 2 : rank - 1];
  const int64_t k_b = b[matmul.transpose_b ? rank - 1 : rank - 2];
  if (k_a != k_b) {
    return invalid_argument("inner extents " + std::to_string(k_a) + " and " + std::to_string(k_b) +
                            " differ");
  }
  TANDEM_ASSIGN_OR_RETURN(Dims dims,
                          broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2)));
  dims.push_back(a[matmul.transpose_a ? rank - 1 : rank - 2]);
  dims.push_back(b[matmul.transpose_b ? rank - 2 : rank - 1]);
  return dims;
}

StatusOr<Dims> dims_of(const PoolAttributes& pool, const Inputs& inputs, const Dims& given) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  const Tensor& x = *inputs[0];
  TANDEM_RETURN_IF_ERROR(expect_rank(x, 4));
  TANDEM_RETURN_IF_ERROR(expect_window(pool.kernel, pool.stride, pool.dilation, pool.pads));
  Dims floor = {x.dims[0], x.dims[1]};
  Dims ceil = floor;
  for (int i = 0; i < 2; ++i) {
    const int64_t extent = x.dims[2 + i] + pool.pads[i] + pool.pads[2 + i];
    floor.push_back(
        window_positions(extent, pool.kernel[i], pool.stride[i], pool.dilation[i], false));
    ceil.push_back(
        window_positions(extent, pool.kernel[i], pool.stride[i], pool.dilation[i], true));
  }
  if (given.empty()) return floor;
  if (given.size() != 4) return invalid_argument("the output must have rank 4");
  for (int d = 0; d < 4; ++d) {
    if (given[d] != floor[d] && given[d] != ceil[d]) {
      return invalid_argument("the output must lie between " + to_string(floor) + " and " +
                              to_string(ceil));
    }
  }
  return given;
}

StatusOr<Dims> dims_of(const ReduceAttributes& reduce, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  const Dims& x = inputs[0]->dims;
  Dims dims;
  size_t next = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    if (next < reduce.axes.size() && reduce.axes[next] == static_cast<int>(d)) {
      ++next;
      if (reduce.keep_dims) dims.push_back(1);
    } else {
      dims.push_back(x[d]);
    }
  }
  if (next != reduce.axes.size()) {
    return invalid_argument("axes must be ascending and exist in " + to_string(x));
  }
  return dims;
}

StatusOr<Dims> dims_of(const SoftmaxAttributes& softmax, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  TANDEM_RETURN_IF_ERROR(expect_axis(softmax.axis, inputs[0]->dims.size()));
  return inputs[0]->dims;
}

StatusOr<Dims> dims_of(const LayerNormAttributes&, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 3));
  const Tensor& x = *inputs[0];
  if (x.dims.empty()) return invalid_argument(x.name + " is a scalar");
  TANDEM_RETURN_IF_ERROR(expect_dims(*inputs[1], {x.dims.back()}));
  TANDEM_RETURN_IF_ERROR(expect_dims(*inputs[2], {x.dims.back()}));
  return x.dims;
}

StatusOr<Dims> dims_of(const UnaryAttributes&, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  return inputs[0]->dims;
}

StatusOr<Dims> dims_of(const BinaryAttributes&, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 2));
  return broadcast(inputs[0]->dims, inputs[1]->dims);
}

StatusOr<Dims> dims_of(const ConcatAttributes& concat, const Inputs& inputs, const Dims&) {
  if (inputs.empty()) return invalid_argument("takes at least 1 input");
  Dims dims = inputs[0]->dims;
  TANDEM_RETURN_IF_ERROR(expect_axis(concat.axis, dims.size()));
  dims[concat.axis] = 0;
  for (const Tensor* input : inputs) {
    Dims expected = inputs[0]->dims;
    if (input->dims.size() == dims.size()) expected[concat.axis] = input->dims[concat.axis];
    TANDEM_RETURN_IF_ERROR(expect_dims(*input, expected));
    dims[concat.axis] += input->dims[concat.axis];
  }
  return dims;
}

StatusOr<Dims> dims_of(const CopyAttributes& copy, const Inputs& inputs, const Dims& given) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  const Dims& x = inputs[0]->dims;
  if (copy.source_axis.size() != given.size() || copy.step.size() != given.size()) {
    return invalid_argument("source_axis and step need an entry per dimension of the output");
  }
  if (copy.start.size() != x.size()) {
    return invalid_argument("start needs an entry per dimension of " + inputs[0]->name);
  }
  // First and last element read along each axis of x.
  Dims first = copy.start;
  Dims last = copy.start;
  for (size_t d = 0; d < given.size(); ++d) {
    const int a = copy.source_axis[d];
    if (a == kNone) continue;
    TANDEM_RETURN_IF_ERROR(expect_axis(a, x.size()));
    const int64_t reach = copy.step[d] * (given[d] - 1);
    (reach < 0 ? first : last)[a] += reach;
  }
  for (size_t a = 0; a < x.size(); ++a) {
    if (first[a] < 0 || last[a] >= x[a]) {
      return invalid_argument("reads outside of axis " + std::to_string(a) + " of " + to_string(x));
    }
  }
  return given;
}

StatusOr<Dims> dims_of(const ReshapeAttributes&, const Inputs& inputs, const Dims& given) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  if (element_count(given) != element_count(inputs[0]->dims)) {
    return invalid_argument(to_string(inputs[0]->dims) + " cannot become " + to_string(given));
  }
  return given;
}

StatusOr<Dims> dims_of(const GatherAttributes& gather, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 2));
  const Dims& x = inputs[0]->dims;
  const Dims& indices = inputs[1]->dims;
  TANDEM_RETURN_IF_ERROR(expect_axis(gather.axis, x.size()));
  Dims dims(x.begin(), x.begin() + gather.axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), x.begin() + gather.axis + 1, x.end());
  return dims;
}

StatusOr<Dims> dims_of(const PadAttributes& pad, const Inputs& inputs, const Dims&) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  Dims dims = inputs[0]->dims;
  if (pad.before.size() != dims.size() || pad.after.size() != dims.size()) {
    return invalid_argument("pads need an entry per dimension of " + to_string(dims));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t most = std::max(pad.before[d], pad.after[d]);
    if (std::min(pad.before[d], pad.after[d]) < 0) {
      return invalid_argument("pads must not be negative");
    }
    if (pad.mode == PadAttributes::Mode::kReflect && most >= dims[d]) {
      return invalid_argument("a reflection cannot pad " + std::to_string(dims[d]) +
                              " elements by " + std::to_string(most));
    }
    dims[d] += pad.before[d] + pad.after[d];
  }
  return dims;
}

StatusOr<Dims> dims_of(const ResizeAttributes& resize, const Inputs& inputs, const Dims& given) {
  TANDEM_RETURN_IF_ERROR(expect_inputs(inputs, 1));
  const Tensor& x = *inputs[0];
  TANDEM_RETURN_IF_ERROR(expect_rank(x, 4));
  if (given.size() != 4 || given[0] != x.dims[0] || given[1] != x.dims[1]) {
    return invalid_argument("changes height and width only, but " + to_string(x.dims) +
                            " should become " + to_string(given));
  }
  if (!(resize.scale[0] > 0 && resize.scale[1] > 0)) {
    return invalid_argument("scales must be positive");
  }
  return given;
}

// True where the kind moves elements without looking at them.
bool moves_only(const Attributes& attributes) {
  return std::holds_alternative<ConcatAttributes>(attributes) ||
         std::holds_alternative<CopyAttributes>(attributes) ||
         std::holds_alternative<ReshapeAttributes>(attributes) ||
         std::holds_alternative<GatherAttributes>(attributes);
}

bool derives_all_extents(const Attributes& attributes) {
  return !std::holds_alternative<CopyAttributes>(attributes) &&
         !std::holds_alternative<ReshapeAttributes>(attributes) &&
         !std::holds_alternative<ResizeAttributes>(attributes) &&
         !std::holds_alternative<PoolAttributes>(attributes);
}

Status check_types(const Attributes& attributes, const Inputs& inputs) {
  const bool gathers = std::holds_alternative<GatherAttributes>(attributes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DataType type = inputs[i]->type;
    DataType expected = moves_only(attributes) ? inputs[0]->type : DataType::kFloat32;
    if (gathers && i == 1) expected = DataType::kInt64;
    if (type != expected) {
      return unsupported(inputs[i]->name + " is " + to_string(type) + " where " +
                         to_string(expected) + " is needed");
    }
  }
  return {};
}

}  // namespace

StatusOr<Shape> output_shape(const Attributes& attributes, const Inputs& inputs,
                             const Dims& given) {
  TANDEM_RETURN_IF_ERROR(check_types(attributes, inputs));
  TANDEM_ASSIGN_OR_RETURN(
      Dims dims, std::visit([&](const auto& a) { return dims_of(a, inputs, given); }, attributes));
  if (derives_all_extents(attributes) && !given.empty() && given != dims) {
    return invalid_argument("the output is " + to_string(dims) + ", not " + to_string(given));
  }
  for (int64_t extent : dims) {
    if (extent < 1) return unsupported("the output has no elements: " + to_string(dims));
  }
  return Shape{inputs[0]->type, std::move(dims)};
}

}  // namespace tandem
