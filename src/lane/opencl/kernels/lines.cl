// Softmax and layer norm. Build option: SOFTMAX, LOG_SOFTMAX or LAYER_NORM is 1. With LANES > 1,
// elements of a line lie one apart. The work-items of a group share a line.

#if LANES == 16
float lanes_sum(float16 v) {
  const float8 a = v.lo + v.hi;
  const float4 b = a.lo + a.hi;
  const float2 c = b.lo + b.hi;
  return c.x + c.y;
}
float lanes_max(float16 v) {
  const float8 a = max(v.lo, v.hi);
  const float4 b = max(a.lo, a.hi);
  const float2 c = max(b.lo, b.hi);
  return max(c.x, c.y);
}
#elif LANES == 4
float lanes_sum(float4 v) { return v.x + v.y + v.z + v.w; }
float lanes_max(float4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }
#else
float lanes_sum(float v) { return v; }
float lanes_max(float v) { return v; }
#endif

#if WORK_ITEMS == 1
#define SHARED_SUM(v) (v)
#define SHARED_MAX(v) (v)
#else
#define SHARED_SUM(v) shared_total((v), scratch, false)
#define SHARED_MAX(v) shared_total((v), scratch, true)
float shared_total(float v, __local float* scratch, bool maximum) {
  const int item = get_local_id(0);
  scratch[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int distance = WORK_ITEMS / 2; distance > 0; distance /= 2) {
    if (item < distance) {
      const float other = scratch[item + distance];
      scratch[item] = maximum ? max(scratch[item], other) : scratch[item] + other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float total = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return total;
}
#endif

// Does something for each vector of the line, at element i with `count` elements; that these are
// mostly whole vectors is known to the compiler.
#define FOR_LINE(...)                                        \
  {                                                          \
    int i = get_local_id(0) * LANES;                         \
    for (; i + LANES <= p.length; i += WORK_ITEMS * LANES) { \
      const int count = LANES;                               \
      __VA_ARGS__;                                           \
    }                                                        \
    if (i < p.length) {                                      \
      const int count = p.length - i;                        \
      __VA_ARGS__;                                           \
    }                                                        \
  }

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void lines(
    __global const float* x, __global const float* scale, __global const float* bias,
    __global float* out, struct LineArguments p) {
#if WORK_ITEMS > 1
  __local float scratch[WORK_ITEMS];
#endif
  const int first_line = get_group_id(0) * p.lines_per_group;
  const int last_line = min(p.lines, first_line + p.lines_per_group);
  for (int line = first_line; line < last_line; ++line) {
    __global const float* from = x + line_offset(line, p.extent, p.a_stride);
    __global float* to = out + line_offset(line, p.extent, p.out_stride);
#if LAYER_NORM
    VECTOR sums = (VECTOR)0.0f;
    FOR_LINE(sums += load_some(from + i * p.a_step, count))
    const float mean = SHARED_SUM(lanes_sum(sums)) / p.length;
    VECTOR squares = (VECTOR)0.0f;
    FOR_LINE(const VECTOR v = load_or(from + i * p.a_step, count, mean) - mean;
             squares = fma(v, v, squares))
    const float factor = 1.0f / sqrt(SHARED_SUM(lanes_sum(squares)) / p.length + p.epsilon);
    FOR_LINE(const VECTOR v = (load_some(from + i * p.a_step, count) - mean) * factor;
             store_some(fma(v, LOAD(scale + i), LOAD(bias + i)), to + i * p.out_step, count))
#else
    VECTOR greatest = (VECTOR)-INFINITY;
    FOR_LINE(greatest = max(greatest, load_or(from + i * p.a_step, count, -INFINITY)))
    const float top = SHARED_MAX(lanes_max(greatest));
    VECTOR sums = (VECTOR)0.0f;
#if LOG_SOFTMAX
    FOR_LINE(sums += exponential_down(load_or(from + i * p.a_step, count, -INFINITY) - top))
    const float shift = top + log(SHARED_SUM(lanes_sum(sums)));
    FOR_LINE(store_some(load_some(from + i * p.a_step, count) - shift, to + i * p.out_step, count))
#else
    FOR_LINE(const VECTOR v = exponential_down(load_or(from + i * p.a_step, count, -INFINITY) - top);
             sums += v; store_some(v, to + i * p.out_step, count))
    const float factor = 1.0f / SHARED_SUM(lanes_sum(sums));
    FOR_LINE(__global float* at = to + i * p.out_step;
             store_some(load_some(at, count) * factor, at, count))
#endif
#endif
  }
}
