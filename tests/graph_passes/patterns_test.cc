// Gates and layer norms, in the forms in which exporters write them.
#include <functional>

#include "graph/passes/passes.h"
#include "tests/graph_passes/pass_testing.h"

namespace tandem::testing {
namespace {

using Kind = BinaryAttributes::Kind;
using enum OperatorKind;

StatusOr<Graph> simplify_and_recognize_gates(const Graph& graph) {
  TANDEM_ASSIGN_OR_RETURN(const Graph simple, simplify(graph));
  return recognize_gates(simple);
}

StatusOr<Graph> simplify_and_recognize_layer_norms(const Graph& graph) {
  TANDEM_ASSIGN_OR_RETURN(const Graph simple, simplify(graph));
  return recognize_layer_norms(simple);
}

struct GateForm {
  const char* name;
  Function function;
  std::function<TensorId(Builder&, TensorId)> build;
};

std::ostream& operator<<(std::ostream& out, const GateForm& form) { return out << form.name; }

TensorId clip6(Builder& b, TensorId x) {
  return b.unary(Function::kClip, b.sum(x, b.scalar(3)), 0, 6);
}

TensorId erf_sum(Builder& b, TensorId x) {
  const TensorId argument = b.binary(Kind::kDiv, x, b.scalar(1.41421356f));
  return b.sum(b.unary(Function::kErf, argument), b.scalar(1));
}

TensorId cube(Builder& b, TensorId x) { return b.binary(Kind::kPow, x, b.scalar(3)); }

TensorId tanh_sum(Builder& b, TensorId cubed, TensorId x) {
  const TensorId sum = b.sum(x, b.product(cubed, b.scalar(0.044715f)));
  const TensorId argument = b.product(sum, b.scalar(0.7978845608f));
  return b.sum(b.scalar(1), b.unary(Function::kTanh, argument));
}

const GateForm kForms[] = {
    {"silu", Function::kSilu,
     [](Builder& b, TensorId x) { return b.product(x, b.unary(Function::kSigmoid, x)); }},
    {"silu_of_one_times_x", Function::kSilu,
     [](Builder& b, TensorId x) {
       return b.product(b.unary(Function::kSigmoid, b.product(x, b.scalar(1))), x);
     }},
    {"hard_swish_product_by_6", Function::kHardSwish,
     [](Builder& b, TensorId x) {
       return b.binary(Kind::kDiv, b.product(x, clip6(b, x)), b.scalar(6));
     }},
    {"hard_swish_clip_by_6", Function::kHardSwish,
     [](Builder& b, TensorId x) {
       return b.product(x, b.binary(Kind::kDiv, clip6(b, x), b.scalar(6)));
     }},
    {"hard_swish_x_by_6", Function::kHardSwish,
     [](Builder& b, TensorId x) {
       return b.product(b.binary(Kind::kDiv, x, b.scalar(6)), clip6(b, x));
     }},
    {"hard_swish_of_hard_sigmoid", Function::kHardSwish,
     [](Builder& b, TensorId x) {
       return b.product(x, b.unary(Function::kHardSigmoid, x, 0.16666670143604279f, 0.5f));
     }},
    {"hard_swish_clip_to_1", Function::kHardSwish,
     [](Builder& b, TensorId x) {
       const TensorId inner = b.binary(Kind::kDiv, b.sum(x, b.scalar(3)), b.scalar(6));
       return b.product(x, b.unary(Function::kClip, inner, 0, 1));
     }},
    {"hard_swish_half_plus_sixth", Function::kHardSwish,
     [](Builder& b, TensorId x) {
       const TensorId inner = b.sum(b.product(x, b.scalar(1.0f / 6)), b.scalar(0.5f));
       return b.product(x, b.unary(Function::kClip, inner, 0, 1));
     }},
    {"gelu_half_last", Function::kGelu,
     [](Builder& b, TensorId x) { return b.product(b.product(x, erf_sum(b, x)), b.scalar(0.5f)); }},
    {"gelu_half_first", Function::kGelu,
     [](Builder& b, TensorId x) { return b.product(b.product(x, b.scalar(0.5f)), erf_sum(b, x)); }},
    {"gelu_half_of_sum", Function::kGelu,
     [](Builder& b, TensorId x) { return b.product(b.product(erf_sum(b, x), b.scalar(0.5f)), x); }},
    {"gelu_tanh_power", Function::kGeluTanh,
     [](Builder& b, TensorId x) {
       return b.product(b.product(x, b.scalar(0.5f)), tanh_sum(b, cube(b, x), x));
     }},
    {"gelu_tanh_products", Function::kGeluTanh,
     [](Builder& b, TensorId x) {
       const TensorId cubed = b.product(b.product(x, x), x);
       return b.product(b.scalar(0.5f), b.product(x, tanh_sum(b, cubed, x)));
     }},
    {"gelu_tanh_factored", Function::kGeluTanh,
     [](Builder& b, TensorId x) {
       const TensorId square = b.product(x, x);
       const TensorId inner = b.sum(b.product(square, b.scalar(0.044715f)), b.scalar(1));
       const TensorId argument = b.product(b.product(x, b.scalar(0.7978845608f)), inner);
       const TensorId sum = b.sum(b.unary(Function::kTanh, argument), b.scalar(1));
       return b.product(b.product(x, b.scalar(0.5f)), sum);
     }},
};

class GateTest : public ::testing::TestWithParam<GateForm> {};

TEST_P(GateTest, BecomesOneFunction) {
  Builder b;
  const TensorId x = b.unary(Function::kNeg, b.input({3, 5}));
  const Graph graph = after(simplify_and_recognize_gates, b.finish({GetParam().build(b, x)}));
  ASSERT_EQ(kinds(graph), (std::vector{kUnary, kUnary}));
  EXPECT_EQ(last(graph).as<UnaryAttributes>().function.function, GetParam().function);
}

INSTANTIATE_TEST_SUITE_P(Forms, GateTest, ::testing::ValuesIn(kForms),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Gates, OtherConstantsAreNoGates) {
  Builder b;
  const TensorId x = b.input({3, 5});
  const TensorId by5 = b.binary(Kind::kDiv, b.product(x, clip6(b, x)), b.scalar(5));
  const TensorId half = b.product(x, b.unary(Function::kSigmoid, b.product(x, b.scalar(0.5f))));
  const TensorId hard = b.product(x, b.unary(Function::kHardSigmoid, x, 0.2f, 0.5f));
  const Graph graph = after(simplify_and_recognize_gates, b.finish({by5, half, hard}));
  EXPECT_EQ(last(graph).kind(), kBinary);
  EXPECT_EQ(graph.operators().size(), 9u);
}

TEST(Gates, TheGateOfAnotherTensorIsNone) {
  Builder b;
  const TensorId x = b.input({3, 5});
  const TensorId y = b.input({3, 5});
  const Graph graph =
      after(simplify_and_recognize_gates, b.finish({b.product(x, b.unary(Function::kSigmoid, y))}));
  EXPECT_EQ(kinds(graph), (std::vector{kUnary, kBinary}));
}

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), in a few variants.
struct NormForm {
  int axis = 2;
  bool power = true;  // else a product
  bool two_deviations = false;
  bool reciprocal = false;  // else a division
};

TensorId build_norm(Builder& b, TensorId x, const NormForm& form) {
  const ReduceAttributes mean = {.kind = ReduceAttributes::Kind::kMean, .axes = {form.axis}};
  const TensorId d = b.binary(Kind::kSub, x, b.add(mean, {x}));
  const TensorId d2 = form.two_deviations ? b.binary(Kind::kSub, x, b.add(mean, {x})) : d;
  const TensorId square = form.power ? b.binary(Kind::kPow, d2, b.scalar(2)) : b.product(d2, d2);
  const TensorId variance = b.sum(b.add(mean, {square}), b.scalar(1e-4f));
  const TensorId deviation = b.unary(Function::kSqrt, variance);
  return form.reciprocal ? b.product(d, b.unary(Function::kReciprocal, deviation))
                         : b.binary(Kind::kDiv, d, deviation);
}

TEST(LayerNorms, AllFormsAreRecognized) {
  const NormForm forms[] = {{}, {.power = false}, {.two_deviations = true}, {.reciprocal = true}};
  for (const NormForm& form : forms) {
    Builder b;
    const TensorId x = b.unary(Function::kNeg, b.input({2, 3, 8}));
    const Graph graph =
        after(simplify_and_recognize_layer_norms, b.finish({build_norm(b, x, form)}));
    ASSERT_EQ(kinds(graph), (std::vector{kUnary, kLayerNorm}));
    EXPECT_FLOAT_EQ(last(graph).as<LayerNormAttributes>().epsilon, 1e-4f);
  }
}

TEST(LayerNorms, OverAnotherAxisIsNone) {
  Builder b;
  const TensorId x = b.input({2, 3, 8});
  const Graph graph =
      after(simplify_and_recognize_layer_norms, b.finish({build_norm(b, x, {.axis = 1})}));
  EXPECT_EQ(last(graph).kind(), kBinary);
}

TEST(LayerNorms, ScaleAndShiftGoIn) {
  Builder b;
  const TensorId x = b.input({2, 3, 8});
  TensorId y = b.product(build_norm(b, x, {}), b.weights({8}));
  y = b.sum(b.weights({8}), y);
  const Graph graph = after(optimize, b.finish({y}));
  EXPECT_EQ(kinds(graph), std::vector{kLayerNorm});
}

}  // namespace
}  // namespace tandem::testing
