#include "support/statistics.h"

#include <algorithm>
#include <cmath>

namespace tandem {

double quantile(const std::vector<double>& sorted, double q) {
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = rank - static_cast<double>(below);
  return sorted[below] * (1 - fraction) + sorted[above] * fraction;
}

Summary summarize(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.count = static_cast<int>(samples.size());
  summary.median = quantile(samples, 0.5);
  summary.p90 = quantile(samples, 0.9);
  summary.min = samples.front();
  if (summary.median > 0) {
    summary.spread = (summary.p90 - quantile(samples, 0.1)) / summary.median;
  }
  return summary;
}

}  // namespace tandem
