// Operators of Tandem's graph. Importers lower every model to these kinds. Each operator has
// exactly one output tensor (ONNX Split becomes one kCopy per output).
//
// To add a kind: its attributes and arity here, its shape rule (shape.cc), its partition rule
// (partition.cc), its reference (reference.cc), an implementation per lane, a row in the tests'
// operator table.
#pragma once

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "graph/tensor.h"

namespace tandem {

// Functions of one value: operators of their own (kUnary) and the last step of others (Activation).
// alpha and beta are the parameters named in the comment; the others have none.
enum class Function : uint8_t {
  kIdentity,
  kRelu,
  kClip,       // min(max(x, alpha), beta)
  kLeakyRelu,  // x < 0 ? alpha * x : x
  kElu,        // x < 0 ? alpha * (exp(x) - 1) : x
  kSigmoid,
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kTanh,
  kSilu,       // x * sigmoid(x)
  kHardSwish,  // x * min(max(x / 6 + 0.5, 0), 1)
  kGelu,       // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,   // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  kSoftplus,   // log(1 + exp(x))
  kErf,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kAbs,
  kNeg,
  kFloor,
  kCeil,
  kSin,
  kCos,
};
const char* to_string(Function function);

struct Activation {
  Function function = Function::kIdentity;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Activation&) const = default;
};

// [top, left, bottom, right]
using Pads = std::array<int64_t, 4>;
// [height, width]
using Size2 = std::array<int64_t, 2>;

// y = activation(conv(x, w) + bias + residual). x: N,C,H,W. w: M,C/groups,kH,kW.
// Inputs: x, w (constant), then bias (constant [M]) if has_bias, then residual (shape of y) if
// has_residual. Depthwise where groups == C == M. Channels-last tensors only.
struct ConvAttributes {
  Size2 kernel{1, 1};
  Size2 stride{1, 1};
  Size2 dilation{1, 1};
  Pads pads{0, 0, 0, 0};
  int64_t groups = 1;
  bool has_bias = false;
  bool has_residual = false;
  Activation activation{};
};

// y = activation(conv_transpose(x, w) + bias). w: C,M/groups,kH,kW (constant), then bias (constant
// [M]) if has_bias. Output extent: stride * (in - 1) + output_padding + dilation * (k - 1) + 1 -
// pads. Channels-last tensors only.
struct ConvTransposeAttributes {
  Size2 kernel{1, 1};
  Size2 stride{1, 1};
  Size2 dilation{1, 1};
  Pads pads{0, 0, 0, 0};
  Size2 output_padding{0, 0};
  int64_t groups = 1;
  bool has_bias = false;
  Activation activation{};
};

// y = activation(x * w + bias + residual). x: [..., K], y: [..., N]; all leading dimensions of x
// are rows. w: constant [K, N], row-major. Inputs as for ConvAttributes. Row-major tensors only.
struct LinearAttributes {
  bool has_bias = false;
  bool has_residual = false;
  Activation activation{};
};

// y[..., M, N] = alpha * op(a) * op(b), op transposing the last two dimensions if asked; leading
// dimensions broadcast as in numpy. Ranks of a and b are equal, at least 2. Row-major tensors only.
struct MatMulAttributes {
  bool transpose_a = false;  // a is [..., K, M]
  bool transpose_b = false;  // b is [..., N, K]
  float alpha = 1;
};

// x: N,C,H,W. Average pooling divides by the number of elements inside the image, or inside image
// plus pads if count_include_pad. Output extents are those of the tensor (ceil_mode is resolved at
// import; windows may then reach past the pads). Global pooling: the kernel is the image.
// Channels-last tensors only.
struct PoolAttributes {
  enum class Kind : uint8_t { kMax, kAverage } kind = Kind::kMax;
  Size2 kernel{1, 1};
  Size2 stride{1, 1};
  Size2 dilation{1, 1};
  Pads pads{0, 0, 0, 0};
  bool count_include_pad = false;
};

// Over `axes` (ascending, non-negative). keep_dims only says which rank the output has.
struct ReduceAttributes {
  enum class Kind : uint8_t { kMean, kSum, kMax, kMin, kProd, kL2 } kind = Kind::kMean;
  std::vector<int> axes{};
  bool keep_dims = true;
};

