#include "import/onnx/integer_arithmetic.h"

#include <limits>
#include <optional>
#include <string>

#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

using Integer = std::optional<int64_t>;  // nullopt: overflow, or division by zero

Integer power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  int64_t result = 1;
  // Beyond 64 factors only 0, 1 and -1 do not overflow, and these repeat with period 2.
  for (int64_t n = exponent > 64 ? 64 + exponent % 2 : exponent; n > 0; --n) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  }
  return result;
}

Integer apply(BinaryAttributes::Kind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (kind) {
    case BinaryAttributes::Kind::kAdd:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : Integer(result);
    case BinaryAttributes::Kind::kSub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : Integer(result);
    case BinaryAttributes::Kind::kMul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : Integer(result);
    case BinaryAttributes::Kind::kDiv:
      if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
      return a / b;
    case BinaryAttributes::Kind::kPow:
      return power(a, b);
    case BinaryAttributes::Kind::kMax:
      return std::max(a, b);
    case BinaryAttributes::Kind::kMin:
      return std::min(a, b);
  }
  return std::nullopt;
}

Status failed() { return invalid_argument("its integers overflow, or are divided by zero"); }

StatusOr<HostTensor> binary(BinaryAttributes::Kind kind, const HostTensor& a, const HostTensor& b) {
  if (a.type != b.type) return invalid_argument("one operand is of integers, the other is not");
  TANDEM_ASSIGN_OR_RETURN(const Dims dims, broadcast_dims(a.dims, b.dims));
  TANDEM_RETURN_IF_ERROR(check_computed_dims(dims));
  HostTensor y(DataType::kInt64, dims);
  bool ok = true;
  for_each_broadcast(dims, a.dims, b.dims, [&](int64_t i, int64_t at_a, int64_t at_b) {
    const Integer value = apply(kind, a.data<int64_t>()[at_a], b.data<int64_t>()[at_b]);
    ok &= value.has_value();
    y.data<int64_t>()[i] = value.value_or(0);
  });
  if (!ok) return failed();
  return y;
}

StatusOr<HostTensor> unary(Function function, const HostTensor& x) {
  HostTensor y = x;
  for (int64_t i = 0; i < y.size(); ++i) {
    int64_t& value = y.data<int64_t>()[i];
    if (function == Function::kIdentity) continue;
    if (function == Function::kRelu) {
      value = std::max<int64_t>(value, 0);
    } else if (function == Function::kNeg || function == Function::kAbs) {
      if (value == std::numeric_limits<int64_t>::min()) return failed();
      if (function == Function::kNeg || value < 0) value = -value;
    } else {
      return unsupported(std::string(to_string(function)) + " of integers");
    }
  }
  return y;
}

StatusOr<BinaryAttributes::Kind> step_of(ReduceAttributes::Kind kind) {
  switch (kind) {
    case ReduceAttributes::Kind::kSum:
      return BinaryAttributes::Kind::kAdd;
    case ReduceAttributes::Kind::kProd:
      return BinaryAttributes::Kind::kMul;
    case ReduceAttributes::Kind::kMax:
      return BinaryAttributes::Kind::kMax;
    case ReduceAttributes::Kind::kMin:
      return BinaryAttributes::Kind::kMin;
    default:
      return unsupported("this reduction of integers");
  }
}

StatusOr<HostTensor> reduce(const ReduceAttributes& attributes, const HostTensor& x) {
  TANDEM_ASSIGN_OR_RETURN(const BinaryAttributes::Kind step, step_of(attributes.kind));
  // The output with all dimensions kept: it broadcasts to x, which says where each element goes.
  Dims kept = x.dims;
  for (int axis : attributes.axes) kept[axis] = 1;
  HostTensor y(DataType::kInt64, kept);
  std::vector<bool> started(static_cast<size_t>(y.size()), false);
  bool ok = true;
  for_each_broadcast(x.dims, x.dims, kept, [&](int64_t, int64_t from, int64_t to) {
    int64_t& value = y.data<int64_t>()[to];
    const int64_t element = x.data<int64_t>()[from];
    const Integer next = started[to] ? apply(step, value, element) : Integer(element);
    ok &= next.has_value();
    value = next.value_or(0);
    started[to] = true;
  });
  if (!ok) return failed();
  if (x.size() == 0) {
    if (step != BinaryAttributes::Kind::kAdd && step != BinaryAttributes::Kind::kMul) {
      return invalid_argument("the maximum or minimum of no elements");
    }
    std::fill_n(y.data<int64_t>(), y.size(), step == BinaryAttributes::Kind::kMul ? 1 : 0);
  }
  if (!attributes.keep_dims) {
    for (size_t i = attributes.axes.size(); i-- > 0;) {
      y.dims.erase(y.dims.begin() + attributes.axes[i]);
    }
  }
  return y;
}

}  // namespace

StatusOr<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t extent_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t extent_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      return invalid_argument(to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    dims[dims.size() - 1 - i] = extent_a == 1 ? extent_b : extent_a;
  }
  return dims;
}

StatusOr<HostTensor> integer_arithmetic(const Attributes& attributes,
                                        const std::vector<const HostTensor*>& inputs) {
  if (const auto* a = std::get_if<UnaryAttributes>(&attributes)) {
    return unary(a->function.function, *inputs[0]);
  }
  if (const auto* a = std::get_if<BinaryAttributes>(&attributes)) {
    return binary(a->kind, *inputs[0], *inputs[1]);
  }
  if (const auto* a = std::get_if<ReduceAttributes>(&attributes)) return reduce(*a, *inputs[0]);
  return internal_error("not integer arithmetic");
}

}  // namespace tandem
