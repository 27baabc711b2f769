// Moving elements. Build options: ELEMENT, float or long; COPY, PAD, RESHAPE or GATHER is 1.

#if LANES == 1
#define MOVE(from, to) (*(to) = *(from))
#else
#define MOVE(from, to) CONCAT(vstore, LANES)(CONCAT(vload, LANES)(0, (from)), 0, (to))
#endif

void move_some(__global const ELEMENT* from, __global ELEMENT* to, int count) {
  if (count >= LANES) {
    MOVE(from, to);
    return;
  }
  for (int i = 0; i < count; ++i) to[i] = from[i];
}

#if COPY
#define COLUMN_SHARE p.columns_per_group
#else
#define COLUMN_SHARE p.extent[BOX_LAST]
#endif

#if COPY
__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void copy(
    __global const ELEMENT* a, __global ELEMENT* out, struct ElementwiseArguments p) {
  const int first_row = FIRST_ROW;
  const int last_row = END_ROW;
  const int first = FIRST_COLUMN;
  const int last = END_COLUMN;
  for (int row = first_row; row < last_row; ++row) {
    __global const ELEMENT* a_row = a + row_offset(row, p.extent, p.a_stride);
    __global ELEMENT* out_row = out + row_offset(row, p.extent, p.out_stride);
    for (int i = first; i < last; i += LANES) {
      move_some(a_row + i * p.a_stride[BOX_LAST], out_row + i * p.out_stride[BOX_LAST],
                min(LANES, last - i));
    }
  }
}
#endif

#if PAD
// Where coordinate i of the padded source lies in the source, or -1 for the constant.
int unpadded(int i, int extent, int mode) {
  if (i >= 0 && i < extent) return i;
  if (mode == 0) return -1;
  if (mode == 2) return clamp(i, 0, extent - 1);
  // Mirrored, the edge itself not repeated, as often as it takes.
  const int period = 2 * (extent - 1);
  if (period == 0) return 0;
  const int phase = (i % period + period) % period;
  return phase < extent ? phase : period - phase;
}

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void pad(__global const ELEMENT* a,
                                                                          __global ELEMENT* out,
                                                                          struct PadArguments p) {
  const int first_row = FIRST_ROW;
  const int last_row = END_ROW;
  for (int row = first_row; row < last_row; ++row) {
    __global ELEMENT* out_row = out + row_offset(row, p.extent, p.out_stride);
    long from = 0;
    bool constant_row = false;
    for (int d = BOX_LAST - 1, rest = row; d >= 0; --d) {
      const int i = unpadded(rest % p.extent[d] + p.first[d], p.source[d], p.mode);
      constant_row = constant_row || i < 0;
      from += i * p.a_stride[d];
      rest /= p.extent[d];
    }
    for (int i = FIRST_COLUMN; i < END_COLUMN; ++i) {
      const int at = unpadded(i + p.first[BOX_LAST], p.source[BOX_LAST], p.mode);
      out_row[i * p.out_stride[BOX_LAST]] =
          constant_row || at < 0 ? (ELEMENT)p.value : a[from + at * p.a_stride[BOX_LAST]];
    }
  }
}
#endif

#if RESHAPE
__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void reshape(
    __global const ELEMENT* a, __global ELEMENT* out, struct ReshapeArguments p) {
  const int first_row = FIRST_ROW;
  const int last_row = END_ROW;
  for (int row = first_row; row < last_row; ++row) {
    __global ELEMENT* out_row = out + row_offset(row, p.extent, p.out_stride);
    const long number = p.first_number + row_offset(row, p.extent, p.number);
    for (int i = FIRST_COLUMN; i < END_COLUMN; ++i) {
      out_row[i * p.out_stride[BOX_LAST]] =
          a[line_offset((int)(number + i * p.number[BOX_LAST]), p.source, p.a_stride)];
    }
  }
}
#endif

#if GATHER
__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void gather(
    __global const ELEMENT* x, __global const long* indices, __global ELEMENT* out,
    struct GatherArguments p) {
  const int first_row = FIRST_ROW;
  const int last_row = END_ROW;
  for (int row = first_row; row < last_row; ++row) {
    __global const ELEMENT* x_row = x + row_offset(row, p.extent, p.x_stride);
    __global const long* index_row = indices + row_offset(row, p.extent, p.index_stride);
    __global ELEMENT* out_row = out + row_offset(row, p.extent, p.out_stride);
    for (int i = FIRST_COLUMN; i < END_COLUMN; i += LANES) {
      const long index = index_row[i * p.index_stride[BOX_LAST]];
      // An index out of range has no meaning, but must not make the device read elsewhere.
      const long at = clamp(index < 0 ? index + p.axis_extent : index, 0L, p.axis_extent - 1L);
      move_some(x_row + at * p.axis_stride + i * p.x_stride[BOX_LAST],
                out_row + i * p.out_stride[BOX_LAST], min(LANES, p.extent[BOX_LAST] - i));
    }
  }
}
#endif
