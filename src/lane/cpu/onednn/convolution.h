// What the oneDNN convolutions have in common: a slice as a dense problem of its own.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <optional>

#include "lane/cpu/kernel.h"

namespace tandem::cpu {

// A convolution (or a linear operator, as a 1x1 convolution over its rows) restricted to a slice:
// the input rows and channels that it reads, with pads of its own. Batch, channels and rows are
// extents of the box; strides in elements.
struct SliceConv {
  int64_t batch = 1, in_channels = 0, out_channels = 0, groups = 1;
  int64_t input[2] = {0, 0}, output[2] = {0, 0};
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t pad_before[2] = {0, 0}, pad_after[2] = {0, 0};
  bool has_bias = false;
  Activation activation;

  // Lower corners; strides n, h, w, channels contiguous.
  const float* x = nullptr;
  int64_t x_strides[3] = {0, 0, 0};
  float* y = nullptr;
  int64_t y_strides[3] = {0, 0, 0};
  const float* residual = nullptr;  // or null
  int64_t residual_strides[3] = {0, 0, 0};

  // Dense OIHW weights (for a linear operator: a matrix [in][out], out_stride below) and the bias
  // of the slice's channels.
  const float* weights = nullptr;
  int64_t weight_out_stride = 0, weight_in_stride = 0;
  const float* bias = nullptr;
  std::string weights_key;  // names weights and channels

  // Channels-last without gaps.
  bool input_is_dense() const;
  bool output_is_dense() const;
};

// Nothing if the operator is no convolution, or memory is laid out in another way.
std::optional<SliceConv> slice_conv(const Problem& problem);

dnnl::engine& onednn_engine();
// A stream per thread: streams are not for sharing.
dnnl::stream& onednn_stream();

// Whether oneDNN would run its reference code, by its name of an implementation.
bool is_reference(const std::string& implementation_info);

// What oneDNN would run for the convolution; `tag` tells apart those who ask. `describe` returns
// the primitive's descriptor and may throw. Reference code is refused.
ShapeMemo::Answer ask_onednn(
    const Problem& problem, const SliceConv& conv, int64_t tag,
    const std::function<dnnl::convolution_forward::primitive_desc()>& describe);

// oneDNN's name of the activation; nothing if it has none that does the same.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha, beta;
};
std::optional<Eltwise> as_eltwise(const Activation& activation);

// Weights in the order that a primitive wants, shared by the slices that want the same.
std::shared_ptr<const float> reordered_weights(const SliceConv& conv,
                                               const dnnl::memory::desc& wanted,
                                               Resources& resources);

// y = activation(from + residual) over the slice. `from` has the given strides (n, h, w, block of
// `block` channels); block is the channel count where channels are contiguous.
struct Source {
  const float* data;
  int64_t strides[3];
  int64_t block, block_stride;
};
void finish_slice(const SliceConv& conv, const Source& source, const Activation& activation,
                  int threads);

}  // namespace tandem::cpu
