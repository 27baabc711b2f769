// Functions of one value, arithmetic with broadcasting, and what is made of a few of these.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();
using Binary = BinaryAttributes::Kind;

Value scalar(Node& node, float value, std::string_view suffix) {
  return node.constant(HostTensor::floats({}, {value}), suffix);
}

StatusOr<Value> emit_unary(Node& node, const Value& x, Activation function,
                           std::string_view suffix = "") {
  return node.emit(UnaryAttributes{function}, {x}, {}, suffix);
}

StatusOr<Value> emit_binary(Node& node, Binary kind, const Value& a, const Value& b,
                            std::string_view suffix = "") {
  return node.emit(BinaryAttributes{.kind = kind, .activation = {}}, {a, b}, {}, suffix);
}

// ---- Functions of one value -----------------------------------------------------------------

// An attribute of the node that is a parameter of the function; no name: the function has none.
struct Parameter {
  const char* attribute = nullptr;
  float otherwise = 0;
};

struct UnaryRow {
  std::string_view op_type;
  Function function;
  Parameter alpha = {};
  Parameter beta = {};
};

constexpr UnaryRow kUnaries[] = {
    {"Abs", Function::kAbs},
    {"Ceil", Function::kCeil},
    {"Cos", Function::kCos},
    {"Elu", Function::kElu, {"alpha", 1.0f}},
    {"Erf", Function::kErf},
    {"Exp", Function::kExp},
    {"Floor", Function::kFloor},
    {"HardSigmoid", Function::kHardSigmoid, {"alpha", 0.2f}, {"beta", 0.5f}},
    {"HardSwish", Function::kHardSwish},
    {"LeakyRelu", Function::kLeakyRelu, {"alpha", 0.01f}},
    {"Log", Function::kLog},
    {"Neg", Function::kNeg},
    {"Reciprocal", Function::kReciprocal},
    {"Relu", Function::kRelu},
    {"Sigmoid", Function::kSigmoid},
    {"Sin", Function::kSin},
    {"Softplus", Function::kSoftplus},
    {"Sqrt", Function::kSqrt},
    {"Tanh", Function::kTanh},
};

Status lower_unary(Node& node) {
  const UnaryRow* row = std::find_if(std::begin(kUnaries), std::end(kUnaries),
                                     [&](const UnaryRow& r) { return r.op_type == node.type(); });
  const auto parameter = [&](const Parameter& p) {
    return p.attribute ? node.number(p.attribute, p.otherwise) : p.otherwise;
  };
  const Activation function = {row->function, parameter(row->alpha), parameter(row->beta)};
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_unary(node, node.value(0), function));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_gelu(Node& node) {
  const std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return invalid_argument("approximate is '" + approximate + "'");
  }
  const Function function = approximate == "tanh" ? Function::kGeluTanh : Function::kGelu;
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_unary(node, node.value(0), {.function = function}));
  node.set_output(0, std::move(y));
  return {};
}

// The bounds of a Clip, attributes up to opset 10, then inputs.
Status lower_clip(Node& node) {
  Value y = node.value(0);
  const bool known =
      (!node.has(1) || node.value(1).constant) && (!node.has(2) || node.value(2).constant);
  if (known && y.type == DataType::kFloat32) {
    Activation clip = {Function::kClip, node.number("min", -kMost), node.number("max", kMost)};
    if (node.has(1)) {
      TANDEM_ASSIGN_OR_RETURN(clip.alpha, node.float_of(1));
    }
    if (node.has(2)) {
      TANDEM_ASSIGN_OR_RETURN(clip.beta, node.float_of(2));
    }
    TANDEM_ASSIGN_OR_RETURN(y, emit_unary(node, y, clip));
  } else {
    // Bounds that the model computes, or integers.
    if (node.has(1)) {
      TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kMax, y, node.value(1), "min"));
    }
    if (node.has(2)) {
      TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kMin, y, node.value(2), "max"));
    }
  }
  node.set_output(0, std::move(y));
  return {};
}