// Along one axis.
struct SoftmaxAttributes {
  int axis = -1;  // non-negative once in the graph
  bool log = false;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the last dimension. Inputs: x,
// scale (constant [D]), bias (constant [D]). Row-major tensors only. (Importers lower a LayerNorm
// over several trailing dimensions by reshaping.)
struct LayerNormAttributes {
  float epsilon = 1e-5f;
};

struct UnaryAttributes {
  Activation function{};
};

// y = activation(a op b) with numpy's broadcasting; an operand may have a lower rank than y.
struct BinaryAttributes {
  enum class Kind : uint8_t { kAdd, kSub, kMul, kDiv, kPow, kMax, kMin } kind = Kind::kAdd;
  Activation activation{};
};

struct ConcatAttributes {
  int axis = 0;
};

// y[i0, i1, ...] = x at element offset + sum of i_d * step[d] in x's own index space: for each
// output dimension d, source_axis[d] (or kNone for a broadcast) says which axis of x it walks,
// start[a] where axis a of x begins, and step[d] by how much it moves. Transpose, Slice (negative
// steps too), Expand, and conversion between layouts are all this. x may have a different rank.
struct CopyAttributes {
  std::vector<int> source_axis{};  // per output dimension
  Dims step{};                     // per output dimension; 1 for a plain walk
  Dims start{};                    // per axis of x
};

// Same elements in row-major logical order under other extents. Lanes copy; where memory allows,
// the memory plan makes it an alias and it is never launched.
struct ReshapeAttributes {};

// y = x gathered along `axis` by `indices` (second input, int64, negative counts from the end).
// Output dims: x.dims[:axis] + indices.dims + x.dims[axis+1:].
struct GatherAttributes {
  int axis = 0;
};

// Per logical dimension; only non-negative pads (a crop is a kCopy).
struct PadAttributes {
  enum class Mode : uint8_t { kConstant, kReflect, kEdge } mode = Mode::kConstant;
  Dims before{};
  Dims after{};
  float value = 0;
};

// x: N,C,H,W, over H and W only; extents from the tensors. Channels-last tensors only.
struct ResizeAttributes {
  enum class Mode : uint8_t { kNearest, kLinear, kCubic } mode = Mode::kNearest;
  enum class Coordinates : uint8_t {
    kHalfPixel,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
  } coordinates = Coordinates::kHalfPixel;
  enum class Nearest : uint8_t {
    kRoundPreferFloor,
    kRoundPreferCeil,
    kFloor,
    kCeil,
  } nearest = Nearest::kRoundPreferFloor;
  std::array<float, 2> scale{1, 1};  // output over input, as the model gives it
  float cubic_a = -0.75f;
};

using Attributes =
    std::variant<ConvAttributes, ConvTransposeAttributes, LinearAttributes, MatMulAttributes,
                 PoolAttributes, ReduceAttributes, SoftmaxAttributes, LayerNormAttributes,
                 UnaryAttributes, BinaryAttributes, ConcatAttributes, CopyAttributes,
                 ReshapeAttributes, GatherAttributes, PadAttributes, ResizeAttributes>;

// In the order of the variant's alternatives: kind() is the variant's index.
enum class OperatorKind : uint8_t {
  kConv,
  kConvTranspose,
  kLinear,
  kMatMul,
  kPool,
  kReduce,
  kSoftmax,
  kLayerNorm,
  kUnary,
  kBinary,
  kConcat,
  kCopy,
  kReshape,
  kGather,
  kPad,
  kResize,
};
inline constexpr int kOperatorKinds = std::variant_size_v<Attributes>;
const char* to_string(OperatorKind kind);

struct Operator {
  std::string name;  // unique within the graph
  Attributes attributes;
  std::vector<TensorId> inputs;
  TensorId output = kNone;

  OperatorKind kind() const { return static_cast<OperatorKind>(attributes.index()); }
  template <typename T>
  const T& as() const {
    return std::get<T>(attributes);
  }
};

// True where a lane takes constant input `index` of the operator into its own packed form at load
// (weights, bias, scale), so that it needs no place in shared memory.
bool is_packed_input(const Operator& op, int index);

// Floating-point operations of the whole operator, a multiply-add counted as two; and bytes read
// (each input once) plus written.
struct Work {
  double flops = 0;
  double bytes = 0;
};

}  // namespace tandem
