// What all kernels share. LANES, the width of the vector type, is a build option.
//
// One source serves two kinds of devices. On a CPU a work-group has one work-item (WORK_ITEMS is
// 1), which loops over its share with wide vectors; on a GPU the work-items of a group take turns
// along the innermost dimension, so that neighbours access neighbouring memory.

#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)

#if LANES == 1
#define VECTOR float
#define INTS int
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define AS_VECTOR(x) as_float(x)
#define AS_INTS(x) as_int(x)
#define CHOOSE(no, yes, condition) ((condition) ? (yes) : (no))
#else
#define VECTOR CONCAT(float, LANES)
#define INTS CONCAT(int, LANES)
#define LOAD(p) CONCAT(vload, LANES)(0, (p))
#define STORE(v, p) CONCAT(vstore, LANES)((v), 0, (p))
#define AS_VECTOR(x) CONCAT(as_float, LANES)(x)
#define AS_INTS(x) CONCAT(as_int, LANES)(x)
#define CHOOSE(no, yes, condition) select((no), (yes), (condition))
#endif

// What min() and max() make of a NaN is undefined, and was a number: here it stays one.
VECTOR at_least(VECTOR x, VECTOR low) { return x < low ? low : x; }
VECTOR bound(VECTOR x, VECTOR low, VECTOR high) {
  x = at_least(x, low);
  return x > high ? high : x;
}

// exp of what is left between -ln(2)/2 and ln(2)/2.
VECTOR exponential_rest(VECTOR r) {
  VECTOR p = (VECTOR)1.9875691500e-4f;
  p = fma(p, r, (VECTOR)1.3981999507e-3f);
  p = fma(p, r, (VECTOR)8.3334519073e-3f);
  p = fma(p, r, (VECTOR)4.1665795894e-2f);
  p = fma(p, r, (VECTOR)1.6666665459e-1f);
  p = fma(p, r, (VECTOR)5.0000001201e-1f);
  return fma(p, r * r, r + 1.0f);
}

// Within 2 ulp where the result is a normal number; zero below that. (Some compilers' own vector
// exp goes element by element, and so do their conversions with a rounding mode.)
VECTOR exponential(VECTOR x) {
  const VECTOR bounded = bound(x, (VECTOR)-87.3f, (VECTOR)88.72f);
  // 1.5 * 2^23: adding it leaves the nearest whole number in the lowest bits of the sum.
  const VECTOR magic = (VECTOR)12582912.0f;
  const VECTOR shifted = fma(bounded, (VECTOR)1.44269504f, magic);
  const VECTOR n = shifted - magic;
  const VECTOR r = fma(n, (VECTOR)2.12194440e-4f, fma(n, (VECTOR)-0.693359375f, bounded));
  VECTOR p = exponential_rest(r);
  // 2^n in two factors, as 2^128 has no float of its own.
  const INTS whole = AS_INTS(shifted) - 0x4b400000;
  const INTS part = whole >> 1;
  p = p * AS_VECTOR((part + 127) << 23) * AS_VECTOR((whole - part + 127) << 23);
  return CHOOSE(CHOOSE(p, (VECTOR)INFINITY, x > 88.72f), (VECTOR)0.0f, x < -87.3f);
}

// The same for x that is not positive.
VECTOR exponential_down(VECTOR x) {
  const VECTOR magic = (VECTOR)12582912.0f;
  const VECTOR bounded = at_least(x, (VECTOR)-87.3f);
  const VECTOR shifted = fma(bounded, (VECTOR)1.44269504f, magic);
  const VECTOR n = shifted - magic;
  const VECTOR r = fma(n, (VECTOR)2.12194440e-4f, fma(n, (VECTOR)-0.693359375f, bounded));
  const VECTOR p = exponential_rest(r);
  const VECTOR scaled = p * AS_VECTOR((AS_INTS(shifted) - (0x4b400000 - 127)) << 23);
  return CHOOSE(scaled, (VECTOR)0.0f, x < -87.3f);
}

// Absolute error below 5e-7 (Abramowitz and Stegun, 7.1.26).
VECTOR error_function(VECTOR x) {
  const VECTOR magnitude = fabs(x);
  const VECTOR t = 1.0f / fma((VECTOR)0.3275911f, magnitude, (VECTOR)1.0f);
  VECTOR p = (VECTOR)1.061405429f;
  p = fma(p, t, (VECTOR)-1.453152027f);
  p = fma(p, t, (VECTOR)1.421413741f);
  p = fma(p, t, (VECTOR)-0.284496736f);
  p = fma(p, t, (VECTOR)0.254829592f);
  return copysign(1.0f - p * t * exponential_down(-magnitude * magnitude), x);
}

