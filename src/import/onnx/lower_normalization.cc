// Normalisations and softmax.
#include <cmath>
#include <utility>

#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

StatusOr<Value> multiply(Node& node, const Value& a, const Value& b, std::string_view suffix) {
  return node.emit(BinaryAttributes{.kind = BinaryAttributes::Kind::kMul, .activation = {}}, {a, b},
                   {}, suffix);
}

StatusOr<Value> add(Node& node, const Value& a, const Value& b, std::string_view suffix) {
  return node.emit(BinaryAttributes{}, {a, b}, {}, suffix);
}

// `count` numbers as they broadcast over axis 1 of a tensor of rank `rank`.
Dims channel_dims(int64_t count, int rank) {
  Dims dims(static_cast<size_t>(rank - 1), 1);
  dims[0] = count;
  return dims;
}

Status expect_elements(const Value& value, int64_t count) {
  if (value.dims.size() == 1 && value.dims[0] == count) return {};
  return invalid_argument("'" + value.name + "' is " + to_string(value.dims) + ", not [" +
                          std::to_string(count) + "]");
}

// A scale and a shift per channel, which passes then fold into the convolution before.
Status lower_batch_normalization(Node& node) {
  const Value& x = node.value(0);
  if (node.integer("training_mode", 0) != 0 || node.wants(1)) {
    return unsupported("batch normalization in training mode");
  }
  if (node.integer("spatial", 1) != 1) return unsupported("statistics per element (spatial=0)");
  if (x.rank() < 2) return invalid_argument("its input is " + to_string(x.dims));
  const int64_t channels = x.dims[1];
  std::vector<std::vector<float>> statistics;  // scale, bias, mean, variance
  for (int i = 1; i <= 4; ++i) {
    TANDEM_RETURN_IF_ERROR(expect_elements(node.value(i), channels));
    TANDEM_ASSIGN_OR_RETURN(std::vector<float> values, node.floats_of(i));
    statistics.push_back(std::move(values));
  }
  const double epsilon = node.number("epsilon", 1e-5f);
  HostTensor scale(DataType::kFloat32, channel_dims(channels, x.rank()));
  HostTensor shift(DataType::kFloat32, scale.dims);
  for (int64_t c = 0; c < channels; ++c) {
    if (!(statistics[3][c] + epsilon > 0)) {
      return invalid_argument("the variance of channel " + std::to_string(c) + " is " +
                              std::to_string(statistics[3][c]));
    }
    const double factor = statistics[0][c] / std::sqrt(statistics[3][c] + epsilon);
    scale.data<float>()[c] = static_cast<float>(factor);
    shift.data<float>()[c] = static_cast<float>(statistics[1][c] - statistics[2][c] * factor);
  }
  TANDEM_ASSIGN_OR_RETURN(Value y,
                          multiply(node, x, node.constant(std::move(scale), "scale"), "multiply"));
  TANDEM_ASSIGN_OR_RETURN(y, add(node, y, node.constant(std::move(shift), "shift"), ""));
  node.set_output(0, std::move(y));
  return {};
}

// The operator on rows of `width` elements, with neither scale nor shift.
StatusOr<Value> normalize_rows(Node& node, const Value& x, int64_t width, float epsilon,
                               std::string_view suffix) {
  TANDEM_ASSIGN_OR_RETURN(const Value rows,
                          node.reshape(x, {element_count(x.dims) / width, width}, "rows"));
  const Value ones = node.constant(
      HostTensor::floats({width}, std::vector<float>(static_cast<size_t>(width), 1)), "ones");
  const Value zeros = node.constant(HostTensor(DataType::kFloat32, {width}), "zeros");
  TANDEM_ASSIGN_OR_RETURN(const Value y,
                          node.emit(LayerNormAttributes{epsilon}, {rows, ones, zeros}, {}, suffix));
  return node.reshape(y, x.dims, "normalized");
}

