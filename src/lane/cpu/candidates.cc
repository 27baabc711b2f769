// The rule by which the CPU lane picks an implementation. Measured on a Zen 5 core with AVX-512,
// oneDNN 2.6.3 and XNNPACK of 2022-02, times relative to the best:
//
//                              oneDNN direct  Winograd  tiled GEMM  XNNPACK
//   3x3 s1, 64..256 channels        1.4          1         1.5        1.8
//   3x3 s2                          1            -         1.05       1.25
//   1x7 and the like                1            -         1.1        1.4
//   1x1, 96..2048 channels          1            -         1.03       1.25
//   1x1, 16..64 channels            1            -      1.1..1.25     1.2
//   stems, 3 channels           reference        -         1       1..1.35
//   grouped                         1            -      3 or more     1.2
//
// oneDNN's channels-last code needs input and output without gaps and adds no residual; a second
// pass over the output costs more than the tiled product's difference, which takes any strides.
// Depthwise: our own loops take 0.75 to 1.15 of oneDNN's time, XNNPACK 1.4 to 3.
#include "lane/cpu/kernel.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/onednn/convolution.h"
#include "lane/cpu/onednn/onednn.h"
#include "lane/cpu/xnnpack/xnnpack.h"

namespace tandem::cpu {
namespace {

// Whether oneDNN's result needs no second pass over the output.
bool onednn_pays(const Problem& p) {
  const std::optional<SliceConv> c = slice_conv(p);
  if (!c || !c->input_is_dense() || !c->output_is_dense() || c->residual != nullptr) return false;
  // A row alone is limited by reading the weights; our own loops read them in one stream.
  return c->batch * c->output[0] * c->output[1] > 1;
}

std::vector<const Implementation*> conv_candidates(const Problem& p) {
  const auto& a = p.op->as<ConvAttributes>();
  if (a.groups == p.output.dims[1] && a.groups == p.inputs[0].dims[1] && a.groups > 1) {
    return {&depthwise_loops()};
  }
  if (a.groups > 1) return {&onednn_conv(), &xnnpack_conv(), &tiled_gemm()};
  std::vector<const Implementation*> list;
  if (onednn_winograd_pays(p)) list.push_back(&onednn_winograd());
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
    case OperatorKind::kConv:
      return conv_candidates(p);
    case OperatorKind::kLinear:
      return linear_candidates(p);
    case OperatorKind::kConvTranspose:
      return {&tiled_gemm()};
    case OperatorKind::kMatMul:
      return {&batched_gemm()};
    case OperatorKind::kPool:
      return {&pool_loops()};
    case OperatorKind::kReduce:
      return {&reduce_loops()};
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm:
      return {&row_loops()};
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
      return {&elementwise_loops()};
    case OperatorKind::kConcat:
    case OperatorKind::kCopy:
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
    case OperatorKind::kPad:
      return {&copy_loops()};
    case OperatorKind::kResize:
      return {&resize_loops()};
  }
  return {};
}

}  // namespace tandem::cpu
