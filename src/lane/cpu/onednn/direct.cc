// Direct convolution on channels-last memory by oneDNN. It wants input and output without gaps;
// where the output is a view of a larger tensor, or a residual is added, it writes to scratch and a
// second pass moves the result.
#include "lane/cpu/onednn/convolution.h"
#include "lane/cpu/onednn/onednn.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

struct Direct {
  SliceConv conv;
  bool through_scratch = false;
  dnnl::convolution_forward::primitive_desc descriptor;
};

// What the second pass still has to apply.
Activation second_pass(const Direct& d) {
  return d.through_scratch ? d.conv.activation : Activation{};
}

memory::desc channels_last(int64_t n, int64_t c, const int64_t size[2]) {
  return {{n, c, size[0], size[1]}, memory::data_type::f32, memory::format_tag::nhwc};
}

StatusOr<Direct> describe_direct(const Problem& p) {
  std::optional<SliceConv> conv = slice_conv(p);
  if (!conv) return unsupported(p.op->name + ": not a convolution on channels-last tensors");
  if (!conv->input_is_dense()) {
    return unsupported(p.op->name + ": the input has gaps between its pixels");
  }
  Direct d;
  d.conv = *conv;
  const SliceConv& c = d.conv;
  const std::optional<Eltwise> eltwise = as_eltwise(c.activation);
  const bool fuses = eltwise || c.activation.function == Function::kIdentity;
  d.through_scratch = !c.output_is_dense() || c.residual != nullptr || !fuses;
  try {
    dnnl::primitive_attr attributes;
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
    d.descriptor = {desc, attributes, onednn_engine()};
    TANDEM_RETURN_IF_ERROR(refuse_reference(p, d.descriptor.impl_info_str()));
  } catch (const dnnl::error& error) {
    return unsupported(p.op->name + ": oneDNN: " + error.what());
  }
  return d;
}

class OneDnnConv : public Implementation {
 public:
  const char* name() const override { return "onednn_direct"; }

  Status supports(const Problem& p) const override { return describe_direct(p).status(); }

  void describe(const Problem& p, ImplementationInfo& info) const override {
    Implementation::describe(p, info);
    const StatusOr<Direct> d = describe_direct(p);
    if (d.ok() && d->through_scratch) info.dispatches = 2;
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    TANDEM_ASSIGN_OR_RETURN(Direct d, describe_direct(p));
    const SliceConv& c = d.conv;
    try {
      const dnnl::convolution_forward primitive(d.descriptor);
      const std::shared_ptr<const float> weights =
          reordered_weights(c, d.descriptor.weights_desc(), resources);
      if (d.through_scratch) resources.reserve_scratch(d.descriptor.dst_desc().get_size());
      memory src(d.descriptor.src_desc(), onednn_engine(), const_cast<float*>(c.x));
      memory dst(d.descriptor.dst_desc(), onednn_engine(), c.y);
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, src},
          {DNNL_ARG_WEIGHTS,
           memory(d.descriptor.weights_desc(), onednn_engine(), const_cast<float*>(weights.get()))},
          {DNNL_ARG_DST, dst}};
      if (c.has_bias) {
        arguments.insert({DNNL_ARG_BIAS, memory(d.descriptor.bias_desc(), onednn_engine(),
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
