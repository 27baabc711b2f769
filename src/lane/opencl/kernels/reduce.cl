// Reductions over a box. With LANES > 1, neighbours along the last dimension of the output are
// neighbours in the source, and reduced side by side. Build option SHARED, for many work-items.

#define COLUMN_SHARE p.extent[BOX_LAST]

VECTOR start_value(int kind) {
  switch (kind) {
    case 2:
      return (VECTOR)-INFINITY;
    case 3:
      return (VECTOR)INFINITY;
    case 4:
      return (VECTOR)1.0f;
    default:
      return (VECTOR)0.0f;
  }
}

VECTOR take(VECTOR sum, VECTOR v, int kind) {
  switch (kind) {
    case 2:
      return max(sum, v);
    case 3:
      return min(sum, v);
    case 4:
      return sum * v;
    case 5:
      return fma(v, v, sum);
    default:
      return sum + v;
  }
}

VECTOR finish(VECTOR sum, int kind, float factor) {
  switch (kind) {
    case 0:
      return sum * factor;
    case 5:
      return sqrt(sum);
    default:
      return sum;
  }
}

#if SHARED

// For few outputs: a group to each vector of them, whose work-items take turns along what is
// reduced.
__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void reduce(
    __global const float* a, __global float* out, struct ReduceArguments p) {
  __local VECTOR shares[WORK_ITEMS];
  const int item = get_local_id(0);
  const int row_vectors = (p.extent[BOX_LAST] + LANES - 1) / LANES;
  const int row = get_group_id(0) / row_vectors;
  const int i = get_group_id(0) % row_vectors * LANES;
  const int count = min(LANES, p.extent[BOX_LAST] - i);
  const int inner = p.reduced_extent[BOX_LAST];
  __global const float* from = a + row_offset(row, p.extent, p.a_stride) + i * p.a_stride[BOX_LAST];
  VECTOR sum = start_value(p.kind);
  for (int n = item; n < p.reduced_rows * inner; n += WORK_ITEMS) {
    const long at = row_offset(n / inner, p.reduced_extent, p.reduced_stride) +
                    n % inner * p.reduced_stride[BOX_LAST];
    sum = take(sum, load_some(from + at, count), p.kind);
  }
  shares[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int distance = WORK_ITEMS / 2; distance > 0; distance /= 2) {
    if (item < distance) {
      const VECTOR other = shares[item + distance];
      shares[item] = p.kind == 5 ? shares[item] + other : take(shares[item], other, p.kind);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) {
    store_some(finish(shares[0], p.kind, p.factor),
               out + row_offset(row, p.extent, p.out_stride) + i * p.out_stride[BOX_LAST], count);
  }
}

#else

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void reduce(
    __global const float* a, __global float* out, struct ReduceArguments p) {
  const int first_row = FIRST_ROW;
  const int last_row = END_ROW;
  for (int row = first_row; row < last_row; ++row) {
    __global const float* a_row = a + row_offset(row, p.extent, p.a_stride);
    __global float* out_row = out + row_offset(row, p.extent, p.out_stride);
    for (int i = FIRST_COLUMN; i < END_COLUMN; i += LANES) {
      const int count = min(LANES, p.extent[BOX_LAST] - i);
      VECTOR total = start_value(p.kind);
      for (int r = 0; r < p.reduced_rows; ++r) {
        __global const float* from =
            a_row + i * p.a_stride[BOX_LAST] + row_offset(r, p.reduced_extent, p.reduced_stride);
        // Sums of rows apart from the total: less is lost to rounding in long reductions.
        VECTOR sum = start_value(p.kind);
        for (int j = 0; j < p.reduced_extent[BOX_LAST]; ++j) {
          sum = take(sum, load_some(from + j * p.reduced_stride[BOX_LAST], count), p.kind);
        }
        total = p.kind == 5 ? total + sum : take(total, sum, p.kind);
      }
      store_some(finish(total, p.kind, p.factor), out_row + i * p.out_stride[BOX_LAST], count);
    }
  }
}

#endif
