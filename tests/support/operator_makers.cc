#include "tests/support/operator_makers.h"

#include <utility>

namespace tandem::testing::makers {

Operand constant(Dims dims, double low, double high) {
  return {std::move(dims), kRows, true, DataType::kFloat32, low, high};
}

OperatorCase conv(const std::string& name, Dims x, int64_t m, const ConvAttributes& a) {
  OperatorCase c{"conv/" + name, a, {}, {}, kImage};
  c.operands.push_back({x, kImage});
  c.operands.push_back(constant({m, x[1] / a.groups, a.kernel[0], a.kernel[1]}));
  if (a.has_bias) c.operands.push_back(constant({m}));
  if (a.has_residual) {
    Dims y = {x[0], m};
    for (int i = 0; i < 2; ++i) {
      y.push_back((x[2 + i] + a.pads[i] + a.pads[2 + i] - a.dilation[i] * (a.kernel[i] - 1) - 1) /
                      a.stride[i] +
                  1);
    }
    c.operands.push_back({y, kImage});
  }
  return c;
}

OperatorCase conv_transpose(const std::string& name, Dims x, int64_t m,
                            const ConvTransposeAttributes& a) {
  OperatorCase c{"conv_transpose/" + name, a, {}, {}, kImage};
  c.operands.push_back({x, kImage});
  c.operands.push_back(constant({x[1], m / a.groups, a.kernel[0], a.kernel[1]}));
  if (a.has_bias) c.operands.push_back(constant({m}));
  return c;
}

OperatorCase linear(const std::string& name, Dims x, int64_t n, const LinearAttributes& a) {
  OperatorCase c{"linear/" + name, a, {}, {}, kRows};
  c.operands.push_back({x, kRows});
  c.operands.push_back(constant({x.back(), n}));
  if (a.has_bias) c.operands.push_back(constant({n}));
  if (a.has_residual) {
    Dims y = x;
    y.back() = n;
    c.operands.push_back({y, kRows});
  }
  return c;
}

OperatorCase matmul(const std::string& name, Dims a, Dims b, const MatMulAttributes& attributes) {
  return {"matmul/" + name, attributes, {{std::move(a), kRows}, {std::move(b), kRows}}, {}, kRows};
}

OperatorCase pool(const std::string& name, Dims x, const PoolAttributes& a, Dims output) {
  return {"pool/" + name, a, {{std::move(x), kImage}}, std::move(output), kImage};
}

OperatorCase reduce(const std::string& name, Dims x, const ReduceAttributes& a, Layout in,
                    Layout out) {
  OperatorCase c{"reduce/" + name, a, {{std::move(x), in}}, {}, out};
  // Products of many numbers below one vanish.
  if (a.kind == ReduceAttributes::Kind::kProd) {
    c.operands[0].low = 0.5;
    c.operands[0].high = 1.5;
  }
  return c;
}

OperatorCase softmax(const std::string& name, Dims x, int axis, bool log, Layout layout) {
  OperatorCase c{
      "softmax/" + name, SoftmaxAttributes{axis, log}, {{std::move(x), layout}}, {}, layout};
  c.operands[0].low = -8;
  c.operands[0].high = 8;
  return c;
}

OperatorCase layer_norm(const std::string& name, Dims x, float epsilon) {
  const int64_t d = x.back();
  return {"layer_norm/" + name,
          LayerNormAttributes{epsilon},
          {{std::move(x), kRows}, constant({d}, 0.5, 1.5), constant({d})},
          {},
          kRows};
}

OperatorCase unary(const std::string& name, Dims x, Activation f, Layout layout) {
  OperatorCase c{"unary/" + name, UnaryAttributes{f}, {{std::move(x), layout}}, {}, layout};
  Operand& operand = c.operands[0];
  operand.low = -5;
  operand.high = 5;
  if (f.function == Function::kLog || f.function == Function::kSqrt) operand.low = 0.125;
  if (f.function == Function::kReciprocal) operand.low = 0.5;
  return c;
}

OperatorCase binary(const std::string& name, BinaryAttributes::Kind kind, Operand a, Operand b,
                    Layout output, Activation activation) {
  if (kind == BinaryAttributes::Kind::kDiv) b.low = 0.5, b.high = 2;
  if (kind == BinaryAttributes::Kind::kPow) a.low = 0.5, a.high = 2, b.low = -3, b.high = 3;
  return {"binary/" + name,
          BinaryAttributes{kind, activation},
          {std::move(a), std::move(b)},
          {},
          output};
}

OperatorCase concat(const std::string& name, int axis, std::vector<Operand> parts, Layout output) {
  return {"concat/" + name, ConcatAttributes{axis}, std::move(parts), {}, output};
}

OperatorCase copy(const std::string& name, Operand x, Dims output, CopyAttributes a,
                  Layout output_layout) {
  return {"copy/" + name, std::move(a), {std::move(x)}, std::move(output), output_layout};
}

OperatorCase reshape(const std::string& name, Operand x, Dims output, Layout output_layout) {
  return {"reshape/" + name, ReshapeAttributes{}, {std::move(x)}, std::move(output), output_layout};
}

OperatorCase gather(const std::string& name, Operand x, Dims indices, int axis) {
  const double extent = static_cast<double>(x.dims[axis]);
  Operand i{std::move(indices), kRows, false, DataType::kInt64, -extent, extent - 1};
  return {"gather/" + name, GatherAttributes{axis}, {std::move(x), std::move(i)}, {}, kRows};
}

OperatorCase pad(const std::string& name, Dims x, const PadAttributes& a, Layout layout) {
  return {"pad/" + name, a, {{std::move(x), layout}}, {}, layout};
}

OperatorCase resize(const std::string& name, Dims x, int64_t height, int64_t width,
                    ResizeAttributes a) {
  a.scale = {static_cast<float>(height) / static_cast<float>(x[2]),
             static_cast<float>(width) / static_cast<float>(x[3])};
  Dims y = {x[0], x[1], height, width};
  return {"resize/" + name, a, {{std::move(x), kImage}}, std::move(y), kImage};
}

}  // namespace tandem::testing::makers
