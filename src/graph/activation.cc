// Values of activation functions.
#include <cmath>
#include <numbers>

#include "graph/reference.h"

namespace tandem {
namespace {

double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

}  // namespace

double apply(const Activation& activation, double x) {
  const double alpha = activation.alpha;
  const double beta = activation.beta;
  switch (activation.function) {
    case Function::kIdentity:
      return x;
    case Function::kRelu:
      return x < 0 ? 0 : x;
    case Function::kClip:
      return clamp(x, alpha, beta);
    case Function::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Function::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case Function::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Function::kHardSigmoid:
      return clamp(alpha * x + beta, 0, 1);
    case Function::kTanh:
      return std::tanh(x);
    case Function::kSilu:
      return x / (1 + std::exp(-x));
    case Function::kHardSwish:
      return x * clamp(x / 6 + 0.5, 0, 1);
    case Function::kGelu:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    case Function::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Function::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case Function::kErf:
      return std::erf(x);
    case Function::kExp:
      return std::exp(x);
    case Function::kLog:
      return std::log(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kReciprocal:
      return 1 / x;
    case Function::kAbs:
      return std::abs(x);
    case Function::kNeg:
      return -x;
    case Function::kFloor:
      return std::floor(x);
    case Function::kCeil:
      return std::ceil(x);
    case Function::kSin:
      return std::sin(x);
    case Function::kCos:
      return std::cos(x);
  }
  return x;
}

}  // namespace tandem
