// Functions of one and two tensors. Build option BINARY. With LANES > 1, elements lie one apart
// along the last dimension, or an operand is the same all along it.

#define COLUMN_SHARE p.columns_per_group

VECTOR operand(__global const float* p, long stride, int count) {
  return stride == 0 ? (VECTOR)*p : load_some(p, count);
}

#if BINARY
VECTOR combine(VECTOR a, VECTOR b, int operation) {
  switch (operation) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return a / b;
    case 4:
      return pow(a, b);
    case 5:
      return b != b ? b : (a < b ? b : a);  // a NaN on either side stays one
    default:
      return b != b ? b : (b < a ? b : a);
  }
}
#endif

#if BINARY
#define OPERATE(count)                                \
  combine(operand(a_row + i * a_step, a_step, count), \
          operand(b_row + i * p.b_stride[BOX_LAST], p.b_stride[BOX_LAST], count), p.operation)
#else
#define OPERATE(count) operand(a_row + i * a_step, a_step, count)
#endif

#define COMPUTE(count)                                              \
  store_some(activate(OPERATE(count), p.function, p.alpha, p.beta), \
             out_row + i * p.out_stride[BOX_LAST], count);

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void elementwise(
    __global const float* a, __global const float* b, __global float* out,
    struct ElementwiseArguments p) {
  const int first_row = FIRST_ROW;
  const int last_row = END_ROW;
  const int first = FIRST_COLUMN;
  const int last = END_COLUMN;
  const long a_step = p.a_stride[BOX_LAST];
  for (int row = first_row; row < last_row; ++row) {
    __global const float* a_row = a + row_offset(row, p.extent, p.a_stride);
    __global float* out_row = out + row_offset(row, p.extent, p.out_stride);
#if BINARY
    __global const float* b_row = b + row_offset(row, p.extent, p.b_stride);
#endif
    int i = first;
    for (; i + LANES <= last; i += LANES) {
      COMPUTE(LANES)
    }
    if (i < last) {
      COMPUTE(last - i)
    }
  }
}
