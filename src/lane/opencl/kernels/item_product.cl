// Matrix products on devices with many work-items to a group.
//
// A group computes GROUP_ROWS x GROUP_COLUMNS outputs, over DEPTH of the summed index at a time:
// its work-items bring that much of both operands into local memory, neighbours next to each other,
// and each multiplies its own ROW_QUADS * 4 rows by COLUMN_QUADS * 4 columns from there. Where
// there are too few outputs to fill a device, K_SLICES parts of a group take turns along the summed
// index, each with outputs of its own, which are added up at the end.
//
// Build options: ITEMS_X, ITEMS_Y: work-items along columns and rows; ROW_QUADS, COLUMN_QUADS,
// K_SLICES.

#define DEPTH 16
#define GROUP_ROWS (ITEMS_Y * ROW_QUADS * 4)
#define GROUP_COLUMNS (ITEMS_X * COLUMN_QUADS * 4)
#define SLICE_ITEMS (ITEMS_X * ITEMS_Y)
// Rows of the staged operands, [depth][row] and [depth][column]; quads stay aligned, and items that
// write down a column meet few of each other in one bank.
#define ROW_PITCH (GROUP_ROWS + 4)
#define COLUMN_PITCH (GROUP_COLUMNS + 4)
#define SLICE_FLOATS (DEPTH * (ROW_PITCH + COLUMN_PITCH))
#define ITEM_SUMS (ROW_QUADS * COLUMN_QUADS * 4)
// The sums of one slice take the place of its operands.
#define LOCAL_FLOATS                                                                        \
  (K_SLICES > 1 && SLICE_ITEMS * ITEM_SUMS * 4 > SLICE_FLOATS ? SLICE_ITEMS * ITEM_SUMS * 4 \
                                                              : SLICE_FLOATS)

// Sum number n of an item belongs to row n / COLUMN_QUADS of its rows, column quad n %
// COLUMN_QUADS.
#define ROW_OF(i, y) ((i) / 4 * (ITEMS_Y * 4) + (y)*4 + (i) % 4)
#define COLUMN_OF(j, x) ((j) * (ITEMS_X * 4) + (x)*4)

float quad_element(float4 v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// Adds the product of what is staged.
#define MULTIPLY_STAGED(sums, rows, columns, x, y)                                        \
  for (int k = 0; k < DEPTH; ++k) {                                                       \
    float4 a[ROW_QUADS], b[COLUMN_QUADS];                                                 \
    _Pragma("unroll") for (int i = 0; i < ROW_QUADS; ++i) {                               \
      a[i] = *(__local const float4*)((rows) + k * ROW_PITCH + ROW_OF(4 * i, y));         \
    }                                                                                     \
    _Pragma("unroll") for (int j = 0; j < COLUMN_QUADS; ++j) {                            \
      b[j] = *(__local const float4*)((columns) + k * COLUMN_PITCH + COLUMN_OF(j, x));    \
    }                                                                                     \
    _Pragma("unroll") for (int n = 0; n < ITEM_SUMS; ++n) {                               \
      const int i = n / COLUMN_QUADS;                                                     \
      sums[n] = fma((float4)quad_element(a[i / 4], i % 4), b[n % COLUMN_QUADS], sums[n]); \
    }                                                                                     \
  }

// The other slices' sums to those of the first. Every item of the group must call it.
void add_slices(float4* sums, __local float* staged, int slice, int item) {
#if K_SLICES > 1
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int n = 0; n < ITEM_SUMS; ++n) {
    ((__local float4*)(staged + slice * LOCAL_FLOATS))[n * SLICE_ITEMS + item] = sums[n];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int n = 0; n < ITEM_SUMS; ++n) {
    for (int other = 1; other < K_SLICES; ++other) {
      sums[n] += ((__local float4*)(staged + other * LOCAL_FLOATS))[n * SLICE_ITEMS + item];
    }
  }
#endif
}
