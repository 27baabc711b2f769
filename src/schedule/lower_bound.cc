#include <algorithm>
#include <cmath>
#include <limits>

#include "schedule/evaluator.h"

namespace tandem {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double longest_way_us(const ModeTables& tables) {
  double path = 0;
  for (int op = 0; op < tables.operators; ++op) {
    double shortest = kNever;
    for (int mode = 0; mode < tables.mode_count(op); ++mode) {
      double longest = 0;
      for (int p = 0; p < tables.part_count(op, mode); ++p) {
        const size_t part = tables.part(op, mode, p);
        longest = std::max(longest, tables.us[part] + tables.tail_us[part]);
      }
      shortest = std::min(shortest, longest);
    }
    path = std::max(path, shortest);
  }
  return path;
}

// The bound for these weights; `loads`: what the modes that are cheapest then put on each lane.
double weighted_work_us(const ModeTables& tables, const std::vector<double>& weights,
                        std::vector<double>* loads) {
  std::fill(loads->begin(), loads->end(), 0);
  double sum = 0;
  for (int op = 0; op < tables.operators; ++op) {
    double cheapest = kNever;
    int best = 0;
    for (int mode = 0; mode < tables.mode_count(op); ++mode) {
      double us = 0;
      for (int p = 0; p < tables.part_count(op, mode); ++p) {
        const size_t part = tables.part(op, mode, p);
        us += weights[tables.lane[part]] * tables.us[part];
      }
      if (us < cheapest) {
        cheapest = us;
        best = mode;
      }
    }
    for (int p = 0; p < tables.part_count(op, best); ++p) {
      const size_t part = tables.part(op, best, p);
      (*loads)[tables.lane[part]] += tables.us[part];
    }
    sum += cheapest;
  }
  return sum;
}

// Weights grow where there is much to do, by ever smaller steps. Each step gives a bound.
double work_us(const ModeTables& tables) {
  constexpr int kSteps = 40;
  std::vector<double> weights(tables.lanes, 1.0 / tables.lanes);
  std::vector<double> loads(tables.lanes);
  double best = 0;
  for (int step = 0; step < kSteps; ++step) {
    best = std::max(best, weighted_work_us(tables, weights, &loads));
    const double most = *std::max_element(loads.begin(), loads.end());
    if (most <= 0) break;
    double sum = 0;
    for (int lane = 0; lane < tables.lanes; ++lane) {
      weights[lane] *= std::exp(loads[lane] / most / (1 + step / 2.0));
      sum += weights[lane];
    }
    for (double& weight : weights) weight /= sum;
  }
  return best;
}

}  // namespace

double lower_bound_us(const ModeTables& tables) {
  if (tables.operators == 0) return 0;
  return std::max(longest_way_us(tables), work_us(tables));
}

}  // namespace tandem
