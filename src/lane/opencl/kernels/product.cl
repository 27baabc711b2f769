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

// Weights that will be read next are brought nearer meanwhile: one line of cache for every step of
// the summed index, which is what a first pass over weights in memory is short of. The devices that
// run this are host CPUs, where any address is a plain one.
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch) && !defined(__NVPTX__)
#define PREFETCH(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(p) ((void)(p))
#endif

// Sums over `depth` staged elements: TILE_ROWS rows at a, TILE_PANELS panels at b. `ahead`: as many
// vectors that will be needed soon.
#define MULTIPLY_TILE_AHEAD(sums, a, b, panel_stride, depth, ahead) \
  for (int k = 0; k < (depth); ++k) {                               \
    float16 weights[TILE_PANELS];                                   \
    PREFETCH((ahead) + k * PANEL);                                  \
    _Pragma("unroll") for (int i = 0; i < TILE_PANELS; ++i) {       \
      weights[i] = vload16(k, (b) + i * (panel_stride));            \
    }                                                               \
    _Pragma("unroll") for (int m = 0; m < TILE_ROWS; ++m) {         \
      const float16 x = (float16)((a)[m * TILE_PITCH + k]);         \
      _Pragma("unroll") for (int i = 0; i < TILE_PANELS; ++i) {     \
        sums[i][m] = fma(x, weights[i], sums[i][m]);                \
      }                                                             \
    }                                                               \
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
