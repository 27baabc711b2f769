// Makes cases of the operator table: one function per kind, which fills in the operands that its
// attributes ask for. `name` goes behind the kind's.
#pragma once

#include <string>
#include <vector>

#include "tests/support/operator_table.h"

namespace tandem::testing::makers {

inline constexpr Layout kImage{Order::kChannelsLast, true};
inline constexpr Layout kRows{Order::kRowMajor, true};
inline constexpr Layout kDense{Order::kRowMajor, false};

inline constexpr Activation kRelu{Function::kRelu};
inline constexpr Activation kRelu6{Function::kClip, 0, 6};

Operand constant(Dims dims, double low = -1, double high = 1);
OperatorCase conv(const std::string& name, Dims x, int64_t m, const ConvAttributes& a);
OperatorCase conv_transpose(const std::string& name, Dims x, int64_t m,
                            const ConvTransposeAttributes& a);
OperatorCase linear(const std::string& name, Dims x, int64_t n, const LinearAttributes& a);
OperatorCase matmul(const std::string& name, Dims a, Dims b, const MatMulAttributes& attributes);
OperatorCase pool(const std::string& name, Dims x, const PoolAttributes& a, Dims output = {});
OperatorCase reduce(const std::string& name, Dims x, const ReduceAttributes& a, Layout in = kRows,
                    Layout out = kRows);
OperatorCase softmax(const std::string& name, Dims x, int axis, bool log, Layout layout = kRows);
OperatorCase layer_norm(const std::string& name, Dims x, float epsilon = 1e-5f);
OperatorCase unary(const std::string& name, Dims x, Activation f, Layout layout = kRows);
OperatorCase binary(const std::string& name, BinaryAttributes::Kind kind, Operand a, Operand b,
                    Layout output, Activation activation = {});
OperatorCase concat(const std::string& name, int axis, std::vector<Operand> parts, Layout output);
OperatorCase copy(const std::string& name, Operand x, Dims output, CopyAttributes a,
                  Layout output_layout);
OperatorCase reshape(const std::string& name, Operand x, Dims output, Layout output_layout);
OperatorCase gather(const std::string& name, Operand x, Dims indices, int axis);
OperatorCase pad(const std::string& name, Dims x, const PadAttributes& a, Layout layout);
OperatorCase resize(const std::string& name, Dims x, int64_t height, int64_t width,
                    ResizeAttributes a);

}  // namespace tandem::testing::makers
