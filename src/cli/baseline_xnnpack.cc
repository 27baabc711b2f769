#include <pthreadpool.h>
#include <xnnpack.h>

#include <limits>
#include <utility>

#include "cli/baseline.h"
#include "cli/random_tensor.h"
#include "fmt/format.h"

namespace tandem::cli {
namespace {

struct OperatorDeleter {
  void operator()(xnn_operator* op) const { xnn_delete_operator(op); }
};
struct PoolDeleter {
  void operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }
};

// XNNPACK may read this far behind an input.
constexpr int64_t kExtraFloats = XNN_EXTRA_BYTES / sizeof(float);
constexpr float kNoLimit = std::numeric_limits<float>::infinity();

class XnnpackBaseline final : public Baseline {
 public:
  XnnpackBaseline(const OperatorShape& shape, int threads)
      : shape_(shape), pool_(threads > 1 ? pthreadpool_create(threads) : nullptr) {}

  Status prepare() {
    if (xnn_initialize(nullptr) != xnn_status_success) {
      return unsupported("XNNPACK does not run on this processor");
    }
    return shape_.family == Family::kLinear ? prepare_linear() : prepare_convolution();
  }

  Status run() override { return check(xnn_run_operator(op_.get(), pool_.get()), "running"); }
  std::string detail() const override { return "nhwc"; }

 private:
  Status check(xnn_status status, const char* what) const {
    if (status == xnn_status_success) return {};
    return unsupported(fmt::format("XNNPACK: {} {}: status {}", what, to_string(shape_),
                                   static_cast<int>(status)));
  }

  static HostTensor floats(int64_t count, const char* name) {
    return random_tensor(DataType::kFloat32, {count}, name);
  }

  // The kernel is packed, so that its order does not matter for speed.
  Status prepare_convolution() {
    const OperatorShape& s = shape_;
    const auto extent = [&s](int axis, int64_t in) {
      const int64_t reach = s.dilation[axis] * (s.kernel[axis] - 1) + 1;
      return (in + s.pads[axis] + s.pads[axis + 2] - reach) / s.stride[axis] + 1;
    };
    const auto u = [](int64_t value) { return static_cast<uint32_t>(value); };
    const HostTensor weights = floats(s.m * (s.c / s.groups) * s.kernel[0] * s.kernel[1], "w");
    const HostTensor bias = floats(s.m, "b");
    input_ = floats(s.n * s.h * s.w * s.c + kExtraFloats, "x");
    output_ = HostTensor(DataType::kFloat32, {s.n * extent(0, s.h) * extent(1, s.w) * s.m});
    xnn_operator_t op = nullptr;
    TANDEM_RETURN_IF_ERROR(
        check(xnn_create_convolution2d_nhwc_f32(
                  u(s.pads[0]), u(s.pads[3]), u(s.pads[2]), u(s.pads[1]), u(s.kernel[0]),
                  u(s.kernel[1]), u(s.stride[0]), u(s.stride[1]), u(s.dilation[0]),
                  u(s.dilation[1]), u(s.groups), s.c / s.groups, s.m / s.groups, s.c, s.m,
                  weights.data<float>(), bias.data<float>(), -kNoLimit, kNoLimit,
                  s.family == Family::kDepthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &op),
              "creating"));
    op_.reset(op);
    return check(xnn_setup_convolution2d_nhwc_f32(op, s.n, s.h, s.w, input_.data<float>(),
                                                  output_.data<float>(), pool_.get()),
                 "setting up");
  }

  Status prepare_linear() {
    const OperatorShape& s = shape_;
    const HostTensor weights = floats(s.c * s.m, "w");
    const HostTensor bias = floats(s.m, "b");
    input_ = floats(s.n * s.c + kExtraFloats, "x");
    output_ = HostTensor(DataType::kFloat32, {s.n * s.m});
    xnn_operator_t op = nullptr;
    TANDEM_RETURN_IF_ERROR(
        check(xnn_create_fully_connected_nc_f32(s.c, s.m, s.c, s.m, weights.data<float>(),
                                                bias.data<float>(), -kNoLimit, kNoLimit, 0, &op),
              "creating"));
    op_.reset(op);
    return check(xnn_setup_fully_connected_nc_f32(op, s.n, input_.data<float>(),
                                                  output_.data<float>(), pool_.get()),
                 "setting up");
  }

  OperatorShape shape_;
  std::unique_ptr<pthreadpool, PoolDeleter> pool_;
  HostTensor input_;
  HostTensor output_;
  std::unique_ptr<xnn_operator, OperatorDeleter> op_;
};

}  // namespace

StatusOr<std::unique_ptr<Baseline>> make_xnnpack_baseline(const OperatorShape& shape, int threads) {
  if (shape.family == Family::kMatMul) {
    return unsupported("XNNPACK multiplies by constant matrices only");
  }
  auto baseline = std::make_unique<XnnpackBaseline>(shape, threads);
  TANDEM_RETURN_IF_ERROR(baseline->prepare());
  return std::unique_ptr<Baseline>(std::move(baseline));
}

}  // namespace tandem::cli
