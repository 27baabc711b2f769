#include "predict/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "support/statistics.h"

namespace tandem::predict {

ErrorSummary summarize_errors(std::span<const double> predicted, std::span<const double> measured) {
  if (measured.empty()) return {};
  std::vector<double> errors;
  ErrorSummary summary;
  double off = 0;
  double all = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    const double error = std::abs(predicted[i] / measured[i] - 1);
    errors.push_back(error);
    summary.mape += error;
    if (error <= 0.1) summary.within_10 += 1;
    off += std::abs(predicted[i] - measured[i]);
    all += measured[i];
  }
  const auto count = static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  summary.count = errors.size();
  summary.mape /= count;
  summary.within_10 /= count;
  summary.time_weighted = off / all;
  summary.p90 = quantile(errors, 0.9);
  return summary;
}

ErrorSummary repeat_errors(std::span<const std::string> keys, std::span<const double> measured) {
  struct Total {
    double sum = 0;
    int count = 0;
  };
  std::map<std::string, Total> totals;
  for (size_t i = 0; i < keys.size(); ++i) {
    Total& total = totals[keys[i]];
    total.sum += measured[i];
    ++total.count;
  }
  std::vector<double> others;
  std::vector<double> repeated;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Total& total = totals[keys[i]];
    if (total.count < 2) continue;
    others.push_back((total.sum - measured[i]) / (total.count - 1));
    repeated.push_back(measured[i]);
  }
  return summarize_errors(others, repeated);
}

}  // namespace tandem::predict
