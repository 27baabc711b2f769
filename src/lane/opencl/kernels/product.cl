// The inner loop of matrix products on devices with one work-item per group.

//
// TILE_PITCH, a build option, is the distance between the rows of a staged operand: a constant, so
// that the inner loop addresses all of them from one register.

#define PANEL 16

#define LOAD_TILE(sums, saved)                                          \
  _Pragma("unroll") for (int i = 0; i < TILE_PANELS * TILE_ROWS; ++i) { \
    sums[i / TILE_ROWS][i % TILE_ROWS] = (saved)[i];                    \
  }

#define CLEAR_TILE(sums)                                                \
  _Pragma("unroll") for (int i = 0; i < TILE_PANELS * TILE_ROWS; ++i) { \
    sums[i / TILE_ROWS][i % TILE_ROWS] = (float16)0.0f;                 \
  }

#define SAVE_TILE(sums, saved)                                          \
  _Pragma("unroll") for (int i = 0; i < TILE_PANELS * TILE_ROWS; ++i) { \
    (saved)[i] = sums[i / TILE_ROWS][i % TILE_ROWS];                    \
  }

// Sums over `depth` staged elements: TILE_ROWS rows at a, TILE_PANELS panels at b.
#define MULTIPLY_TILE(sums, a, b, panel_stride, depth)          \
  for (int k = 0; k < (depth); ++k) {                           \
    float16 weights[TILE_PANELS];                               \
    _Pragma("unroll") for (int i = 0; i < TILE_PANELS; ++i) {   \
      weights[i] = vload16(k, (b) + i * (panel_stride));        \
    }                                                           \
    _Pragma("unroll") for (int m = 0; m < TILE_ROWS; ++m) {     \
      const float16 x = (float16)((a)[m * TILE_PITCH + k]);     \
      _Pragma("unroll") for (int i = 0; i < TILE_PANELS; ++i) { \
        sums[i][m] = fma(x, weights[i], sums[i][m]);            \
      }                                                         \
    }                                                           \
  }
