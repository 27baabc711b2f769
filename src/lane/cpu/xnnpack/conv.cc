#include <xnnpack.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lane/cpu/loops/elementwise.h"
#include "lane/cpu/xnnpack/xnnpack.h"

namespace tandem::cpu {
namespace {

struct DeleteOperator {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};
using OperatorPtr = std::unique_ptr<xnn_operator, DeleteOperator>;

bool library_ready() {
  static const bool ready = xnn_initialize(nullptr) == xnn_status_success;
  return ready;
}

// One image's rows [begin, end) of the output, which one thread computes with an operator of its
// own: the library would need a thread pool of its own otherwise.
struct Band {
  OperatorPtr op;
  const float* input;
  float* output;
  int64_t input_rows;
};

// True where rows follow each other like pixels do.
bool rows_follow(const TensorView& view) {
  return view.strides[1] == 1 &&
         (view.dims[2] == 1 || view.strides[2] == view.dims[3] * view.strides[3]);
}

class XnnpackConv : public Implementation {
 public:
  const char* name() const override { return "xnnpack_conv"; }

  Status supports(const Problem& p) const override {
    if (p.op->kind() != OperatorKind::kConv) {
      return unsupported(std::string("xnnpack_conv does not do ") + to_string(p.op->kind()));
    }
    if (!library_ready()) return unsupported("XNNPACK does not support this processor");
    const auto& a = p.op->as<ConvAttributes>();
    const TensorView& x = p.inputs[0];
    if (!rows_follow(x) || !rows_follow(p.output)) {
      return unsupported(p.op->name + ": XNNPACK needs rows without gaps, channels innermost");
    }
    if (a.has_residual && p.inputs.back().strides[1] != 1) {
      return unsupported(p.op->name + ": the residual's channels are not contiguous");
    }
    if (p.region[3].size() != p.output.dims[3]) {
      return unsupported(p.op->name + ": XNNPACK cannot cut columns");
    }
    const int64_t per_group = p.output.dims[1] / a.groups;
    if (a.groups > 1 && (p.region[1].begin % per_group != 0 || p.region[1].end % per_group != 0)) {
      return unsupported(p.op->name + ": XNNPACK cannot cut a group");
    }
    // The library divides instead of being told the output's extents.
    const int64_t reach = a.dilation[1] * (a.kernel[1] - 1) + 1;
    const int64_t width = (x.dims[3] + a.pads[1] + a.pads[3] - reach) / a.stride[1] + 1;
    if (width != p.output.dims[3]) {
      return unsupported(p.op->name + ": XNNPACK would give the output another width");
    }
    for (int64_t h = p.region[2].begin; h < p.region[2].end; ++h) {
      const int64_t first = h * a.stride[0] - a.pads[0];
      if (first >= x.dims[2] || first + a.dilation[0] * (a.kernel[0] - 1) < 0) {
        return unsupported(p.op->name + ": some rows lie in the padding altogether");
      }
    }
    return {};
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources& resources) const override {
    const Range rows = p.region[2];
    const int parts = static_cast<int>(std::min<int64_t>(p.threads, rows.size()));
    std::vector<Band> bands;
    for (int64_t n = p.region[0].begin; n < p.region[0].end; ++n) {
      for (int i = 0; i < parts; ++i) {
        const Part part = part_of(rows.size(), i, parts);
        TANDEM_ASSIGN_OR_RETURN(Band band,
                                make_band(p, n, {rows.begin + part.begin, rows.begin + part.end}));
        bands.push_back(std::move(band));
      }
    }
    const Dims& w = p.inputs[1].dims;
    resources.account(bands.size() * p.region[1].size() * w[1] * w[2] * w[3] * sizeof(float));
    const auto& a = p.op->as<ConvAttributes>();
    const bool second_pass = a.has_residual || !as_clamp(a.activation).exact;
    const auto shared = std::make_shared<std::vector<Band>>(std::move(bands));
    return make_kernel([shared, p, second_pass, f = a.activation] {
      std::vector<Band>& bands = *shared;
      std::vector<int> failures(bands.size(), 0);
      parallel(p.threads, [&](int index, int threads) {
        for (size_t i = index; i < bands.size(); i += threads) {
          Band& band = bands[i];
          failures[i] = xnn_run_operator(band.op.get(), nullptr) != xnn_status_success;
        }
      });
      if (std::count(failures.begin(), failures.end(), 1) > 0) {
        return internal_error(p.op->name + ": XNNPACK failed to run the convolution");
      }
      if (second_pass) finish_rows(p, f);
      return Status();
    });
  }

