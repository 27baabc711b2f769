// The rule by which the CPU lane picks an implementation. Measured on a Zen 5 core with AVX-512,
// oneDNN 2.6.3 and XNNPACK of 2022-02, times relative to the best (docs of the research: the lane's
// tests and `tandem bench op` repeat them):
//
//                             oneDNN direct  + scratch copy  Winograd  tiled GEMM  XNNPACK
//   3x3, 64..256 channels          1.4            1.45          1         1.55        1.8
//   1x1, 64..2048 channels         1              1.05..1.3     -         1.05..1.1   1.2
//   few input channels (stem)      reference      -             -         1           1.3
//   depthwise, against our loops   1.1            1.5           -         1           2
//   grouped                        1              1.05          -         2 or more   1.2
//
// oneDNN's channels-last code needs input and output without gaps; a copy out of scratch costs little
// where an output element is a long sum.
#include "lane/cpu/kernel.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/onednn/convolution.h"
#include "lane/cpu/onednn/onednn.h"
#include "lane/cpu/xnnpack/xnnpack.h"

namespace tandem::cpu {
namespace {

// Multiply-adds per output element from which a second pass over the output is small beside them.
constexpr int64_t kLongSum = 512;

// Channels, on both sides, and output pixels from which Winograd's transforms pay.
constexpr int64_t kWinogradChannels = 64;
constexpr int64_t kWinogradPixels = 49;

bool winograd_pays(const Problem& p) {
  const Dims& w = p.inputs[1].dims;
  const int64_t pixels = p.region[0].size() * p.region[2].size() * p.region[3].size();
  return w[1] >= kWinogradChannels && p.region[1].size() >= kWinogradChannels &&
         pixels >= kWinogradPixels;
}

// Whether oneDNN's result needs no second pass, or that pass is cheap.
bool onednn_pays(const Problem& p) {
  const std::optional<SliceConv> c = slice_conv(p);
  if (!c) return false;
  const bool second_pass = c->residual != nullptr || !c->output_is_dense();
  return !second_pass || c->in_channels / c->groups * c->kernel[0] * c->kernel[1] >= kLongSum;
}

std::vector<const Implementation*> conv_candidates(const Problem& p) {
  const auto& a = p.op->as<ConvAttributes>();
  if (a.groups == p.output.dims[1] && a.groups == p.inputs[0].dims[1] && a.groups > 1) {
    return {&depthwise_loops()};
  }
  if (a.groups > 1) return {&onednn_conv(), &xnnpack_conv(), &tiled_gemm()};
  std::vector<const Implementation*> list;
  if (winograd_pays(p)) list.push_back(&onednn_winograd());
  if (onednn_pays(p)) list.push_back(&onednn_conv());
#if defined(__aarch64__)
  list.push_back(&xnnpack_conv());
#endif
  list.push_back(&tiled_gemm());
  return list;
}

std::vector<const Implementation*> linear_candidates(const Problem& p) {
  if (onednn_pays(p)) return {&onednn_conv(), &tiled_gemm()};
  return {&tiled_gemm()};
}

}  // namespace

std::vector<const Implementation*> candidates(const Problem& p) {
  switch (p.op->kind()) {
    case OperatorKind::kConv: return conv_candidates(p);
    case OperatorKind::kLinear: return linear_candidates(p);
    case OperatorKind::kConvTranspose: return {&tiled_gemm()};
    case OperatorKind::kMatMul: return {&onednn_sgemm()};
    case OperatorKind::kPool: return {&pool_loops()};
    case OperatorKind::kReduce: return {&reduce_loops()};
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm: return {&row_loops()};
    case OperatorKind::kUnary:
    case OperatorKind::kBinary: return {&elementwise_loops()};
    case OperatorKind::kConcat:
    case OperatorKind::kCopy:
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
    case OperatorKind::kPad: return {&copy_loops()};
    case OperatorKind::kResize: return {&resize_loops()};
  }
  return {};
}

}  // namespace tandem::cpu
