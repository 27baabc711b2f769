#include "profile/lone_operator.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace tandem {

double uniform(ProfileRandom& random, double low, double high) {
  // std::uniform_real_distribution differs between libraries.
  constexpr double kScale = 1.0 / (uint64_t{1} << 53);
  return low + (high - low) * static_cast<double>(random() >> 11) * kScale;
}

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

// Transpositions, and conversions between layouts.
bool scale(const CopyAttributes& copy, LoneOperator& op, ProfileRandom& random) {
  const size_t rank = op.inputs[0].dims.size();
  const std::set<int> axes(copy.source_axis.begin(), copy.source_axis.end());
  const bool permutes =
      copy.source_axis.size() == rank && axes.size() == rank && !axes.contains(kNone) &&
      std::all_of(copy.step.begin(), copy.step.end(), [](int64_t s) { return s == 1; }) &&
      std::all_of(copy.start.begin(), copy.start.end(), [](int64_t s) { return s == 0; });
  for (size_t d = 0; permutes && d < rank; ++d) {
    if (op.dims[d] != op.inputs[0].dims[static_cast<size_t>(copy.source_axis[d])]) return false;
  }
  if (!permutes || !scale_any(op, random)) return false;
  for (size_t d = 0; d < rank; ++d) {
    op.dims[d] = op.inputs[0].dims[static_cast<size_t>(copy.source_axis[d])];
  }
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
  const bool given = std::holds_alternative<CopyAttributes>(op.attributes);
  TANDEM_ASSIGN_OR_RETURN(const Shape shape,
                          output_shape(op.attributes, inputs, given ? op.dims : Dims{}));
  return shape.dims;
}

}  // namespace

LoneOperator lone_operator(const Graph& graph, OperatorId id) {
  const Operator& op = graph.op(id);
  LoneOperator lone;
  lone.attributes = op.attributes;
  for (TensorId input : op.inputs) {
    const Tensor& tensor = graph.tensor(input);
    const bool constant = tensor.kind == TensorKind::kConstant;
    const bool integers = tensor.type == DataType::kInt64;
    lone.inputs.push_back({tensor.type, tensor.dims, tensor.layout, constant,
                           constant && integers ? tensor.value : nullptr});
  }
  lone.dims = graph.output_of(id).dims;
  lone.layout = graph.output_of(id).layout;
  return lone;
}

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

std::shared_ptr<const HostTensor> ConstantPool::get(const Dims& dims) {
  std::shared_ptr<const HostTensor>& value = values_[dims];
  if (value) return value;
  if (!filled_) {
    auto tensor = std::make_shared<HostTensor>();
    tensor->dims = dims;
    value = std::move(tensor);
    return value;
  }
  auto tensor = std::make_shared<HostTensor>(DataType::kFloat32, dims);
  // Times depend on values through denormals, infinities and NaN only: a short period will do.
  constexpr size_t kPeriod = 4099;
  std::vector<float> values(kPeriod);
  ProfileRandom random(1);
  for (float& v : values) v = static_cast<float>(uniform(random, 0.1, 1) * (random() % 2 ? 1 : -1));
  auto* data = tensor->data<float>();
  const auto size = static_cast<size_t>(tensor->size());
  for (size_t i = 0; i < size; i += kPeriod) {
    std::copy_n(values.data(), std::min(kPeriod, size - i), data + i);
  }
  value = std::move(tensor);
  return value;
}

StatusOr<AddedOperator> add_to(Graph& graph, const LoneOperator& op, const std::string& name,
                               ConstantPool& constants) {
  AddedOperator added;
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Operand& input = op.inputs[i];
    const std::string input_name = name + ".input" + std::to_string(i);
    if (input.constant) {
      inputs.push_back(
          graph.add_constant(input_name, input.value ? input.value : constants.get(input.dims)));
      graph.mutable_tensor(inputs.back()).layout = input.layout;
    } else if (input.type != DataType::kFloat32) {
      inputs.push_back(graph.add_input(input_name, input.type, input.dims, input.layout));
    } else {
      const TensorId source =
          graph.add_input(input_name + ".source", input.type, input.dims, input.layout);
      TANDEM_ASSIGN_OR_RETURN(
          const TensorId made,
          graph.add(input_name, UnaryAttributes{{Function::kRelu}}, {source}, {}, input.layout));
      added.writers.push_back(graph.tensor(made).producer);
      inputs.push_back(made);
    }
  }
  const bool sized = std::holds_alternative<CopyAttributes>(op.attributes) ||
                     std::holds_alternative<ReshapeAttributes>(op.attributes) ||
                     std::holds_alternative<ResizeAttributes>(op.attributes) ||
                     std::holds_alternative<PoolAttributes>(op.attributes);
  TANDEM_ASSIGN_OR_RETURN(const TensorId output, graph.add(name, op.attributes, inputs,
                                                           sized ? op.dims : Dims{}, op.layout));
  added.op = graph.tensor(output).producer;
  graph.mark_output(output);
  return added;
}

}  // namespace tandem
