// Winograd convolution by oneDNN, 3x3 with stride one. It works on blocks of 16 channels: the input
// is copied into them, and the result out of them.
#include <cstring>

#include "lane/cpu/onednn/convolution.h"
#include "lane/cpu/onednn/onednn.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

constexpr int64_t kBlock = 16;

memory::desc blocked(int64_t n, int64_t c, const int64_t size[2]) {
  return {{n, c, size[0], size[1]}, memory::data_type::f32, memory::format_tag::nChw16c};
}

StatusOr<SliceConv> winograd_of(const Problem& p) {
  if (p.op->kind() != OperatorKind::kConv) return unsupported(p.op->name + ": not a convolution");
  std::optional<SliceConv> conv = slice_conv(p);
  if (!conv) return unsupported(p.op->name + ": not a convolution on channels-last tensors");
  const SliceConv& c = *conv;
  for (int i = 0; i < 2; ++i) {
    if (c.kernel[i] != 3 || c.stride[i] != 1 || c.dilation[i] != 1) {
      return unsupported(p.op->name + ": Winograd is for 3x3 with stride one");
    }
  }
  if (c.groups != 1 || c.in_channels % kBlock != 0 || c.out_channels % kBlock != 0) {
    return unsupported(p.op->name + ": Winograd needs one group and multiples of 16 channels");
  }
  return *std::move(conv);
}

dnnl::convolution_forward::primitive_desc descriptor_of(const SliceConv& c) {
  const memory::desc weights({c.out_channels, c.in_channels, 3, 3}, memory::data_type::f32,
                             memory::format_tag::any);
  const memory::desc bias =
      c.has_bias ? memory::desc({c.out_channels}, memory::data_type::f32, memory::format_tag::a)
                 : memory::desc();
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_winograd,
      blocked(c.batch, c.in_channels, c.input), weights, bias,
      blocked(c.batch, c.out_channels, c.output), {1, 1}, {0, 0},
      {c.pad_before[0], c.pad_before[1]}, {c.pad_after[0], c.pad_after[1]});
  return {desc, onednn_engine()};
}

ShapeMemo::Answer ask(const Problem& p, const SliceConv& c) {
  return ask_onednn(p, c, 2, [&] { return descriptor_of(c); });
}

// oneDNN's variant with tiles of 2x2 outputs; the other has 4x4.
bool has_small_tiles(const ShapeMemo::Answer& answer) {
  return answer.variant.find("2x3") != std::string::npos;
}

// Measured on a Zen 5 core with 1 MiB of second-level cache and a shared third-level one, against
// direct convolution, over images of 7x7 to 56x56 and slices of them, 16 to 512 channels. oneDNN
// has two variants. 2x3 (tiles of 2x2 outputs; for images that are whole) takes 0.65 to 0.9 of
// direct's time except on few channels. 4x3 (tiles of 4x4) takes 0.55 to 0.9, but its weights are
// four times the size of direct's, and where they do not stay in cache it takes up to twice as
// long.
bool pays(const Problem& p, const SliceConv& c) {
  // Neither variant pays; oneDNN need not be asked.
  if (c.in_channels < 32 || c.out_channels < 32) return false;
  const ShapeMemo::Answer answer = ask(p, c);
  if (!answer.refusal.empty()) return false;
  const int64_t pixels = c.batch * c.output[0] * c.output[1];
  if (has_small_tiles(answer)) return pixels >= 196 || c.in_channels >= 128;
  constexpr size_t kCachedWeights = 4 << 20, kLargeWeights = 12 << 20;
  if (c.in_channels < 64) return false;
  if (c.out_channels < 64) return pixels >= 196 && c.in_channels <= 128;
  return (answer.weight_bytes <= kCachedWeights && pixels >= 98) ||
         (answer.weight_bytes <= kLargeWeights && pixels >= 784);
}