// alpha * elu(x / alpha, 1).
Status lower_celu(Node& node) {
  const float alpha = node.number("alpha", 1.0f);
  if (alpha == 0) return invalid_argument("alpha is 0");
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_binary(node, Binary::kMul, node.value(0),
                                               scalar(node, 1 / alpha, "scale"), "divide"));
  TANDEM_ASSIGN_OR_RETURN(y, emit_unary(node, y, {Function::kElu, 1.0f}));
  TANDEM_ASSIGN_OR_RETURN(
      y, emit_binary(node, Binary::kMul, y, scalar(node, alpha, "alpha"), "multiply"));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_selu(Node& node) {
  const float alpha = node.number("alpha", 1.67326319217681884765625f);
  const float gamma = node.number("gamma", 1.05070102214813232421875f);
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_unary(node, node.value(0), {Function::kElu, alpha}));
  TANDEM_ASSIGN_OR_RETURN(
      y, emit_binary(node, Binary::kMul, y, scalar(node, gamma, "gamma"), "multiply"));
  node.set_output(0, std::move(y));
  return {};
}

// x * sigmoid(alpha * x).
Status lower_swish(Node& node) {
  const Value x = node.value(0);
  const float alpha = node.number("alpha", 1);
  Value y;
  if (alpha == 1) {
    TANDEM_ASSIGN_OR_RETURN(y, emit_unary(node, x, {Function::kSilu}));
  } else {
    TANDEM_ASSIGN_OR_RETURN(
        y, emit_binary(node, Binary::kMul, x, scalar(node, alpha, "alpha"), "scaled"));
    TANDEM_ASSIGN_OR_RETURN(y, emit_unary(node, y, {Function::kSigmoid}, "sigmoid"));
    TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kMul, x, y));
  }
  node.set_output(0, std::move(y));
  return {};
}

// x * tanh(softplus(x)).
Status lower_mish(Node& node) {
  const Value x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_unary(node, x, {Function::kSoftplus}, "softplus"));
  TANDEM_ASSIGN_OR_RETURN(y, emit_unary(node, y, {Function::kTanh}, "tanh"));
  TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kMul, x, y));
  node.set_output(0, std::move(y));
  return {};
}

// x / (1 + |x|).
Status lower_softsign(Node& node) {
  const Value x = node.value(0);
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_unary(node, x, {Function::kAbs}, "abs"));
  TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kAdd, y, scalar(node, 1, "one"), "add"));
  TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kDiv, x, y));
  node.set_output(0, std::move(y));
  return {};
}

// A LeakyRelu where the slope is a single known number, else max(x, 0) + slope * min(x, 0).
Status lower_prelu(Node& node) {
  const Value x = node.value(0);
  Value slope = node.value(1);
  // Files converted from opset 6 have a slope per channel that does not broadcast.
  if (slope.rank() == 1 && x.rank() > 2 && slope.dims[0] == x.dims[1] &&
      slope.dims[0] != x.dims.back()) {
    Dims dims(static_cast<size_t>(x.rank() - 1), 1);
    dims[0] = x.dims[1];
    TANDEM_ASSIGN_OR_RETURN(slope, node.reshape(slope, dims, "slopes"));
  }
  Value y;
  if (slope.constant && slope.constant->size() == 1) {
    TANDEM_ASSIGN_OR_RETURN(const float alpha, node.float_of(1));
    TANDEM_ASSIGN_OR_RETURN(y, emit_unary(node, x, {Function::kLeakyRelu, alpha}));
  } else {
    TANDEM_ASSIGN_OR_RETURN(const Value high, emit_unary(node, x, {Function::kRelu}, "positive"));
    TANDEM_ASSIGN_OR_RETURN(Value low,
                            emit_unary(node, x, {Function::kClip, -kMost, 0}, "negative"));
    TANDEM_ASSIGN_OR_RETURN(low, emit_binary(node, Binary::kMul, low, slope, "slope"));
    TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kAdd, high, low));
  }
  if (y.dims != x.dims) return invalid_argument("the slope does not broadcast to the input");
  node.set_output(0, std::move(y));
  return {};
}

// ---- Arithmetic -----------------------------------------------------------------------------

struct BinaryRow {
  std::string_view op_type;
  Binary kind;
};

