// Constants, and operators that Tandem computes at load only: comparisons, selections and the like,
// as models use them on shapes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "import/onnx/integer_arithmetic.h"
#include "import/onnx/lowerings.h"
#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

void set_constant(Node& node, HostTensor tensor) {
  node.set_output(0, node.constant(std::move(tensor), "value"));
}

Status expect_constants(const Node& node) {
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.has(i) && !node.value(i).constant) {
      return unsupported("Tandem computes it at load only, but '" + node.value(i).name +
                         "' is known at run time only");
    }
  }
  return {};
}

template <typename T>
HostTensor list_of(const std::vector<T>& values) {
  const Dims dims = {static_cast<int64_t>(values.size())};
  if constexpr (std::is_same_v<T, float>) {
    return HostTensor::floats(dims, values);
  } else {
    return HostTensor::ints(dims, values);
  }
}

Status lower_constant(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(std::optional<HostTensor> tensor, node.tensor("value"));
  if (tensor) {
    set_constant(node, *std::move(tensor));
  } else if (node.has_attribute("value_int")) {
    set_constant(node, HostTensor::ints({}, {node.integer("value_int", 0)}));
  } else if (node.has_attribute("value_float")) {
    set_constant(node, HostTensor::floats({}, {node.number("value_float", 0)}));
  } else if (const auto ints = node.integers("value_ints")) {
    set_constant(node, list_of(*ints));
  } else if (const auto floats = node.numbers("value_floats")) {
    set_constant(node, list_of(*floats));
  } else {
    return unsupported("a constant that is neither a tensor nor a number");
  }
  return {};
}

Status lower_constant_of_shape(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, node.integers_of(0));
  TANDEM_RETURN_IF_ERROR(check_computed_dims(dims));
  TANDEM_ASSIGN_OR_RETURN(const std::optional<HostTensor> value, node.tensor("value"));
  const HostTensor element = value.value_or(HostTensor(DataType::kFloat32, {1}));
  if (element.size() != 1) return invalid_argument("its value is not a single number");
  HostTensor filled(element.type, dims);
  const size_t size = element_size(element.type);
  for (size_t at = 0; at < filled.bytes.size(); at += size) {
    std::memcpy(filled.bytes.data() + at, element.bytes.data(), size);
  }
  set_constant(node, std::move(filled));
  return {};
}

// Extents are known at load whatever the input is.
Status lower_shape(Node& node) {
  const Dims& dims = node.value(0).dims;
  const int64_t rank = node.value(0).rank();
  const auto bound = [rank](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + rank : position, 0, rank);
  };
  const int64_t start = bound(std::max(node.integer("start", 0), -rank));
  const int64_t end = bound(std::max(node.integer("end", rank), -rank));
  set_constant(node, start < end ? list_of(Dims(dims.begin() + start, dims.begin() + end))
                                 : HostTensor(DataType::kInt64, {0}));
  return {};
}

Status lower_size(Node& node) {
  set_constant(node, HostTensor::ints({}, {element_count(node.value(0).dims)}));
  return {};
}

template <typename T>
StatusOr<HostTensor> range(DataType type, T start, T limit, T delta) {
  if (delta == 0) return invalid_argument("its step is 0");
  const double exact = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                 static_cast<double>(delta));
  if (std::isnan(exact) || exact > 1e9) return unsupported("a range of so many numbers");
  const int64_t count = std::max<int64_t>(static_cast<int64_t>(std::max(exact, 0.0)), 0);
  TANDEM_RETURN_IF_ERROR(check_computed_dims({count}));
  HostTensor values(type, {count});
  for (int64_t i = 0; i < count; ++i) {
    values.data<T>()[i] = start + static_cast<T>(i) * delta;
  }
  return values;
}

Status lower_range(Node& node) {
  HostTensor values;
  if (node.value(0).type == DataType::kInt64) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t start, node.integer_of(0));
    TANDEM_ASSIGN_OR_RETURN(const int64_t limit, node.integer_of(1));
    TANDEM_ASSIGN_OR_RETURN(const int64_t delta, node.integer_of(2));
    constexpr int64_t kLimit = int64_t{1} << 61;  // so that distances do not overflow
    if (std::max({start, limit, delta}) > kLimit || std::min({start, limit, delta}) < -kLimit) {
      return invalid_argument("its bounds are too large");
    }
    TANDEM_ASSIGN_OR_RETURN(values, range(DataType::kInt64, start, limit, delta));
  } else {
    TANDEM_ASSIGN_OR_RETURN(const float start, node.float_of(0));
    TANDEM_ASSIGN_OR_RETURN(const float limit, node.float_of(1));
    TANDEM_ASSIGN_OR_RETURN(const float delta, node.float_of(2));
    TANDEM_ASSIGN_OR_RETURN(values, range(DataType::kFloat32, start, limit, delta));
  }
  set_constant(node, std::move(values));
  return {};
}