// The outputs of a LayerNormalization beside the main one: mean, and 1 / standard deviation.
Status set_statistics(Node& node, int axis, float epsilon) {
  const Value& x = node.value(0);
  ReduceAttributes mean_over;
  for (int d = axis; d < x.rank(); ++d) mean_over.axes.push_back(d);
  const BinaryAttributes subtract = {.kind = BinaryAttributes::Kind::kSub, .activation = {}};
  const Value shift = node.constant(HostTensor::floats({}, {epsilon}), "epsilon");
  TANDEM_ASSIGN_OR_RETURN(const Value mean, node.emit(mean_over, {x}, {}, "mean"));
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(subtract, {x, mean}, {}, "deviation"));
  TANDEM_ASSIGN_OR_RETURN(y, multiply(node, y, y, "square"));
  TANDEM_ASSIGN_OR_RETURN(y, node.emit(mean_over, {y}, {}, "variance"));
  TANDEM_ASSIGN_OR_RETURN(y, add(node, y, shift, "add_epsilon"));
  for (const Function function : {Function::kSqrt, Function::kReciprocal}) {
    TANDEM_ASSIGN_OR_RETURN(y,
                            node.emit(UnaryAttributes{{function}}, {y}, {}, to_string(function)));
  }
  node.set_output(1, mean);
  node.set_output(2, std::move(y));
  return {};
}

Status lower_layer_normalization(Node& node) {
  const Value& x = node.value(0);
  const Value& scale = node.value(1);
  TANDEM_ASSIGN_OR_RETURN(const int axis, node.axis(node.integer("axis", -1), x.rank()));
  const float epsilon = node.number("epsilon", 1e-5f);
  const Dims normalized(x.dims.begin() + axis, x.dims.end());
  const int64_t width = element_count(normalized);
  if (width == 0) return invalid_argument("its input has no elements");
  const bool known = scale.constant && (!node.has(2) || node.value(2).constant);
  const bool full = scale.dims == normalized && (!node.has(2) || node.value(2).dims == normalized);
  Value y;
  if (known && full) {
    const Value zeros = node.constant(HostTensor(DataType::kFloat32, {width}), "zeros");
    // One trailing dimension needs no reshape.
    Dims rows = x.dims;
    if (normalized.size() != 1) rows = {element_count(x.dims) / width, width};
    TANDEM_ASSIGN_OR_RETURN(const Value input, node.reshape(x, rows, "rows"));
    TANDEM_ASSIGN_OR_RETURN(const Value gamma, node.reshape(scale, {width}, "scale"));
    TANDEM_ASSIGN_OR_RETURN(const Value beta,
                            node.reshape(node.has(2) ? node.value(2) : zeros, {width}, "bias"));
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(LayerNormAttributes{epsilon}, {input, gamma, beta}));
    TANDEM_ASSIGN_OR_RETURN(y, node.reshape(y, x.dims, "output"));
  } else {
    TANDEM_ASSIGN_OR_RETURN(y, normalize_rows(node, x, width, epsilon, ""));
    TANDEM_ASSIGN_OR_RETURN(y, multiply(node, y, scale, "multiply"));
    if (node.has(2)) {
      TANDEM_ASSIGN_OR_RETURN(y, add(node, y, node.value(2), "add"));
    }
    if (y.dims != x.dims) return invalid_argument("the scale does not broadcast to the input");
  }
  node.set_output(0, std::move(y));
  return node.wants(1) || node.wants(2) ? set_statistics(node, axis, epsilon) : Status();
}

