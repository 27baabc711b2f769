#include "graph/operator.h"

#include <array>

namespace tandem {

const char* to_string(Function function) {
  switch (function) {
    case Function::kIdentity:
      return "identity";
    case Function::kRelu:
      return "relu";
    case Function::kClip:
      return "clip";
    case Function::kLeakyRelu:
      return "leaky_relu";
    case Function::kElu:
      return "elu";
    case Function::kSigmoid:
      return "sigmoid";
    case Function::kHardSigmoid:
      return "hard_sigmoid";
    case Function::kTanh:
      return "tanh";
    case Function::kSilu:
      return "silu";
    case Function::kHardSwish:
      return "hard_swish";
    case Function::kGelu:
      return "gelu";
    case Function::kGeluTanh:
      return "gelu_tanh";
    case Function::kSoftplus:
      return "softplus";
    case Function::kErf:
      return "erf";
    case Function::kExp:
      return "exp";
    case Function::kLog:
      return "log";
    case Function::kSqrt:
      return "sqrt";
    case Function::kReciprocal:
      return "reciprocal";
    case Function::kAbs:
      return "abs";
    case Function::kNeg:
      return "neg";
    case Function::kFloor:
      return "floor";
    case Function::kCeil:
      return "ceil";
    case Function::kSin:
      return "sin";
    case Function::kCos:
      return "cos";
  }
  return "unknown";
}

const char* to_string(OperatorKind kind) {
  static constexpr std::array<const char*, kOperatorKinds> kNames = {
      "conv",  "conv_transpose", "linear", "matmul", "pool",    "reduce", "softmax", "layer_norm",
      "unary", "binary",         "concat", "copy",   "reshape", "gather", "pad",     "resize"};
  return kNames[static_cast<size_t>(kind)];
}

bool is_packed_input(const Operator& op, int index) {
  switch (op.kind()) {
    case OperatorKind::kConv:
      return index == 1 || (index == 2 && op.as<ConvAttributes>().has_bias);
    case OperatorKind::kConvTranspose:
      return index == 1 || (index == 2 && op.as<ConvTransposeAttributes>().has_bias);
    case OperatorKind::kLinear:
      return index == 1 || (index == 2 && op.as<LinearAttributes>().has_bias);
    case OperatorKind::kLayerNorm:
      return index == 1 || index == 2;
    default:
      return false;
  }
}

}  // namespace tandem
