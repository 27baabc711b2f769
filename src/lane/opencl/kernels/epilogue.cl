// What follows the sums of a convolution or linear: bias, residual, activation.

// The functions that are but bounds are applied as such, without a look at which one it is.
bool is_bounds(int function) {
  return function == IDENTITY || function == RELU || function == CLIP;
}
float lower_bound(int function, float alpha) {
  return function == RELU ? 0.0f : function == CLIP ? alpha : -INFINITY;
}
float upper_bound(int function, float beta) { return function == CLIP ? beta : INFINITY; }

#if WORK_ITEMS == 1 && defined(TILE_ROWS)

// The bias of 16 channels from `channel` of the box on.
float16 load_bias(__global const float* bias, int channel, struct TileArguments p) {
  return p.has_bias ? vload16(p.first_panel + channel / PANEL, bias) : 0.0f;
}

// Stores a whole tile right from its registers, where the function is but bounds. `ADDED`: what
// else is added to row m of panel i.
#define STORE_ROWS(tile_sums, channel, offsets, ADDED)                                     \
  {                                                                                        \
    const float16 low = (float16)lower_bound(p.function, p.alpha);                         \
    const float16 high = (float16)upper_bound(p.function, p.beta);                         \
    _Pragma("unroll") for (int i = 0; i < TILE_PANELS; ++i) {                              \
      const float16 shift = load_bias(bias, (channel) + i * PANEL, p);                     \
      _Pragma("unroll") for (int m = 0; m < TILE_ROWS; ++m) {                              \
        const float16 v = tile_sums[i][m] + shift ADDED;                                   \
        vstore16(bound(v, low, high), 0, output + (offsets)[m].x + (channel) + i * PANEL); \
      }                                                                                    \
    }                                                                                      \
  }

// Stores a tile of sums, `rows` and `panels` of it, from `channel` of the box on; `saved` is memory
// for it.
#define FINISH_TILE(tile_sums, saved, rows, panels, channel, offsets)             \
  if (is_bounds(p.function) && (rows) == TILE_ROWS && (panels) == TILE_PANELS &&  \
      p.channels - (channel) >= TILE_PANELS * PANEL) {                            \
    if (p.has_residual) {                                                         \
      STORE_ROWS(tile_sums, channel, offsets,                                     \
                 +vload16(0, residual + (offsets)[m].y + (channel) + i * PANEL))  \
    } else {                                                                      \
      STORE_ROWS(tile_sums, channel, offsets, )                                   \
    }                                                                             \
  } else {                                                                        \
    SAVE_TILE(tile_sums, saved)                                                   \
    store_tile(saved, rows, panels, channel, offsets, bias, residual, output, p); \
  }

// Stores a tile whose sums were saved, from `channel` of the box on. Loops over the saved sums
// rather than the registers: unrolled, every function would be there for every accumulator.
void store_tile(__local const float16* sums, int rows, int panels, int channel,
                __local const long2* offsets, __global const float* bias,
                __global const float* residual, __global float* output, struct TileArguments p) {
  const bool bounds = is_bounds(p.function);
  const float16 low = (float16)lower_bound(p.function, p.alpha);
  const float16 high = (float16)upper_bound(p.function, p.beta);
  for (int i = 0; i < panels; ++i, channel += PANEL, sums += TILE_ROWS) {
    const int count = min(PANEL, p.channels - channel);
    const float16 shift = load_bias(bias, channel, p);
    if (bounds && count == PANEL) {
      for (int m = 0; m < rows; ++m) {
        float16 v = sums[m] + shift;
        if (p.has_residual) v += vload16(0, residual + offsets[m].y + channel);
        vstore16(bound(v, low, high), 0, output + offsets[m].x + channel);
      }
    } else {
      for (int m = 0; m < rows; ++m) {
        float16 v = sums[m] + shift;
        if (p.has_residual) v += load_some(residual + offsets[m].y + channel, count);
        store_some(activate(v, p.function, p.alpha, p.beta), output + offsets[m].x + channel,
                   count);
      }
    }
  }
}

#endif