constexpr BinaryRow kBinaries[] = {
    {"Add", Binary::kAdd}, {"Div", Binary::kDiv}, {"Max", Binary::kMax}, {"Mean", Binary::kAdd},
    {"Min", Binary::kMin}, {"Mul", Binary::kMul}, {"Sub", Binary::kSub}, {"Sum", Binary::kAdd},
};

Binary kind_of(std::string_view op_type) {
  return std::find_if(std::begin(kBinaries), std::end(kBinaries),
                      [&](const BinaryRow& row) { return row.op_type == op_type; })
      ->kind;
}

Status lower_binary(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(Value y,
                          emit_binary(node, kind_of(node.type()), node.value(0), node.value(1)));
  node.set_output(0, std::move(y));
  return {};
}

// One operand after the other; the last step is the node's main operator.
StatusOr<Value> emit_chain(Node& node, Binary kind) {
  Value y = node.value(0);
  for (int i = 1; i < node.inputs(); ++i) {
    if (!node.has(i)) return invalid_argument("an operand is missing");
    const std::string suffix = i + 1 < node.inputs() ? std::to_string(i) : "";
    TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, kind, y, node.value(i), suffix));
  }
  return y;
}

Status lower_variadic(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_chain(node, kind_of(node.type())));
  node.set_output(0, std::move(y));
  return {};
}

Status lower_mean(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_chain(node, Binary::kAdd));
  if (node.inputs() > 1) {
    const Value share = scalar(node, 1.0f / static_cast<float>(node.inputs()), "share");
    TANDEM_ASSIGN_OR_RETURN(y, emit_binary(node, Binary::kMul, y, share, "divide"));
  }
  node.set_output(0, std::move(y));
  return {};
}

// The one operation whose operands may have different types; the base decides.
Status lower_pow(Node& node) {
  Value exponent = node.value(1);
  if (node.value(0).type != exponent.type && exponent.constant) {
    HostTensor converted(node.value(0).type, exponent.dims);
    for (int64_t i = 0; i < converted.size(); ++i) {
      if (exponent.type == DataType::kInt64) {
        converted.data<float>()[i] = static_cast<float>(exponent.constant->data<int64_t>()[i]);
      } else {
        return unsupported("an integer to the power of a float");
      }
    }
    exponent = node.constant(std::move(converted), "exponent");
  }
  TANDEM_ASSIGN_OR_RETURN(Value y, emit_binary(node, Binary::kPow, node.value(0), exponent));
  node.set_output(0, std::move(y));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"Abs", 13, lower_unary},         {"Add", 14, lower_binary, 2},
    {"Ceil", 13, lower_unary},        {"Celu", 28, lower_celu},
    {"Clip", 13, lower_clip},         {"Cos", 22, lower_unary},
    {"Div", 14, lower_binary, 2},     {"Elu", 22, lower_unary},
    {"Erf", 13, lower_unary},         {"Exp", 13, lower_unary},
    {"Floor", 13, lower_unary},       {"Gelu", 20, lower_gelu},
    {"HardSigmoid", 22, lower_unary}, {"HardSwish", 22, lower_unary},
    {"LeakyRelu", 16, lower_unary},   {"Log", 13, lower_unary},
    {"Max", 13, lower_variadic},      {"Mean", 13, lower_mean},
    {"Min", 13, lower_variadic},      {"Mish", 22, lower_mish},
    {"Mul", 14, lower_binary, 2},     {"Neg", 13, lower_unary},
    {"PRelu", 16, lower_prelu, 2},    {"Pow", 15, lower_pow, 2},
    {"Reciprocal", 13, lower_unary},  {"Relu", 14, lower_unary},
    {"Selu", 22, lower_selu},         {"Sigmoid", 13, lower_unary},
    {"Sin", 22, lower_unary},         {"Softplus", 22, lower_unary},
    {"Softsign", 22, lower_softsign}, {"Sqrt", 13, lower_unary},
    {"Sub", 14, lower_binary, 2},     {"Sum", 13, lower_variadic},
    {"Swish", 24, lower_swish},       {"Tanh", 13, lower_unary},
};

}  // namespace

std::span<const Lowering> elementwise_lowerings() { return kLowerings; }

}  // namespace tandem
