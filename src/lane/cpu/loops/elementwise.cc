#include "lane/cpu/loops/elementwise.h"

#include <limits>

#include "lane/cpu/vector_math.h"
#include "support/multiversion.h"

namespace tandem::cpu {
namespace {

template <Function F>
TANDEM_INLINE void loop(const float* x, float* y, int64_t count, float alpha, float beta) {
  // Reading and writing the same place is fine; without this the loop would test for overlap and
  // fall back to scalar code.
  TANDEM_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) y[i] = evaluate<F>(x[i], alpha, beta);
}

// Calls body.template operator()<F>() with the function as a constant.
template <typename Body>
TANDEM_INLINE void with_function(Function function, Body body) {
  switch (function) {
    case Function::kIdentity:
      return body.template operator()<Function::kIdentity>();
    case Function::kRelu:
      return body.template operator()<Function::kRelu>();
    case Function::kClip:
      return body.template operator()<Function::kClip>();
    case Function::kLeakyRelu:
      return body.template operator()<Function::kLeakyRelu>();
    case Function::kElu:
      return body.template operator()<Function::kElu>();
    case Function::kSigmoid:
      return body.template operator()<Function::kSigmoid>();
    case Function::kHardSigmoid:
      return body.template operator()<Function::kHardSigmoid>();
    case Function::kTanh:
      return body.template operator()<Function::kTanh>();
    case Function::kSilu:
      return body.template operator()<Function::kSilu>();
    case Function::kHardSwish:
      return body.template operator()<Function::kHardSwish>();
    case Function::kGelu:
      return body.template operator()<Function::kGelu>();
    case Function::kGeluTanh:
      return body.template operator()<Function::kGeluTanh>();
    case Function::kSoftplus:
      return body.template operator()<Function::kSoftplus>();
    case Function::kErf:
      return body.template operator()<Function::kErf>();
    case Function::kExp:
      return body.template operator()<Function::kExp>();
    case Function::kLog:
      return body.template operator()<Function::kLog>();
    case Function::kSqrt:
      return body.template operator()<Function::kSqrt>();
    case Function::kReciprocal:
      return body.template operator()<Function::kReciprocal>();
    case Function::kAbs:
      return body.template operator()<Function::kAbs>();
    case Function::kNeg:
      return body.template operator()<Function::kNeg>();
    case Function::kFloor:
      return body.template operator()<Function::kFloor>();
    case Function::kCeil:
      return body.template operator()<Function::kCeil>();
    case Function::kSin:
      return body.template operator()<Function::kSin>();
    case Function::kCos:
      return body.template operator()<Function::kCos>();
  }
}

template <typename Op>
TANDEM_INLINE void loop2(const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                         float* y, int64_t count, Op op) {
  if (a_stride == 1 && b_stride == 1) {
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = op(a[i], b[i]);
  } else if (a_stride == 1) {
    const float value = *b;
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = op(a[i], value);
  } else if (b_stride == 1) {
    const float value = *a;
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = op(value, b[i]);
  } else {
    const float value = op(*a, *b);
    for (int64_t i = 0; i < count; ++i) y[i] = value;
  }
}

}  // namespace

TANDEM_MULTIVERSION void apply(const Activation& f, const float* x, float* y, int64_t count) {
  const float alpha = f.alpha, beta = f.beta;
  with_function(f.function,
                [=]<Function F>() TANDEM_LAMBDA_INLINE { loop<F>(x, y, count, alpha, beta); });
}

TANDEM_MULTIVERSION void apply_rows(const Activation& f, float* data, const int64_t* row_offsets,
                                    int rows, int64_t columns) {
  const float alpha = f.alpha, beta = f.beta;
  with_function(f.function, [=]<Function F>() TANDEM_LAMBDA_INLINE {
    for (int m = 0; m < rows; ++m) {
      float* row = data + row_offsets[m];
      loop<F>(row, row, columns, alpha, beta);
    }
  });
}

namespace {

// kColumns: 0 where it is not known at compile time.
template <Function F, int64_t kColumns>
TANDEM_INLINE void finish_fixed(const StridedRows<const float>& x,
                                const StridedRows<const float>& residual,
                                const StridedRows<float>& y, int64_t rows, int64_t columns,
                                float alpha, float beta) {
  if constexpr (kColumns > 0) columns = kColumns;
  for (int64_t m = 0; m < rows; ++m) {
    const float* from = x.data + m * x.stride;
    float* to = y.data + m * y.stride;
    if (residual.data == nullptr) {
      loop<F>(from, to, columns, alpha, beta);
      continue;
    }
    const float* added = residual.data + m * residual.stride;
    TANDEM_INDEPENDENT
    for (int64_t i = 0; i < columns; ++i) to[i] = evaluate<F>(from[i] + added[i], alpha, beta);
  }
}

}  // namespace

TANDEM_MULTIVERSION void finish_rows(const Activation& f, const StridedRows<const float>& x,
                                     const StridedRows<const float>& residual,
                                     const StridedRows<float>& y, int64_t rows, int64_t columns) {
  const float alpha = f.alpha, beta = f.beta;
  with_function(f.function, [&]<Function F>() TANDEM_LAMBDA_INLINE {
    if (columns == kLineFloats) {
      finish_fixed<F, kLineFloats>(x, residual, y, rows, columns, alpha, beta);
    } else {
      finish_fixed<F, 0>(x, residual, y, rows, columns, alpha, beta);
    }
  });
}

TANDEM_MULTIVERSION void combine(BinaryAttributes::Kind kind, const float* a, int64_t a_stride,
                                 const float* b, int64_t b_stride, float* y, int64_t count) {
  using Kind = BinaryAttributes::Kind;
  const auto go = [=](auto op)
                      TANDEM_LAMBDA_INLINE { loop2(a, a_stride, b, b_stride, y, count, op); };
  switch (kind) {
    case Kind::kAdd:
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return u + v; });
    case Kind::kSub:
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return u - v; });
    case Kind::kMul:
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return u * v; });
    case Kind::kDiv:
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return u / v; });
    // A NaN on either side stays one.
    case Kind::kMax:
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return u < v || v != v ? v : u; });
    case Kind::kMin:
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return v < u || v != v ? v : u; });
    case Kind::kPow:
      // Squares are what models ask for (hand-made variances), and pow() is a slow call.
      if (b_stride == 0 && *b == 2.0f) {
        return go([](float u, float) TANDEM_LAMBDA_INLINE { return u * u; });
      }
      return go([](float u, float v) TANDEM_LAMBDA_INLINE { return std::pow(u, v); });
  }
}

Clamp as_clamp(const Activation& f) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (f.function) {
    case Function::kIdentity:
      return {true, -kInfinity, kInfinity};
    case Function::kRelu:
      return {true, 0.0f, kInfinity};
    case Function::kClip:
      return {true, f.alpha, f.beta};
    default:
      return {false, -kInfinity, kInfinity};
  }
}

}  // namespace tandem::cpu
