// What all kernels share. LANES, the width of the vector type, is a build option.
//
// One source serves two kinds of devices. On a CPU a work-group has one work-item (WORK_ITEMS is 1),
// which loops over its share with wide vectors; on a GPU the work-items of a group take turns along
// the innermost dimension, so that neighbours access neighbouring memory.

#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)

#if LANES == 1
#define VECTOR float
#define INTS int
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define AS_VECTOR(x) as_float(x)
#define TO_INTS(x) convert_int_rte(x)
#define CHOOSE(no, yes, condition) ((condition) ? (yes) : (no))
#else
#define VECTOR CONCAT(float, LANES)
#define INTS CONCAT(int, LANES)
#define LOAD(p) CONCAT(vload, LANES)(0, (p))
#define STORE(v, p) CONCAT(vstore, LANES)((v), 0, (p))
#define AS_VECTOR(x) CONCAT(as_float, LANES)(x)
#define TO_INTS(x) CONCAT(CONCAT(convert_int, LANES), _rte)(x)
#define CHOOSE(no, yes, condition) select((no), (yes), (condition))
#endif

// Within 2 ulp where the result is a normal number; zero below that. The library's vector exp is
// computed element by element by some compilers.
VECTOR exponential(VECTOR x) {
  const VECTOR bounded = min(max(x, (VECTOR)-87.3f), (VECTOR)88.72f);
  const VECTOR n = rint(bounded * 1.44269504f);
  const VECTOR r = fma(n, (VECTOR)2.12194440e-4f, fma(n, (VECTOR)-0.693359375f, bounded));
  VECTOR p = (VECTOR)1.9875691500e-4f;
  p = fma(p, r, (VECTOR)1.3981999507e-3f);
  p = fma(p, r, (VECTOR)8.3334519073e-3f);
  p = fma(p, r, (VECTOR)4.1665795894e-2f);
  p = fma(p, r, (VECTOR)1.6666665459e-1f);
  p = fma(p, r, (VECTOR)5.0000001201e-1f);
  p = fma(p, r * r, r + 1.0f);
  // 2^n in two factors, as 2^128 has no float of its own.
  const INTS whole = TO_INTS(n);
  const INTS half_of = whole >> 1;
  const VECTOR scale_a = AS_VECTOR((half_of + 127) << 23);
  const VECTOR scale_b = AS_VECTOR((whole - half_of + 127) << 23);
  const VECTOR result = p * scale_a * scale_b;
  return CHOOSE(CHOOSE(result, (VECTOR)INFINITY, x > 88.72f), (VECTOR)0.0f, x < -87.3f);
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
  return copysign(1.0f - p * t * exponential(-magnitude * magnitude), x);
}

VECTOR sigmoid(VECTOR x) { return 1.0f / (1.0f + exponential(-x)); }

VECTOR hyperbolic_tangent(VECTOR x) { return 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f); }

// The functions of graph/operator.h.
VECTOR activate(VECTOR x, int function, float alpha, float beta) {
  switch (function) {
    case RELU:
      return max(x, (VECTOR)0.0f);
    case CLIP:
      return min(max(x, (VECTOR)alpha), (VECTOR)beta);
    case LEAKY_RELU:
      return CHOOSE(x, alpha * x, x < 0.0f);
    case ELU:
      return CHOOSE(x, alpha * (exponential(x) - 1.0f), x < 0.0f);
    case SIGMOID:
      return sigmoid(x);
    case HARD_SIGMOID:
      return min(max(alpha * x + beta, (VECTOR)0.0f), (VECTOR)1.0f);
    case TANH:
      return hyperbolic_tangent(x);
    case SILU:
      return x * sigmoid(x);
    case HARD_SWISH:
      return x * min(max(x * (1.0f / 6.0f) + 0.5f, (VECTOR)0.0f), (VECTOR)1.0f);
    case GELU:
      return 0.5f * x * (1.0f + error_function(x * 0.70710678f));
    case GELU_TANH:
      return 0.5f * x *
             (1.0f + hyperbolic_tangent(0.79788456f * fma(0.044715f * x * x, x, x)));
    case SOFTPLUS:
      return max(x, (VECTOR)0.0f) + log1p(exponential(-fabs(x)));
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

// The first `count` lanes of a vector, `fill` in the others; nothing behind them is read.
VECTOR load_or(__global const float* p, int count, float fill) {
#if LANES == 1
  return *p;
#else
  if (count >= LANES) return LOAD(p);
  float lanes[LANES];
  for (int i = 0; i < LANES; ++i) lanes[i] = i < count ? p[i] : fill;
  return LOAD(lanes);
#endif
}

VECTOR load_some(__global const float* p, int count) { return load_or(p, count, 0.0f); }

// Nothing behind the first `count` lanes is written: it may belong to another tensor.
void store_some(VECTOR v, __global float* p, int count) {
#if LANES == 1
  *p = v;
#else
  if (count >= LANES) {
    STORE(v, p);
    return;
  }
  float lanes[LANES];
  STORE(v, lanes);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
#endif
}
