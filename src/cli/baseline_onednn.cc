#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/baseline.h"
#include "cli/random_tensor.h"
#include "fmt/format.h"
#include "support/clock.h"

namespace tandem::cli {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

// A random tensor in the layout that the primitive wants.
memory random_memory(const memory::desc& wanted, const char* name, dnnl::engine& engine,
                     dnnl::stream& stream) {
  const memory::dims dims = wanted.dims();
  memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  memory plain(memory::desc(dims, memory::data_type::f32, strides), engine);
  const HostTensor values = random_tensor(DataType::kFloat32, Dims(dims.begin(), dims.end()), name);
  std::memcpy(plain.get_data_handle(), values.bytes.data(), values.bytes.size());
  memory result(wanted, engine);
  dnnl::reorder(plain, result).execute(stream, plain, result);
  stream.wait();
  return result;
}

class OneDnnBaseline final : public Baseline {
 public:
  // `descriptor` is a primitive descriptor with source, weights, destination and maybe a bias.
  template <typename Primitive, typename Descriptor>
  static std::unique_ptr<OneDnnBaseline> create(const Descriptor& descriptor, bool has_bias,
                                                dnnl::engine& engine, int threads) {
    auto baseline = std::unique_ptr<OneDnnBaseline>(new OneDnnBaseline(engine, threads));
    baseline->primitive_ = Primitive(descriptor);
    baseline->detail_ = descriptor.impl_info_str();
    dnnl::stream& stream = baseline->stream_;
    baseline->arguments_ = {
        {DNNL_ARG_SRC, random_memory(descriptor.src_desc(), "x", engine, stream)},
        {DNNL_ARG_WEIGHTS, random_memory(descriptor.weights_desc(), "w", engine, stream)},
        {DNNL_ARG_DST, memory(descriptor.dst_desc(), engine)}};
    if (has_bias) {
      baseline->arguments_.emplace(
          DNNL_ARG_BIAS,
          random_memory(descriptor.query_md(dnnl::query::weights_md, 1), "b", engine, stream));
    }
    return baseline;
  }

  Status run() override {
    omp_set_num_threads(threads_);
    try {
      primitive_.execute(stream_, arguments_);
      stream_.wait();
    } catch (const dnnl::error& error) {
      return internal_error(fmt::format("oneDNN ({}): {}", detail_, error.what()));
    }
    return {};
  }
  std::string detail() const override { return detail_; }

 private:
  OneDnnBaseline(dnnl::engine& engine, int threads) : stream_(engine), threads_(threads) {}

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  Arguments arguments_;
  std::string detail_;
  int threads_;
};

memory::desc any_layout(const memory::dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}

memory::desc bias_of(int64_t channels) {
  return {{channels}, memory::data_type::f32, memory::format_tag::x};
}

std::unique_ptr<OneDnnBaseline> convolution(const OperatorShape& s, dnnl::engine& engine,
                                            int threads) {
  const auto extent = [&s](int axis, int64_t in) {
    const int64_t reach = s.dilation[axis] * (s.kernel[axis] - 1) + 1;
    return (in + s.pads[axis] + s.pads[axis + 2] - reach) / s.stride[axis] + 1;
  };
  memory::dims weights = {s.m, s.c / s.groups, s.kernel[0], s.kernel[1]};
  if (s.groups > 1) {
    weights = {s.groups, s.m / s.groups, s.c / s.groups, s.kernel[0], s.kernel[1]};
  }
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
      any_layout({s.n, s.c, s.h, s.w}), any_layout(weights), bias_of(s.m),
      any_layout({s.n, s.m, extent(0, s.h), extent(1, s.w)}), {s.stride[0], s.stride[1]},
      {s.dilation[0] - 1, s.dilation[1] - 1}, {s.pads[0], s.pads[1]}, {s.pads[2], s.pads[3]});
  return OneDnnBaseline::create<dnnl::convolution_forward>(
      dnnl::convolution_forward::primitive_desc(desc, engine), true, engine, threads);
}

std::unique_ptr<OneDnnBaseline> inner_product(const OperatorShape& s, dnnl::engine& engine,
                                              int threads) {
  const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference,
                                               any_layout({s.n, s.c}), any_layout({s.m, s.c}),
                                               bias_of(s.m), any_layout({s.n, s.m}));
  return OneDnnBaseline::create<dnnl::inner_product_forward>(
      dnnl::inner_product_forward::primitive_desc(desc, engine), true, engine, threads);
}

std::unique_ptr<OneDnnBaseline> matrix_product(const memory::desc& a, const memory::desc& b,
                                               const memory::desc& c, dnnl::engine& engine,
                                               int threads) {
  return OneDnnBaseline::create<dnnl::matmul>(
      dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine), false, engine, threads);
}

// oneDNN has two primitives for a linear layer; which is faster depends on the shape.
StatusOr<std::unique_ptr<Baseline>> faster(std::unique_ptr<Baseline> a,
                                           std::unique_ptr<Baseline> b) {
  constexpr int kRounds = 5;
  Clock::duration best[2] = {Clock::duration::max(), Clock::duration::max()};
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      const Clock::time_point begin = Clock::now();
      TANDEM_RETURN_IF_ERROR((i == 0 ? a : b)->run());
      best[i] = std::min(best[i], Clock::now() - begin);
    }
  }
  return best[0] <= best[1] ? std::move(a) : std::move(b);
}

}  // namespace

StatusOr<std::unique_ptr<Baseline>> make_onednn_baseline(const OperatorShape& shape, int threads) {
  omp_set_num_threads(threads);
  try {
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    switch (shape.family) {
      case Family::kConv:
      case Family::kDepthwise:
        return std::unique_ptr<Baseline>(convolution(shape, engine, threads));
      case Family::kLinear:
        return faster(inner_product(shape, engine, threads),
                      matrix_product(any_layout({shape.n, shape.c}), any_layout({shape.c, shape.m}),
                                     any_layout({shape.n, shape.m}), engine, threads));
      case Family::kMatMul: {
        // Both operands come from other operators, in rows.
        const auto rows = [](int64_t n, int64_t h, int64_t w, bool transposed) {
          return memory::desc({n, h, w}, memory::data_type::f32,
                              transposed ? memory::format_tag::acb : memory::format_tag::abc);
        };
        return std::unique_ptr<Baseline>(
            matrix_product(rows(shape.n, shape.h, shape.c, false),
                           rows(shape.n, shape.c, shape.m, shape.transpose_b),
                           rows(shape.n, shape.h, shape.m, false), engine, threads));
      }
    }
  } catch (const dnnl::error& error) {
    return unsupported(fmt::format("oneDNN: {}: {}", to_string(shape), error.what()));
  }
  return internal_error("an operator family without a oneDNN baseline");
}

}  // namespace tandem::cli