void copy_to_blocks(const SliceConv& c, float* to, int threads) {
  const int64_t blocks = c.in_channels / kBlock;
  const int64_t row_floats = c.input[1] * kBlock;
  parallel(threads, [&](int index, int parts) {
    const Part part = part_of(c.batch * c.input[0], index, parts);
    for (int64_t i = part.begin; i < part.end; ++i) {
      const int64_t n = i / c.input[0], h = i % c.input[0];
      const float* from = c.x + n * c.x_strides[0] + h * c.x_strides[1];
      for (int64_t b = 0; b < blocks; ++b) {
        float* row = to + ((n * blocks + b) * c.input[0] + h) * row_floats;
        for (int64_t w = 0; w < c.input[1]; ++w) {
          std::memcpy(row + w * kBlock, from + w * c.x_strides[2] + b * kBlock,
                      kBlock * sizeof(float));
        }
      }
    }
  });
}

class OneDnnWinograd : public Implementation {
 public:
  const char* name() const override { return "onednn_winograd"; }

  Status supports(const Problem& p) const override {
    TANDEM_ASSIGN_OR_RETURN(const SliceConv c, winograd_of(p));
    const ShapeMemo::Answer answer = ask(p, c);
    return answer.refusal.empty() ? Status() : unsupported(p.op->name + ": " + answer.refusal);
  }

  void describe(const Problem& p, ImplementationInfo& info) const override {
    const StatusOr<SliceConv> conv = winograd_of(p);
    if (!conv.ok()) return;
    const ShapeMemo::Answer answer = ask(p, *conv);
    const int64_t outputs = has_small_tiles(answer) ? 2 : 4;  // of a tile, along each axis
    const auto tiles = [&](int axis) { return (conv->output[axis] + outputs - 1) / outputs; };
    info.dispatches = 3;
    info.work_groups = conv->batch * tiles(0) * tiles(1);
    info.computed_flops =
        2.0 *
        static_cast<double>(info.work_groups * (outputs + 2) * (outputs + 2) * conv->in_channels) *
        static_cast<double>(conv->out_channels);
    info.library_variant = answer.variant;
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    TANDEM_ASSIGN_OR_RETURN(const SliceConv c, winograd_of(p));
    try {
      const dnnl::convolution_forward::primitive_desc descriptor = descriptor_of(c);
      const dnnl::convolution_forward primitive(descriptor);
      const std::shared_ptr<const float> weights =
          reordered_weights(c, descriptor.weights_desc(), resources);
      const size_t src_bytes = descriptor.src_desc().get_size();
      resources.reserve_scratch(src_bytes + descriptor.dst_desc().get_size());
      // Addresses in scratch are filled in at each run.
      memory src(descriptor.src_desc(), onednn_engine(), nullptr);
      memory dst(descriptor.dst_desc(), onednn_engine(), nullptr);
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, src},
          {DNNL_ARG_WEIGHTS,
           memory(descriptor.weights_desc(), onednn_engine(), const_cast<float*>(weights.get()))},
          {DNNL_ARG_DST, dst}};
      if (c.has_bias) {
        arguments.insert({DNNL_ARG_BIAS, memory(descriptor.bias_desc(), onednn_engine(),
                                                const_cast<float*>(c.bias))});
      }
      return make_kernel(
          [=, &resources, conv = c, threads = p.threads, name = p.op->name]() mutable {
            float* const input = resources.scratch();
            float* const output = input + src_bytes / sizeof(float);
            copy_to_blocks(conv, input, threads);
            try {
              src.set_data_handle(input);
              dst.set_data_handle(output);
              primitive.execute(onednn_stream(), arguments);
              onednn_stream().wait();
            } catch (const dnnl::error& error) {
              return internal_error(name + ": oneDNN: " + error.what());
            }
            const int64_t row = conv.output[1] * kBlock, plane = conv.output[0] * row;
            finish_slice(conv,
                         {output, {conv.out_channels / kBlock * plane, row, kBlock}, kBlock, plane},
                         conv.activation, threads);
            return Status();
          });
    } catch (const dnnl::error& error) {
      return internal_error(p.op->name + ": oneDNN: " + error.what());
    }
  }
};

}  // namespace

bool onednn_winograd_pays(const Problem& problem) {
  const StatusOr<SliceConv> conv = winograd_of(problem);
  return conv.ok() && pays(problem, *conv);
}

const Implementation& onednn_winograd() {
  static const OneDnnWinograd implementation;
  return implementation;
}

}  // namespace tandem::cpu
