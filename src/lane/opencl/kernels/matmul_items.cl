// Batched products of two activations on devices with many work-items to a group (item_product.cl).
// Build options: A_ROWS_FIRST: rows of a, B_COLUMNS_FIRST: columns of b lie one apart; what lies
// one apart is loaded side by side.

#define LOADED_ROWS (GROUP_ROWS * DEPTH / SLICE_ITEMS)
#define LOADED_COLUMNS (GROUP_COLUMNS * DEPTH / SLICE_ITEMS)

__attribute__((reqd_work_group_size(WORK_ITEMS, 1, 1))) __kernel void matmul_items(
    __global const float* a, __global const float* b, __global float* c, struct MatMulArguments p) {
  __local float4 memory[K_SLICES * LOCAL_FLOATS / 4];
  __local float* staged = (__local float*)memory;
  const int item = get_local_id(0) % SLICE_ITEMS;
  const int slice = get_local_id(0) / SLICE_ITEMS;
  const int item_x = item % ITEMS_X;
  const int item_y = item / ITEMS_X;
  __local float* rows = staged + slice * LOCAL_FLOATS;
  __local float* columns = rows + DEPTH * ROW_PITCH;
  const int first_row = get_group_id(0) * GROUP_ROWS;
  const int first_column = get_group_id(1) * GROUP_COLUMNS;
  a += batch_offset(get_group_id(2), p.batch, p.a_batch);
  b += batch_offset(get_group_id(2), p.batch, p.b_batch);
  c += batch_offset(get_group_id(2), p.batch, p.c_batch);

  float4 sums[ITEM_SUMS];
#pragma unroll
  for (int n = 0; n < ITEM_SUMS; ++n) sums[n] = (float4)0.0f;

  for (int block = 0; block < p.depth; block += DEPTH * K_SLICES) {
    const int start = block + slice * DEPTH;
#pragma unroll
    for (int i = 0; i < LOADED_ROWS; ++i) {
      const int place = item + i * SLICE_ITEMS;
#if A_ROWS_FIRST
      const int row = place % GROUP_ROWS;
      const int k = place / GROUP_ROWS;
#else
      const int row = place / DEPTH;
      const int k = place % DEPTH;
#endif
      const bool exists = first_row + row < p.rows && start + k < p.depth;
      rows[k * ROW_PITCH + row] =
          exists ? a[(first_row + row) * p.a_row + (start + k) * p.a_depth] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < LOADED_COLUMNS; ++i) {
      const int place = item + i * SLICE_ITEMS;
#if B_COLUMNS_FIRST
      const int column = place % GROUP_COLUMNS;
      const int k = place / GROUP_COLUMNS;
#else
      const int column = place / DEPTH;
      const int k = place % DEPTH;
#endif
      const bool exists = first_column + column < p.columns && start + k < p.depth;
      columns[k * COLUMN_PITCH + column] =
          exists ? b[(start + k) * p.b_depth + (first_column + column) * p.b_column] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    MULTIPLY_STAGED(sums, rows, columns, item_x, item_y)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  add_slices(sums, staged, slice, item);
  if (slice > 0) return;
#pragma unroll
  for (int n = 0; n < ITEM_SUMS; ++n) {
    const int row = first_row + ROW_OF(n / COLUMN_QUADS, item_y);
    const int column = first_column + COLUMN_OF(n % COLUMN_QUADS, item_x);
    if (row < p.rows && column < p.columns) {
      store_some(sums[n] * p.scale, c + row * p.c_row + column, p.columns - column);
    }
  }
}