 private:
  static StatusOr<Band> make_band(const Problem& p, int64_t n, Range rows) {
    const auto& a = p.op->as<ConvAttributes>();
    const TensorView& x = p.inputs[0];
    const Dims& w = p.inputs[1].dims;
    const int64_t per_group = w[0] / a.groups;
    const Range channels = p.region[1];
    const bool depthwise = w[1] == 1 && per_group == 1;
    const int64_t groups = a.groups == 1 ? 1 : channels.size() / per_group;
    const int64_t group_outputs = channels.size() / groups;
    const int64_t first_input = a.groups == 1 ? 0 : channels.begin / per_group * w[1];

    // OIHW -> OHWI, or HWI for depthwise.
    const int64_t taps = w[2] * w[3];
    std::vector<float> weights(channels.size() * w[1] * taps);
    const float* from = p.inputs[1].as<float>() + channels.begin * w[1] * taps;
    for (int64_t o = 0; o < channels.size(); ++o) {
      for (int64_t i = 0; i < w[1]; ++i) {
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t to = depthwise ? t * channels.size() + o : (o * taps + t) * w[1] + i;
          weights[to] = from[(o * w[1] + i) * taps + t];
        }
      }
    }
    const float* bias = a.has_bias ? p.inputs[2].as<float>() + channels.begin : nullptr;

    const int64_t first = rows.begin * a.stride[0] - a.pads[0];
    const int64_t end =
        (rows.end - 1) * a.stride[0] - a.pads[0] + a.dilation[0] * (a.kernel[0] - 1) + 1;
    const int64_t row_begin = std::max<int64_t>(first, 0), row_end = std::min(end, x.dims[2]);
    Clamp clamp = as_clamp(a.activation);
    if (a.has_residual) clamp = as_clamp({});
    xnn_operator_t op = nullptr;
    xnn_status status = xnn_create_convolution2d_nhwc_f32(
        row_begin - first, a.pads[3], end - row_end, a.pads[1], a.kernel[0], a.kernel[1],
        a.stride[0], a.stride[1], a.dilation[0], a.dilation[1], groups, w[1], group_outputs,
        x.strides[3], p.output.strides[3], weights.data(), bias, clamp.low, clamp.high,
        depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &op);
    Band band;
    band.op.reset(op);
    band.input = x.as<float>() + n * x.strides[0] + first_input + row_begin * x.strides[2];
    Region corner = p.region;
    corner[0].begin = n;
    corner[2].begin = rows.begin;
    band.output = at(p.output, corner);
    band.input_rows = row_end - row_begin;
    if (status == xnn_status_success) {
      status = xnn_setup_convolution2d_nhwc_f32(op, 1, band.input_rows, x.dims[3], band.input,
                                                band.output, nullptr);
    }
    if (status != xnn_status_success) {
      return internal_error(p.op->name + ": XNNPACK refused the convolution, status " +
                            std::to_string(status));
    }
    return band;
  }

  // Adds the residual and applies the activation where it lies.
  static void finish_rows(const Problem& p, const Activation& f) {
    const Region& r = p.region;
    const bool has_residual = p.op->as<ConvAttributes>().has_residual;
    const auto pixel = [](const TensorView& view, int64_t n, int64_t c, int64_t h, int64_t w) {
      return view.as<float>() + n * view.strides[0] + c + h * view.strides[2] + w * view.strides[3];
    };
    parallel(p.threads, [&](int index, int parts) {
      const Part part = part_of(r[0].size() * r[2].size(), index, parts);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t n = r[0].begin + i / r[2].size(), h = r[2].begin + i % r[2].size();
        float* to = pixel(p.output, n, r[1].begin, h, r[3].begin);
        StridedRows<const float> residual;
        if (has_residual) {
          const TensorView& view = p.inputs.back();
          residual = {pixel(view, n, r[1].begin, h, r[3].begin), view.strides[3]};
        }
        const int64_t stride = p.output.strides[3];
        cpu::finish_rows(f, {to, stride}, residual, {to, stride}, r[3].size(), r[1].size());
      }
    });
  }
};

}  // namespace

const Implementation& xnnpack_conv() {
  static const XnnpackConv implementation;
  return implementation;
}

}  // namespace tandem::cpu
