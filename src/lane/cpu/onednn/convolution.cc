#include "lane/cpu/onednn/convolution.h"

#include <algorithm>

#include "lane/cpu/loops/elementwise.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

// The rows [begin, end) of the image that outputs `out` read, and the pads that they leave.
void restrict_axis(SliceConv& c, int axis, Range out, int64_t pad, int64_t extent, int64_t& begin) {
  const int64_t first = out.begin * c.stride[axis] - pad;
  const int64_t end =
      (out.end - 1) * c.stride[axis] - pad + (c.kernel[axis] - 1) * c.dilation[axis] + 1;
  begin = std::clamp<int64_t>(first, 0, extent);
  // Elements behind the last window stay where the output is whole along the axis (they are fewer
  // than a stride), so that rows of the image keep their place in memory.
  c.output[axis] = out.size();
  c.input[axis] = std::clamp<int64_t>(end, begin, extent) - begin;
  c.pad_before[axis] = begin - first;
  c.pad_after[axis] = std::max<int64_t>(0, end - extent);
}

void set_strides(const TensorView& view, int64_t strides[3]) {
  strides[0] = view.strides[0];
  strides[1] = view.strides[2];
  strides[2] = view.strides[3];
}

bool channels_contiguous(const TensorView& view) {
  return view.dims[1] == 1 || view.strides[1] == 1;
}

std::optional<SliceConv> from_conv(const Problem& p) {
  const auto& a = p.op->as<ConvAttributes>();
  const TensorView& x = p.inputs[0];
  const Dims& w = p.inputs[1].dims;
  const Region& r = p.region;
  if (!channels_contiguous(x) || !channels_contiguous(p.output)) return std::nullopt;
  const int64_t per_group = w[0] / a.groups;
  // Whole groups only.
  if (a.groups > 1 && (r[1].begin % per_group != 0 || r[1].end % per_group != 0)) {
    return std::nullopt;
  }

  SliceConv c;
  c.batch = r[0].size();
  c.out_channels = r[1].size();
  c.groups = a.groups == 1 ? 1 : r[1].size() / per_group;
  c.in_channels = w[1] * c.groups;
  for (int i = 0; i < 2; ++i) {
    c.kernel[i] = a.kernel[i];
    c.stride[i] = a.stride[i];
    c.dilation[i] = a.dilation[i];
  }
  int64_t row = 0, column = 0;
  restrict_axis(c, 0, r[2], a.pads[0], x.dims[2], row);
  restrict_axis(c, 1, r[3], a.pads[1], x.dims[3], column);
  // A width that is read whole but for a remainder of the stride: keep rows contiguous.
  if (column == 0 && r[3].size() == p.output.dims[3]) c.input[1] = x.dims[3];
  c.has_bias = a.has_bias;
  c.activation = a.activation;

  const int64_t first_channel = a.groups == 1 ? 0 : r[1].begin / per_group * w[1];
  c.x = x.as<float>() + r[0].begin * x.strides[0] + first_channel + row * x.strides[2] +
        column * x.strides[3];
  set_strides(x, c.x_strides);
  c.y = at(p.output, r);
  set_strides(p.output, c.y_strides);
  if (a.has_residual) {
    if (!channels_contiguous(p.inputs.back())) return std::nullopt;
    c.residual = at<const float>(p.inputs.back(), r);
    set_strides(p.inputs.back(), c.residual_strides);
  }
  c.weight_in_stride = w[2] * w[3];
  c.weight_out_stride = w[1] * c.weight_in_stride;
  c.weights = p.inputs[1].as<float>() + r[1].begin * c.weight_out_stride;
  if (a.has_bias) c.bias = p.inputs[2].as<float>() + r[1].begin;
  c.weights_key = p.op->name + ":" + std::to_string(r[1].begin) + "-" + std::to_string(r[1].end);
  return c;
}