VECTOR sigmoid(VECTOR x) { return 1.0f / (1.0f + exponential(-x)); }

VECTOR hyperbolic_tangent(VECTOR x) { return 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f); }

// The functions of graph/operator.h.
VECTOR activate(VECTOR x, int function, float alpha, float beta) {
  switch (function) {
    case RELU:
      return at_least(x, (VECTOR)0.0f);
    case CLIP:
      return bound(x, (VECTOR)alpha, (VECTOR)beta);
    case LEAKY_RELU:
      return CHOOSE(x, alpha * x, x < 0.0f);
    case ELU:
      return CHOOSE(x, alpha * (exponential(x) - 1.0f), x < 0.0f);
    case SIGMOID:
      return sigmoid(x);
    case HARD_SIGMOID:
      return bound(alpha * x + beta, (VECTOR)0.0f, (VECTOR)1.0f);
    case TANH:
      return hyperbolic_tangent(x);
    case SILU:
      return x * sigmoid(x);
    case HARD_SWISH:
      return x * bound(x * (1.0f / 6.0f) + 0.5f, (VECTOR)0.0f, (VECTOR)1.0f);
    case GELU:
      return 0.5f * x * (1.0f + error_function(x * 0.70710678f));
    case GELU_TANH:
      return 0.5f * x * (1.0f + hyperbolic_tangent(0.79788456f * fma(0.044715f * x * x, x, x)));
    case SOFTPLUS:
      return at_least(x, (VECTOR)0.0f) + log1p(exponential(-fabs(x)));
    case ERF:
      return error_function(x);
    case EXP:
      return exponential(x);
    case LOG:
      return log(x);
    case SQRT:
      return sqrt(x);
    case RECIPROCAL:
      return 1.0f / x;
    case ABS:
      return fabs(x);
    case NEG:
      return -x;
    case FLOOR:
      return floor(x);
    case CEIL:
      return ceil(x);
    case SIN:
      return sin(x);
    case COS:
      return cos(x);
    default:
      return x;
  }
}

// The first `count` lanes of a vector, `fill` in the others; nothing behind them is read. Halves
// rather than single elements: a vector read back from single stores stalls.
float4 load_4_or(__global const float* p, int count, float fill) {
  if (count >= 4) return vload4(0, p);
  float4 v = (float4)fill;
  if (count >= 1) v.x = p[0];
  if (count >= 2) v.y = p[1];
  if (count >= 3) v.z = p[2];
  return v;
}

float8 load_8_or(__global const float* p, int count, float fill) {
  if (count >= 8) return vload8(0, p);
  return count >= 4 ? (float8)(vload4(0, p), load_4_or(p + 4, count - 4, fill))
                    : (float8)(load_4_or(p, count, fill), (float4)fill);
}

VECTOR load_or(__global const float* p, int count, float fill) {
#if LANES == 1
  return *p;
#elif LANES == 4
  return load_4_or(p, count, fill);
#else
  if (count >= 16) return vload16(0, p);
  return count >= 8 ? (float16)(vload8(0, p), load_8_or(p + 8, count - 8, fill))
                    : (float16)(load_8_or(p, count, fill), (float8)fill);
#endif
}

VECTOR load_some(__global const float* p, int count) { return load_or(p, count, 0.0f); }

// Nothing behind the first `count` lanes is written: it may belong to another tensor.
void store_4_some(float4 v, __global float* p, int count) {
  if (count >= 4) {
    vstore4(v, 0, p);
    return;
  }
  if (count >= 1) p[0] = v.x;
  if (count >= 2) p[1] = v.y;
  if (count >= 3) p[2] = v.z;
}

void store_8_some(float8 v, __global float* p, int count) {
  if (count >= 4) {
    vstore4(v.lo, 0, p);
    store_4_some(v.hi, p + 4, count - 4);
  } else {
    store_4_some(v.lo, p, count);
  }
}

void store_some(VECTOR v, __global float* p, int count) {
#if LANES == 1
  *p = v;
#elif LANES == 4
  store_4_some(v, p, count);
#else
  if (count >= 16) {
    vstore16(v, 0, p);
  } else if (count >= 8) {
    vstore8(v.lo, 0, p);
    store_8_some(v.hi, p + 8, count - 8);
  } else {
    store_8_some(v.lo, p, count);
  }
#endif
}