// ---- Types ----------------------------------------------------------------------------------

int64_t truncated(float value) {
  // What does not fit is undefined in ONNX, but must not be so here.
  constexpr float kLimit = 9.2e18f;
  if (std::isnan(value)) return 0;
  return static_cast<int64_t>(std::clamp(value, -kLimit, kLimit));
}

HostTensor converted(const HostTensor& x, DataType type, bool to_bool) {
  HostTensor y(type, x.dims);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (type == DataType::kFloat32) {
      y.data<float>()[i] = x.type == DataType::kFloat32 ? x.data<float>()[i]
                                                        : static_cast<float>(x.data<int64_t>()[i]);
    } else if (x.type == DataType::kInt64) {
      y.data<int64_t>()[i] = to_bool ? x.data<int64_t>()[i] != 0 : x.data<int64_t>()[i];
    } else {
      y.data<int64_t>()[i] = to_bool ? x.data<float>()[i] != 0 : truncated(x.data<float>()[i]);
    }
  }
  return y;
}

Status lower_cast(Node& node) {
  const Value& x = node.value(0);
  const int to = static_cast<int>(node.integer("to", 0));
  TANDEM_ASSIGN_OR_RETURN(const DataType type, constant_type(to));
  const bool to_bool = to == onnx::TensorProto::BOOL;
  if (x.constant) {
    set_constant(node, converted(*x.constant, type, to_bool));
  } else if (type == x.type && !to_bool && to != onnx::TensorProto::DOUBLE) {
    node.set_output(0, x);
  } else {
    return unsupported("a conversion from " + std::string(to_string(x.type)) + " to " +
                       type_name(to) + " at run time");
  }
  return {};
}

// ---- Logic ----------------------------------------------------------------------------------

// f on two operands of one type, int64 or float; the result is a truth value, or an integer.
template <typename F>
StatusOr<HostTensor> pairwise(const Node& node, const F& f) {
  const HostTensor& a = *node.value(0).constant;
  const HostTensor& b = *node.value(1).constant;
  if (a.type != b.type) return invalid_argument("its operands have different types");
  TANDEM_ASSIGN_OR_RETURN(const Dims dims, broadcast_dims(a.dims, b.dims));
  TANDEM_RETURN_IF_ERROR(check_computed_dims(dims));
  HostTensor y(DataType::kInt64, dims);
  for_each_broadcast(dims, a.dims, b.dims, [&](int64_t i, int64_t at_a, int64_t at_b) {
    y.data<int64_t>()[i] = a.type == DataType::kInt64
                               ? f(a.data<int64_t>()[at_a], b.data<int64_t>()[at_b])
                               : f(a.data<float>()[at_a], b.data<float>()[at_b]);
  });
  return y;
}

template <typename Predicate>
Status lower_pairwise(Node& node) {
  TANDEM_RETURN_IF_ERROR(expect_constants(node));
  TANDEM_ASSIGN_OR_RETURN(HostTensor y, pairwise(node, Predicate{}));
  set_constant(node, std::move(y));
  return {};
}

Status lower_not(Node& node) {
  TANDEM_RETURN_IF_ERROR(expect_constants(node));
  TANDEM_ASSIGN_OR_RETURN(std::vector<int64_t> values, node.integers_of(0));
  for (int64_t& value : values) value = value == 0;
  set_constant(node, HostTensor::ints(node.value(0).dims, std::move(values)));
  return {};
}