std::optional<SliceConv> from_linear(const Problem& p) {
  const auto& a = p.op->as<LinearAttributes>();
  const TensorView& x = p.inputs[0];
  const TensorView* residual = a.has_residual ? &p.inputs.back() : nullptr;
  const size_t last = p.region.size() - 1;
  if (x.dims[last] > 1 && x.strides[last] != 1) return std::nullopt;
  if (p.output.dims[last] > 1 && p.output.strides[last] != 1) return std::nullopt;

  SliceConv c;
  Region corner = p.region;
  corner[last].begin = 0;
  c.x = at<const float>(x, corner);
  c.y = at(p.output, p.region);
  if (residual != nullptr) c.residual = at<const float>(*residual, p.region);
  // Rows must lie at one distance from each other, in every tensor.
  int64_t rows = 1;
  bool first = true;
  for (size_t d = last; d-- > 0;) {
    const int64_t extent = p.region[d].size();
    if (extent == 1) continue;
    const auto continues = [&](const TensorView& view, int64_t& stride) {
      if (first) stride = view.strides[d];
      return view.strides[d] == stride * rows;
    };
    if (!continues(x, c.x_strides[1]) || !continues(p.output, c.y_strides[1])) return std::nullopt;
    if (residual != nullptr && !continues(*residual, c.residual_strides[1])) return std::nullopt;
    rows *= extent;
    first = false;
  }
  c.in_channels = p.inputs[1].dims[0];
  c.out_channels = p.region[last].size();
  if (first) {
    // One row: any distance will do.
    c.x_strides[1] = c.in_channels;
    c.y_strides[1] = c.residual_strides[1] = c.out_channels;
  }
  c.input[0] = c.output[0] = rows;
  c.input[1] = c.output[1] = 1;
  for (int64_t* strides : {c.x_strides, c.y_strides, c.residual_strides}) {
    strides[0] = rows * strides[1];
    strides[2] = strides[1];
  }
  c.has_bias = a.has_bias;
  c.activation = a.activation;
  c.weights = p.inputs[1].as<float>() + p.region[last].begin;
  c.weight_in_stride = p.inputs[1].dims[1];
  c.weight_out_stride = 1;
  if (a.has_bias) c.bias = p.inputs[2].as<float>() + p.region[last].begin;
  c.weights_key = p.op->name + ":" + std::to_string(p.region[last].begin) + "-" +
                  std::to_string(p.region[last].end);
  return c;
}

bool is_dense(const int64_t strides[3], int64_t batch, const int64_t size[2], int64_t channels) {
  return (size[1] == 1 || strides[2] == channels) &&
         (size[0] == 1 || strides[1] == size[1] * channels) &&
         (batch == 1 || strides[0] == size[0] * size[1] * channels);
}

}  // namespace

bool SliceConv::input_is_dense() const { return is_dense(x_strides, batch, input, in_channels); }
bool SliceConv::output_is_dense() const { return is_dense(y_strides, batch, output, out_channels); }

std::optional<SliceConv> slice_conv(const Problem& problem) {
  switch (problem.op->kind()) {
    case OperatorKind::kConv:
      return from_conv(problem);
    case OperatorKind::kLinear:
      return from_linear(problem);
    default:
      return std::nullopt;
  }
}

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

bool is_reference(const std::string& implementation_info) {
  return implementation_info.find("ref") != std::string::npos;
}

ShapeMemo::Answer ask_onednn(
    const Problem& p, const SliceConv& c, int64_t tag,
    const std::function<dnnl::convolution_forward::primitive_desc()>& describe) {
  const auto ask = [&]() -> ShapeMemo::Answer {
    try {
      const dnnl::convolution_forward::primitive_desc descriptor = describe();
      ShapeMemo::Answer answer;
      answer.variant = descriptor.impl_info_str();
      answer.weight_bytes = descriptor.weights_desc().get_size();
      if (is_reference(answer.variant)) {
        answer.refusal = "oneDNN has only its reference code (" + answer.variant + ")";
      }
      return answer;
    } catch (const dnnl::error& error) {
      return {.refusal = std::string("oneDNN: ") + error.what(), .variant = "", .weight_bytes = 0};
    }
  };
  if (p.memo == nullptr) return ask();
  const ShapeMemo::Key key = {tag,
                              p.threads,
                              c.batch,
                              c.in_channels,
                              c.out_channels,
                              c.groups,
                              c.input[0],
                              c.input[1],
                              c.output[0],
                              c.output[1],
                              c.kernel[0],
                              c.kernel[1],
                              c.stride[0],
                              c.stride[1],
                              c.dilation[0],
                              c.dilation[1],
                              c.pad_before[0],
                              c.pad_before[1],
                              c.pad_after[0],
                              c.pad_after[1],
                              c.has_bias,
                              static_cast<int64_t>(c.activation.function)};
  return p.memo->find(key, ask);
}