// Scale and shift per channel of what was normalized over groups of channels.
Status finish_channels(Node& node, Value y, const Value& scale, const Value& shift) {
  const Dims dims = channel_dims(y.dims[1], y.rank());
  TANDEM_ASSIGN_OR_RETURN(const Value gamma, node.reshape(scale, dims, "scale"));
  TANDEM_ASSIGN_OR_RETURN(const Value beta, node.reshape(shift, dims, "shift"));
  TANDEM_ASSIGN_OR_RETURN(y, multiply(node, y, gamma, "multiply"));
  TANDEM_ASSIGN_OR_RETURN(y, add(node, y, beta, "add"));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_instance_normalization(Node& node) {
  const Value& x = node.value(0);
  if (x.rank() < 3) return invalid_argument("its input is " + to_string(x.dims));
  for (int i : {1, 2}) TANDEM_RETURN_IF_ERROR(expect_elements(node.value(i), x.dims[1]));
  const int64_t width = element_count(Dims(x.dims.begin() + 2, x.dims.end()));
  if (width == 0) return invalid_argument("its input has no elements");
  TANDEM_ASSIGN_OR_RETURN(Value y,
                          normalize_rows(node, x, width, node.number("epsilon", 1e-5f), ""));
  return finish_channels(node, std::move(y), node.value(1), node.value(2));
}

// Each number of `values` `times` times.
StatusOr<Value> repeat(Node& node, const Value& values, int64_t times, std::string_view suffix) {
  const CopyAttributes spread = {.source_axis = {0, kNone}, .step = {1, 1}, .start = {0}};
  return node.emit(spread, {values}, {values.dims[0], times}, suffix);
}

Status lower_group_normalization(Node& node) {
  const Value& x = node.value(0);
  const int64_t groups = node.integer("num_groups", 0);
  if (x.rank() < 2 || groups < 1 || x.dims[1] % groups != 0) {
    return invalid_argument(std::to_string(groups) + " groups of the channels of " +
                            to_string(x.dims));
  }
  const int64_t per_group = x.dims[1] / groups;
  const int64_t width = per_group * element_count(Dims(x.dims.begin() + 2, x.dims.end()));
  if (width == 0) return invalid_argument("its input has no elements");
  Value scale = node.value(1);
  Value shift = node.value(2);
  // Up to opset 20 there is one number per group.
  const bool by_group = node.opset() < 21;
  for (const Value& v : {scale, shift}) {
    TANDEM_RETURN_IF_ERROR(expect_elements(v, by_group ? groups : x.dims[1]));
  }
  if (by_group) {
    TANDEM_ASSIGN_OR_RETURN(scale, repeat(node, scale, per_group, "scales"));
    TANDEM_ASSIGN_OR_RETURN(shift, repeat(node, shift, per_group, "shifts"));
  }
  TANDEM_ASSIGN_OR_RETURN(Value y,
                          normalize_rows(node, x, width, node.number("epsilon", 1e-5f), ""));
  return finish_channels(node, std::move(y), scale, shift);
}

// Before opset 13 the axis only says where the input is cut into a matrix, whose rows are then
// normalized.
Status lower_softmax(Node& node) {
  const Value& x = node.value(0);
  const bool as_matrix = node.opset() < 13;
  SoftmaxAttributes softmax;
  softmax.log = node.type() == "LogSoftmax";
  TANDEM_ASSIGN_OR_RETURN(softmax.axis,
                          node.axis(node.integer("axis", as_matrix ? 1 : -1), x.rank()));
  const int64_t row = element_count(Dims(x.dims.begin() + softmax.axis, x.dims.end()));
  Value y;
  if (as_matrix && row != x.dims[softmax.axis] && row != 0) {
    softmax.axis = 1;
    TANDEM_ASSIGN_OR_RETURN(y, node.reshape(x, {element_count(x.dims) / row, row}, "matrix"));
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(softmax, {y}));
    TANDEM_ASSIGN_OR_RETURN(y, node.reshape(y, x.dims, "output"));
  } else {
    TANDEM_ASSIGN_OR_RETURN(y, node.emit(softmax, {x}));
  }
  node.set_output(0, std::move(y));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"BatchNormalization", 15, lower_batch_normalization, 5},
    {"GroupNormalization", 21, lower_group_normalization, 3},
    {"InstanceNormalization", 22, lower_instance_normalization, 3},
    {"LayerNormalization", 17, lower_layer_normalization, 2},
    {"LogSoftmax", 13, lower_softmax},
    {"Softmax", 13, lower_softmax},
};

}  // namespace

std::span<const Lowering> normalization_lowerings() { return kLowerings; }

}  // namespace tandem
