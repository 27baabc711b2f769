// Walking over boxes of BOX_RANK dimensions.

// Offset of row number `row`: a combination of all coordinates but the last.
long row_offset(int row, const int* extent, const long* stride) {
  long offset = 0;
  for (int d = BOX_LAST - 1; row > 0; --d) {
    offset += row % extent[d] * stride[d];
    row /= extent[d];
  }
  return offset;
}

// The same where the last dimension counts too.
long line_offset(int line, const int* extent, const long* stride) {
  return line % extent[BOX_LAST] * stride[BOX_LAST] +
         row_offset(line / extent[BOX_LAST], extent, stride);
}

// Offset of matrix number `index` of three batch dimensions.
long batch_offset(int index, const int* extent, const long* stride) {
  const int inner = index % extent[2];
  const int middle = index / extent[2] % extent[1];
  const int outer = index / extent[2] / extent[1];
  return outer * stride[0] + middle * stride[1] + inner * stride[2];
}

// The share of a box that a work-item takes: rows [FIRST_ROW, END_ROW), and of each the elements
// [FIRST_COLUMN, END_COLUMN), LANES at a time. On a CPU these are whole rows, or as much of a row
// as COLUMN_SHARE says; on a GPU one vector.
#if WORK_ITEMS == 1
#define FIRST_ROW ((int)get_group_id(0) * p.rows_per_group)
#define END_ROW min(p.rows, (int)(get_group_id(0) + 1) * p.rows_per_group)
#define FIRST_COLUMN ((int)get_group_id(1) * COLUMN_SHARE)
#define END_COLUMN min(p.extent[BOX_LAST], (int)(get_group_id(1) + 1) * COLUMN_SHARE)
#else
#define ROW_VECTORS ((p.extent[BOX_LAST] + LANES - 1) / LANES)
#define FIRST_ROW ((int)get_global_id(0) / ROW_VECTORS)
#define END_ROW min(p.rows, FIRST_ROW + 1)
#define FIRST_COLUMN ((int)get_global_id(0) % ROW_VECTORS * LANES)
#define END_COLUMN min(p.extent[BOX_LAST], FIRST_COLUMN + LANES)
#endif

// The share of images: lines [FIRST_LINE, END_LINE) of all images' lines, pixels [FIRST_X, END_X) of
// each, channels [FIRST_CHANNEL, END_CHANNEL) of those. On a CPU whole lines, on a GPU one vector.
#if WORK_ITEMS == 1
#define FIRST_LINE ((int)get_group_id(0) * p.lines_per_group)
#define END_LINE min(p.images * p.box_height, (int)(get_group_id(0) + 1) * p.lines_per_group)
#define FIRST_X 0
#define END_X p.box_width
#define FIRST_CHANNEL ((int)get_group_id(1) * p.channels_per_group)
#define END_CHANNEL min(p.channels, (int)(get_group_id(1) + 1) * p.channels_per_group)
#else
#define PIXEL_VECTORS ((p.channels + LANES - 1) / LANES)
#define PIXEL ((int)get_global_id(0) / PIXEL_VECTORS)
#define FIRST_LINE (PIXEL / p.box_width)
#define END_LINE min(p.images * p.box_height, FIRST_LINE + 1)
#define FIRST_X (PIXEL % p.box_width)
#define END_X (FIRST_X + 1)
#define FIRST_CHANNEL ((int)get_global_id(0) % PIXEL_VECTORS * LANES)
#define END_CHANNEL min(p.channels, FIRST_CHANNEL + LANES)
#endif
