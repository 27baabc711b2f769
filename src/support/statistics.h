// Summaries of repeated measurements.
#pragma once

#include <vector>

namespace tandem {

struct Summary {
  int count = 0;
  double median = 0;
  double p90 = 0;
  double min = 0;
  double spread = 0;  // (p90 - p10) / median
};

// All zero for no samples.
Summary summarize(std::vector<double> samples);

// Linear interpolation between the closest ranks; `sorted` is ascending and not empty.
double quantile(const std::vector<double>& sorted, double q);

}  // namespace tandem
