#include "predict/cost_line.h"

#include <algorithm>
#include <cmath>

namespace tandem::predict {
namespace {

constexpr int kMaximumSweeps = 20000;

// The x >= 0 that minimises x'Ax/2 - b'x, one coordinate after another. A has a unit diagonal,
// or a zero row where a term is absent.
std::vector<double> minimise(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t n = b.size();
  std::vector<double> x(n);
  for (int sweep = 0; sweep < kMaximumSweeps; ++sweep) {
    double change = 0;
    for (size_t i = 0; i < n; ++i) {
      if (a[i * n + i] == 0) continue;
      double gradient = -b[i];
      for (size_t j = 0; j < n; ++j) gradient += a[i * n + j] * x[j];
      const double next = std::max(0.0, x[i] - gradient / a[i * n + i]);
      change = std::max(change, std::abs(next - x[i]));
      x[i] = next;
    }
    if (change < 1e-12) break;
  }
  return x;
}

}  // namespace

CostLine CostLine::fit(std::span<const double> terms, size_t width, std::span<const double> times) {
  // Relative errors: each row divided by its time, to be 1. Columns are scaled to length 1.
  std::vector<double> scale(width);
  for (size_t r = 0; r < times.size(); ++r) {
    for (size_t i = 0; i < width; ++i) {
      const double value = terms[r * width + i] / times[r];
      scale[i] += value * value;
    }
  }
  for (double& s : scale) s = s > 0 ? 1 / std::sqrt(s) : 0;
  std::vector<double> a(width * width);
  std::vector<double> b(width);
  for (size_t r = 0; r < times.size(); ++r) {
    for (size_t i = 0; i < width; ++i) {
      const double left = scale[i] * terms[r * width + i] / times[r];
      b[i] += left;
      for (size_t j = 0; j < width; ++j) {
        a[i * width + j] += left * scale[j] * terms[r * width + j] / times[r];
      }
    }
  }
  std::vector<double> weights = minimise(a, b);
  for (size_t i = 0; i < width; ++i) weights[i] *= scale[i];
  return CostLine(std::move(weights));
}

double CostLine::predict(std::span<const double> terms) const {
  double time = 0;
  for (size_t i = 0; i < weights_.size(); ++i) time += weights_[i] * terms[i];
  return std::max(time, 1e-3);
}

}  // namespace tandem::predict
