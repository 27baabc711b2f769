// Operators between those that networks have.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "graph/reshape_groups.h"
#include "profile/lone_operator.h"

namespace tandem {
namespace {

// Rows that linear layers have: single ones, sequences, batches.
constexpr double kMostRows = 512;
constexpr double kOneRowShare = 0.2;
// Operators beyond this are none that networks have.
constexpr double kMostElements = 64e6;

double factor(ProfileRandom& random) { return std::exp2(uniform(random, -1, 1)); }

int64_t scaled(int64_t extent, double by, int64_t multiple, int64_t least = 1) {
  const double units = static_cast<double>(extent) * by / static_cast<double>(multiple);
  return std::max<int64_t>(least, std::max<int64_t>(1, std::llround(units)) * multiple);
}

// Channels or features.
int64_t scaled_channels(int64_t extent, ProfileRandom& random) {
  // Pictures and single masks stay what they are: kernels treat them apart.
  if (extent <= 4) return extent;
  const double by = factor(random);
  const double kind = uniform(random, 0, 1);
  return scaled(extent, by, kind < 0.6 ? 8 : kind < 0.8 ? 16 : 1);
}

// Height and width, together, of an image that windows of `least` slide over.
void scale_image(Dims& dims, Size2 least, ProfileRandom& random) {
  const double by = factor(random);
  for (size_t i = 0; i < 2; ++i) {
    if (dims[2 + i] > 1) dims[2 + i] = scaled(dims[2 + i], by, 1, least[i]);
  }
}

Size2 window(Size2 kernel, Size2 dilation) {
  return {dilation[0] * (kernel[0] - 1) + 1, dilation[1] * (kernel[1] - 1) + 1};
}

template <typename A>
bool scale(const A&, LoneOperator&, ProfileRandom&) {
  return false;
}

bool scale(const ConvAttributes& given, LoneOperator& op, ProfileRandom& random) {
  ConvAttributes conv = given;
  Dims& x = op.inputs[0].dims;
  Dims& w = op.inputs[1].dims;
  if (conv.groups == 1) {
    x[1] = w[1] = scaled_channels(x[1], random);
    w[0] = scaled_channels(w[0], random);
  } else if (w[1] == 1 && w[0] == conv.groups) {
    conv.groups = w[0] = x[1] = scaled_channels(x[1], random);
  } else {
    w[1] = scaled(w[1], factor(random), 1);
    w[0] = scaled(w[0] / conv.groups, factor(random), 1) * conv.groups;
    x[1] = w[1] * conv.groups;
  }
  scale_image(x, window(conv.kernel, conv.dilation), random);
  if (conv.has_bias) op.inputs[2].dims = {w[0]};
  op.attributes = conv;
  return true;
}

bool scale(const ConvTransposeAttributes& conv, LoneOperator& op, ProfileRandom& random) {
  if (conv.groups != 1) return false;
  Dims& x = op.inputs[0].dims;
  Dims& w = op.inputs[1].dims;
  x[1] = w[0] = scaled_channels(x[1], random);
  w[1] = scaled_channels(w[1], random);
  scale_image(x, {1, 1}, random);
  if (conv.has_bias) op.inputs[2].dims = {w[1]};
  return true;
}

bool scale(const LinearAttributes& linear, LoneOperator& op, ProfileRandom& random) {
  Dims& x = op.inputs[0].dims;
  Dims& w = op.inputs[1].dims;
  if (x.size() < 2) return false;
  const bool one = uniform(random, 0, 1) < kOneRowShare;
  const double rows = one ? 1 : std::exp2(uniform(random, 0, std::log2(kMostRows)));
  for (size_t d = 0; d + 2 < x.size(); ++d) x[d] = 1;
  x[x.size() - 2] = std::llround(rows);
  x.back() = w[0] = scaled_channels(w[0], random);
  w[1] = scaled_channels(w[1], random);
  if (linear.has_bias) op.inputs[2].dims = {w[1]};
  return true;
}

bool scale(const MatMulAttributes& matmul, LoneOperator& op, ProfileRandom& random) {
  Dims& a = op.inputs[0].dims;
  Dims& b = op.inputs[1].dims;
  const size_t last = a.size() - 1;
  const int64_t k = scaled_channels(matmul.transpose_a ? a[last - 1] : a[last], random);
  const int64_t m = scaled(matmul.transpose_a ? a[last] : a[last - 1], factor(random), 1);
  const int64_t n = scaled(matmul.transpose_b ? b[last - 1] : b[last], factor(random), 1);
  a[last - 1] = matmul.transpose_a ? k : m;
  a[last] = matmul.transpose_a ? m : k;
  b[last - 1] = matmul.transpose_b ? n : k;
  b[last] = matmul.transpose_b ? k : n;
  const double by = factor(random);
  for (size_t d = 0; d + 2 < a.size(); ++d) {
    if (a[d] == b[d] && a[d] > 1) a[d] = b[d] = scaled(a[d], by, 1);
  }
  return true;
}

bool scale(const PoolAttributes& given, LoneOperator& op, ProfileRandom& random) {
  PoolAttributes pool = given;
  Dims& x = op.inputs[0].dims;
  const bool global = pool.kernel == Size2{x[2], x[3]};
  x[1] = scaled_channels(x[1], random);
  scale_image(x, global ? Size2{1, 1} : window(pool.kernel, pool.dilation), random);
  if (global) pool.kernel = {x[2], x[3]};
  op.attributes = pool;
  return true;
}

// Every dimension but the first of images, the batch.
bool scale_any(LoneOperator& op, ProfileRandom& random) {
  Dims& x = op.inputs[0].dims;
  const bool image = x.size() == 4 && op.inputs[0].layout.order == Order::kChannelsLast;
  if (image) {
    x[1] = scaled_channels(x[1], random);
    scale_image(x, {1, 1}, random);
    return true;
  }
  for (size_t d = 0; d < x.size(); ++d) {
    if (x[d] > 1)
      x[d] = d + 1 == x.size() ? scaled_channels(x[d], random) : scaled(x[d], factor(random), 1);
  }
  return !x.empty();
}

bool scale(const ReduceAttributes&, LoneOperator& op, ProfileRandom& random) {
  return scale_any(op, random);
}
bool scale(const SoftmaxAttributes&, LoneOperator& op, ProfileRandom& random) {
  return scale_any(op, random);
}
bool scale(const UnaryAttributes&, LoneOperator& op, ProfileRandom& random) {
  return scale_any(op, random);
}
bool scale(const LayerNormAttributes&, LoneOperator& op, ProfileRandom& random) {
  if (!scale_any(op, random)) return false;
  op.inputs[1].dims = op.inputs[2].dims = {op.inputs[0].dims.back()};
  return true;
}

// Operands keep what they broadcast.
bool scale(const BinaryAttributes&, LoneOperator& op, ProfileRandom& random) {
  LoneOperator whole = op;
  whole.inputs[0].dims = op.dims;
  whole.inputs[0].layout = op.layout;
  if (!scale_any(whole, random)) return false;
  const Dims& to = whole.inputs[0].dims;
  for (Operand& input : op.inputs) {
    const size_t offset = op.dims.size() - input.dims.size();
    for (size_t d = 0; d < input.dims.size(); ++d) {
      if (input.dims[d] == op.dims[offset + d]) input.dims[d] = to[offset + d];
    }
  }
  return true;
}

bool scale(const ConcatAttributes& concat, LoneOperator& op, ProfileRandom& random) {
  const auto axis = static_cast<size_t>(concat.axis);
  LoneOperator first = op;
  if (!scale_any(first, random)) return false;
  for (Operand& input : op.inputs) {
    for (size_t d = 0; d < input.dims.size(); ++d) {
      input.dims[d] = d == axis ? scaled_channels(input.dims[d], random) : first.inputs[0].dims[d];
    }
  }
  return true;
}

// Every element, in another order: transpositions, and conversions between layouts.
bool permutes(const CopyAttributes& copy, const Dims& from, const Dims& to) {
  const std::set<int> axes(copy.source_axis.begin(), copy.source_axis.end());
  if (copy.source_axis.size() != from.size() || axes.size() != from.size() ||
      axes.contains(kNone)) {
    return false;
  }
  for (size_t d = 0; d < to.size(); ++d) {
    const auto axis = static_cast<size_t>(copy.source_axis[d]);
    if (copy.step[d] != 1 || copy.start[axis] != 0 || to[d] != from[axis]) return false;
  }
  return true;
}

// The part [start, start + count) of an extent: all of it by one factor.
void scale_part(int64_t* extent, int64_t* start, int64_t* count, ProfileRandom& random) {
  const double by = factor(random);
  const auto part = [by](int64_t n) { return std::llround(static_cast<double>(n) * by); };
  const int64_t rest = part(*extent - *start - *count);
  *start = part(*start);
  *count = scaled(*count, by, 1);
  *extent = *start + *count + rest;
}

// Parts of a tensor, and dimensions that fall apart into two.
bool scale_walk(CopyAttributes copy, LoneOperator& op, ProfileRandom& random) {
  Dims& x = op.inputs[0].dims;
  bool changed = false;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    std::vector<size_t> walkers;  // output dimensions along the axis, the inner one last
    for (size_t d = 0; d < op.dims.size(); ++d) {
      if (copy.source_axis[d] == static_cast<int>(axis)) walkers.push_back(d);
    }
    std::sort(walkers.begin(), walkers.end(),
              [&](size_t a, size_t b) { return copy.step[a] > copy.step[b]; });
    if (walkers.empty() || x[axis] == 1 || copy.step[walkers.back()] != 1) continue;
    int64_t& count = op.dims[walkers.back()];
    if (count <= 4) continue;  // coordinates, and the like
    const bool splits = walkers.size() == 2 && copy.start[axis] == 0 &&
                        copy.step[walkers.front()] == count &&
                        op.dims[walkers.front()] * count == x[axis];
    if (splits) {
      count = copy.step[walkers.front()] = scaled(count, factor(random), 1);
      x[axis] = op.dims[walkers.front()] * count;
    } else if (walkers.size() == 1) {
      scale_part(&x[axis], &copy.start[axis], &count, random);
    } else {
      continue;
    }
    changed = true;
  }
  op.attributes = std::move(copy);
  return changed;
}

bool scale(const CopyAttributes& copy, LoneOperator& op, ProfileRandom& random) {
  Dims& x = op.inputs[0].dims;
  if (!permutes(copy, x, op.dims)) return scale_walk(copy, op, random);
  if (!scale_any(op, random)) return false;
  for (size_t d = 0; d < op.dims.size(); ++d) {
    op.dims[d] = x[static_cast<size_t>(copy.source_axis[d])];
  }
  return true;
}

// Dimensions that become one, or one that becomes several, whatever stays as it is between them.
bool scale(const ReshapeAttributes&, LoneOperator& op, ProfileRandom& random) {
  Dims& x = op.inputs[0].dims;
  Dims& y = op.dims;
  for (const ReshapeGroup& group : reshape_groups(x, y)) {
    const bool merges = group.output_end - group.output_begin == 1;
    if (!merges && group.source_end - group.source_begin != 1) return false;
    Dims& many = merges ? x : y;
    Dims& one = merges ? y : x;
    const size_t begin = merges ? group.source_begin : group.output_begin;
    const size_t end = merges ? group.source_end : group.output_end;
    int64_t product = 1;
    for (size_t d = begin; d < end; ++d) {
      if (many[d] > 4) many[d] = scaled(many[d], factor(random), 1);
      product *= many[d];
    }
    one[merges ? group.output_begin : group.source_begin] = product;
  }
  return true;
}

bool scale(const ResizeAttributes&, LoneOperator& op, ProfileRandom& random) {
  Dims& x = op.inputs[0].dims;
  const Size2 times = {op.dims[2] / x[2], op.dims[3] / x[3]};
  if (times[0] * x[2] != op.dims[2] || times[1] * x[3] != op.dims[3]) return false;
  if (!scale_any(op, random)) return false;
  op.dims = {x[0], x[1], times[0] * x[2], times[1] * x[3]};
  return true;
}

bool has_residual(const Attributes& attributes) {
  if (const auto* conv = std::get_if<ConvAttributes>(&attributes)) return conv->has_residual;
  if (const auto* linear = std::get_if<LinearAttributes>(&attributes)) return linear->has_residual;
  return false;
}

// Of the output, after the inputs have changed.
StatusOr<Dims> output_dims(const LoneOperator& op) {
  std::vector<Tensor> tensors;
  for (const Operand& input : op.inputs) {
    Tensor tensor;
    tensor.type = input.type;
    tensor.dims = input.dims;
    tensor.kind = input.constant ? TensorKind::kConstant : TensorKind::kInput;
    tensor.layout = input.layout;
    tensors.push_back(std::move(tensor));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(&tensor);
  const bool given = std::holds_alternative<CopyAttributes>(op.attributes) ||
                     std::holds_alternative<ReshapeAttributes>(op.attributes) ||
                     std::holds_alternative<ResizeAttributes>(op.attributes);
  TANDEM_ASSIGN_OR_RETURN(const Shape shape,
                          output_shape(op.attributes, inputs, given ? op.dims : Dims{}));
  return shape.dims;
}

}  // namespace

std::optional<LoneOperator> perturbed(const LoneOperator& op, ProfileRandom& random) {
  LoneOperator result = op;
  const auto change = [&](const auto& attributes) { return scale(attributes, result, random); };
  // The variant is copied: scale() replaces it.
  const Attributes attributes = op.attributes;
  if (!std::visit(change, attributes)) return std::nullopt;
  // The residual has the shape of the output, which depends on the others.
  if (has_residual(result.attributes)) {
    LoneOperator plain = result;
    plain.inputs.pop_back();
    std::visit(
        [](auto& a) {
          if constexpr (requires { a.has_residual; }) a.has_residual = false;
        },
        plain.attributes);
    const StatusOr<Dims> dims = output_dims(plain);
    if (!dims.ok()) return std::nullopt;
    result.inputs.back().dims = *dims;
  }
  const StatusOr<Dims> dims = output_dims(result);
  if (!dims.ok()) return std::nullopt;
  result.dims = *dims;
  for (const Operand& input : result.inputs) {
    if (static_cast<double>(element_count(input.dims)) > kMostElements) return std::nullopt;
  }
  return static_cast<double>(element_count(result.dims)) > kMostElements
             ? std::nullopt
             : std::optional(std::move(result));
}

}  // namespace tandem
