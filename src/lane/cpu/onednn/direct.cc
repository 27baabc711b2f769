// Direct convolution on channels-last memory by oneDNN. It wants input and output without gaps;
// where the output is a view of a larger tensor, or a residual is added, it writes to scratch and a
// second pass moves the result.
#include <algorithm>

#include "lane/cpu/onednn/convolution.h"
#include "lane/cpu/onednn/onednn.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

struct Direct {
  SliceConv conv;
  bool through_scratch = false;
};

// What the second pass still has to apply.
Activation second_pass(const Direct& d) {
  return d.through_scratch ? d.conv.activation : Activation{};
}

memory::desc channels_last(int64_t n, int64_t c, const int64_t size[2]) {
  return {{n, c, size[0], size[1]}, memory::data_type::f32, memory::format_tag::nhwc};
}

StatusOr<Direct> direct_of(const Problem& p) {
  std::optional<SliceConv> conv = slice_conv(p);
  if (!conv) return unsupported(p.op->name + ": not a convolution on channels-last tensors");
  if (!conv->input_is_dense()) {
    return unsupported(p.op->name + ": the input has gaps between its pixels");
  }
  const bool fuses =
      as_eltwise(conv->activation) || conv->activation.function == Function::kIdentity;
  const bool through_scratch = !conv->output_is_dense() || conv->residual != nullptr || !fuses;
  return Direct{*std::move(conv), through_scratch};
}

dnnl::convolution_forward::primitive_desc descriptor_of(const Direct& d) {
  const SliceConv& c = d.conv;
  dnnl::primitive_attr attributes;
  const std::optional<Eltwise> eltwise = as_eltwise(c.activation);
  if (!d.through_scratch && eltwise) {
    dnnl::post_ops post_ops;
    post_ops.append_eltwise(1.0f, eltwise->algorithm, eltwise->alpha, eltwise->beta);
    attributes.set_post_ops(post_ops);
  }
  memory::dims weights{c.out_channels, c.in_channels / c.groups, c.kernel[0], c.kernel[1]};
  if (c.groups > 1) {
    weights[0] /= c.groups;
    weights.insert(weights.begin(), c.groups);
  }
  const memory::desc any_weights(weights, memory::data_type::f32, memory::format_tag::any);
  const memory::desc bias =
      c.has_bias ? memory::desc({c.out_channels}, memory::data_type::f32, memory::format_tag::a)
                 : memory::desc();
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      channels_last(c.batch, c.in_channels, c.input), any_weights, bias,
      channels_last(c.batch, c.out_channels, c.output), {c.stride[0], c.stride[1]},
      {c.dilation[0] - 1, c.dilation[1] - 1}, {c.pad_before[0], c.pad_before[1]},
      {c.pad_after[0], c.pad_after[1]});
  return {desc, attributes, onednn_engine()};
}

ShapeMemo::Answer ask(const Problem& p, const Direct& d) {
  return ask_onednn(p, d.conv, d.through_scratch ? 0 : 1, [&] { return descriptor_of(d); });
}

class OneDnnConv : public Implementation {
 public:
  const char* name() const override { return "onednn_direct"; }

  Status supports(const Problem& p) const override {
    TANDEM_ASSIGN_OR_RETURN(const Direct d, direct_of(p));
    const ShapeMemo::Answer answer = ask(p, d);
    return answer.refusal.empty() ? Status() : unsupported(p.op->name + ": " + answer.refusal);
  }

  void describe(const Problem& p, ImplementationInfo& info) const override {
    Implementation::describe(p, info);
    const StatusOr<Direct> d = direct_of(p);
    if (!d.ok()) return;
    const SliceConv& c = d->conv;
    if (d->through_scratch) info.dispatches = 2;
    info.library_variant = ask(p, *d).variant;
    const int64_t blocks = c.groups * ((c.out_channels / c.groups + kLineFloats - 1) / kLineFloats);
    info.work_groups = blocks * c.batch * c.output[0];
    info.computed_flops *= static_cast<double>(blocks * kLineFloats) /
                           static_cast<double>(std::max<int64_t>(c.out_channels, 1));
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    TANDEM_ASSIGN_OR_RETURN(Direct d, direct_of(p));
    const SliceConv& c = d.conv;
    try {
      const dnnl::convolution_forward::primitive_desc descriptor = descriptor_of(d);
      const dnnl::convolution_forward primitive(descriptor);
      const std::shared_ptr<const float> weights =
          reordered_weights(c, descriptor.weights_desc(), resources);
      if (d.through_scratch) resources.reserve_scratch(descriptor.dst_desc().get_size());
      memory src(descriptor.src_desc(), onednn_engine(), const_cast<float*>(c.x));
      memory dst(descriptor.dst_desc(), onednn_engine(), c.y);
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, src},
          {DNNL_ARG_WEIGHTS,
           memory(descriptor.weights_desc(), onednn_engine(), const_cast<float*>(weights.get()))},
          {DNNL_ARG_DST, dst}};
      if (c.has_bias) {
        arguments.insert({DNNL_ARG_BIAS, memory(descriptor.bias_desc(), onednn_engine(),
                                                const_cast<float*>(c.bias))});
      }
      return make_kernel([=, &resources, threads = p.threads, name = p.op->name]() mutable {
        try {
          if (d.through_scratch) dst.set_data_handle(resources.scratch());
          primitive.execute(onednn_stream(), arguments);
          onednn_stream().wait();
        } catch (const dnnl::error& error) {
          return internal_error(name + ": oneDNN: " + error.what());
        }
        if (d.through_scratch) {
          const int64_t channels = d.conv.out_channels;
          const int64_t width = d.conv.output[1] * channels;
          finish_slice(d.conv,
                       {resources.scratch(),
                        {d.conv.output[0] * width, width, channels},
                        channels,
                        channels},
                       second_pass(d), threads);
        }
        return Status();
      });
    } catch (const dnnl::error& error) {
      return internal_error(p.op->name + ": oneDNN: " + error.what());
    }
  }
};

}  // namespace

const Implementation& onednn_conv() {
  static const OneDnnConv implementation;
  return implementation;
}

}  // namespace tandem::cpu
