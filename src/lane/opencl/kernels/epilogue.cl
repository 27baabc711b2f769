// What follows the sums of a convolution or linear: bias, residual, activation.

// The functions that are but bounds are applied as such, without a look at which one it is.
bool is_bounds(struct TileArguments p) {
  return p.function == IDENTITY || p.function == RELU || p.function == CLIP;
}
float lower_bound(struct TileArguments p) {
  return p.function == RELU ? 0.0f : p.function == CLIP ? p.alpha : -INFINITY;
}
float upper_bound(struct TileArguments p) { return p.function == CLIP ? p.beta : INFINITY; }

// The bias of 16 channels from `channel` of the box on.
float16 load_bias(__global const float* bias, int channel, struct TileArguments p) {
  return p.has_bias ? vload16(p.first_panel + channel / PANEL, bias) : 0.0f;
}