std::optional<Eltwise> as_eltwise(const Activation& a) {
  using dnnl::algorithm;
  switch (a.function) {
    case Function::kRelu:
      return Eltwise{algorithm::eltwise_relu, 0, 0};
    case Function::kLeakyRelu:
      return Eltwise{algorithm::eltwise_relu, a.alpha, 0};
    case Function::kClip:
      return Eltwise{algorithm::eltwise_clip, a.alpha, a.beta};
    case Function::kElu:
      return Eltwise{algorithm::eltwise_elu, a.alpha, 0};
    case Function::kSigmoid:
      return Eltwise{algorithm::eltwise_logistic, 0, 0};
    case Function::kTanh:
      return Eltwise{algorithm::eltwise_tanh, 0, 0};
    case Function::kSilu:
      return Eltwise{algorithm::eltwise_swish, 1, 0};
    case Function::kHardSwish:
      return Eltwise{algorithm::eltwise_hardswish, 0, 0};
    case Function::kGelu:
      return Eltwise{algorithm::eltwise_gelu_erf, 0, 0};
    case Function::kGeluTanh:
      return Eltwise{algorithm::eltwise_gelu_tanh, 0, 0};
    default:
      return std::nullopt;
  }
}

std::shared_ptr<const float> reordered_weights(const SliceConv& c, const memory::desc& wanted,
                                               Resources& resources) {
  const std::string key =
      c.weights_key +
      ":onednn:" + std::string(reinterpret_cast<const char*>(&wanted.data), sizeof(wanted.data));
  const int64_t floats = static_cast<int64_t>(wanted.get_size() / sizeof(float));
  return resources.packed(key, floats, [&](float* to) {
    const int64_t h = c.kernel[0], w = c.kernel[1];
    memory::dims dims{c.out_channels, c.in_channels / c.groups, h, w};
    memory::dims strides{c.weight_out_stride, c.weight_in_stride, w, 1};
    if (c.groups > 1) {
      dims[0] /= c.groups;
      dims.insert(dims.begin(), c.groups);
      strides.insert(strides.begin(), c.out_channels / c.groups * c.weight_out_stride);
    }
    memory from({dims, memory::data_type::f32, strides}, onednn_engine(),
                const_cast<float*>(c.weights));
    memory target(wanted, onednn_engine(), to);
    dnnl::reorder(from, target).execute(onednn_stream(), from, target);
    onednn_stream().wait();
  });
}

void finish_slice(const SliceConv& c, const Source& s, const Activation& activation, int threads) {
  const int64_t rows = c.batch * c.output[0];
  parallel(threads, [&](int index, int parts) {
    const Part part = part_of(rows, index, parts);
    for (int64_t i = part.begin; i < part.end; ++i) {
      const int64_t n = i / c.output[0], h = i % c.output[0];
      const float* from = s.data + n * s.strides[0] + h * s.strides[1];
      float* to = c.y + n * c.y_strides[0] + h * c.y_strides[1];
      const float* residual = c.residual;
      if (residual != nullptr) residual += n * c.residual_strides[0] + h * c.residual_strides[1];
      for (int64_t k = 0; k < c.out_channels; k += s.block, from += s.block_stride) {
        finish_rows(activation, {from, s.strides[2]},
                    {residual == nullptr ? nullptr : residual + k, c.residual_strides[2]},
                    {to + k, c.y_strides[2]}, c.output[1], std::min(s.block, c.out_channels - k));
      }
    }
  });
}

}  // namespace tandem::cpu