// The sign is the divisor's; with fmod the dividend's, as C has it.
int64_t remainder(int64_t a, int64_t b, bool fmod) {
  if (b == 0 || b == -1) return 0;  // INT64_MIN % -1 traps
  const int64_t r = a % b;
  return !fmod && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Status lower_mod(Node& node) {
  TANDEM_RETURN_IF_ERROR(expect_constants(node));
  if (node.value(0).type != DataType::kInt64) return unsupported("the remainder of floats");
  const bool fmod = node.integer("fmod", 0) != 0;
  TANDEM_ASSIGN_OR_RETURN(HostTensor y, pairwise(node, [fmod](auto a, auto b) {
                            return remainder(static_cast<int64_t>(a), static_cast<int64_t>(b),
                                             fmod);
                          }));
  set_constant(node, std::move(y));
  return {};
}

// Where the condition and one operand are known the other is bounded by constants: from both sides
// by the known number where that is chosen, by infinities elsewhere.
Status lower_bounded_where(Node& node, const HostTensor& condition, const Value& known,
                           const Value& open, bool known_when) {
  TANDEM_ASSIGN_OR_RETURN(const Dims dims, broadcast_dims(condition.dims, known.dims));
  TANDEM_RETURN_IF_ERROR(check_computed_dims(dims));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  HostTensor low(DataType::kFloat32, dims);
  HostTensor high(DataType::kFloat32, dims);
  bool chosen = false;
  for_each_broadcast(dims, condition.dims, known.dims, [&](int64_t i, int64_t c, int64_t at) {
    const bool here = (condition.data<int64_t>()[c] != 0) == known_when;
    chosen |= here;
    low.data<float>()[i] = here ? known.constant->data<float>()[at] : -kInfinity;
    high.data<float>()[i] = here ? known.constant->data<float>()[at] : kInfinity;
  });
  TANDEM_ASSIGN_OR_RETURN(const Dims result, broadcast_dims(dims, open.dims));
  if (!chosen && result == open.dims) {
    node.set_output(0, open);
    return {};
  }
  Value y = open;
  if (!std::all_of(low.data<float>(), low.data<float>() + low.size(),
                   [](float bound) { return bound == -kInfinity; })) {
    const BinaryAttributes most = {.kind = BinaryAttributes::Kind::kMax, .activation = {}};
    TANDEM_ASSIGN_OR_RETURN(
        y, node.emit(most, {y, node.constant(std::move(low), "low")}, {}, "at_least"));
  }
  const BinaryAttributes least = {.kind = BinaryAttributes::Kind::kMin, .activation = {}};
  TANDEM_ASSIGN_OR_RETURN(y, node.emit(least, {y, node.constant(std::move(high), "high")}));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_where(Node& node) {
  const Value& condition_value = node.value(0);
  for (const bool known_when : {true, false}) {
    const Value& known = node.value(known_when ? 1 : 2);
    const Value& open = node.value(known_when ? 2 : 1);
    if (condition_value.constant && condition_value.type == DataType::kInt64 && known.constant &&
        !open.constant && known.type == DataType::kFloat32 && open.type == known.type) {
      return lower_bounded_where(node, *condition_value.constant, known, open, known_when);
    }
  }
  TANDEM_RETURN_IF_ERROR(expect_constants(node));
  const HostTensor& condition = *condition_value.constant;
  const HostTensor& a = *node.value(1).constant;
  const HostTensor& b = *node.value(2).constant;
  if (condition.type != DataType::kInt64 || a.type != b.type) {
    return invalid_argument("its operands have the wrong types");
  }
  TANDEM_ASSIGN_OR_RETURN(const Dims both, broadcast_dims(a.dims, b.dims));
  TANDEM_ASSIGN_OR_RETURN(const Dims dims, broadcast_dims(both, condition.dims));
  TANDEM_RETURN_IF_ERROR(check_computed_dims(dims));
  HostTensor y(a.type, dims);
  const size_t size = element_size(a.type);
  const auto copy_where = [&](const HostTensor& from, bool when) {
    for_each_broadcast(dims, condition.dims, from.dims, [&](int64_t i, int64_t c, int64_t at) {
      if ((condition.data<int64_t>()[c] != 0) != when) return;
      std::memcpy(y.bytes.data() + static_cast<size_t>(i) * size,
                  from.bytes.data() + static_cast<size_t>(at) * size, size);
    });
  };
  copy_where(a, true);
  copy_where(b, false);
  set_constant(node, std::move(y));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"And", 7, lower_pairwise<std::logical_and<>>, 2},
    {"Cast", 28, lower_cast},
    {"Constant", 25, lower_constant, 0},
    {"ConstantOfShape", 25, lower_constant_of_shape},
    {"Equal", 19, lower_pairwise<std::equal_to<>>, 2},
    {"Greater", 13, lower_pairwise<std::greater<>>, 2},
    {"GreaterOrEqual", 16, lower_pairwise<std::greater_equal<>>, 2},
    {"Less", 13, lower_pairwise<std::less<>>, 2},
    {"LessOrEqual", 16, lower_pairwise<std::less_equal<>>, 2},
    {"Mod", 28, lower_mod, 2},
    {"Not", 1, lower_not},
    {"Or", 7, lower_pairwise<std::logical_or<>>, 2},
    {"Range", 27, lower_range, 3},
    {"Shape", 25, lower_shape},
    {"Size", 25, lower_size},
    {"Where", 16, lower_where, 3},
};

}  // namespace

std::span<const Lowering> constant_lowerings() { return kLowerings; }

}  // namespace tandem
