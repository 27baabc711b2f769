#include "predict/kernel_choice.h"

#include <set>

namespace tandem::predict {

StatusOr<KernelChoice> KernelChoice::fit(const Frame& known, std::span<const int> kernels) {
  const std::set<int> seen(kernels.begin(), kernels.end());
  KernelChoice choice;
  // Rules are thresholds of few arguments: few trees, all rows and features.
  const BoostingOptions options{.trees = 20,
                                .depth = 5,
                                .learning_rate = 0.3,
                                .row_share = 1,
                                .feature_share = 1,
                                .minimum_weight = 0.1};
  for (const int kernel : seen) {
    if (seen.size() == 1) {
      choice.log_odds_[kernel] = TreeEnsemble(known.columns(), 0);
      break;
    }
    std::vector<float> targets;
    for (const int k : kernels) targets.push_back(k == kernel ? 1.0F : 0.0F);
    TANDEM_ASSIGN_OR_RETURN(Boosted boosted,
                            boost(known, targets, {}, Objective::kLogistic, options));
    choice.log_odds_[kernel] = std::move(boosted.ensemble);
  }
  return choice;
}

std::vector<int> KernelChoice::predict(const Frame& known) const {
  std::vector<int> best;
  std::vector<float> best_odds;
  std::vector<float> odds(known.rows());
  for (const auto& [kernel, ensemble] : log_odds_) {
    ensemble.predict(known.values(), odds);
    if (best.empty()) {
      best.assign(odds.size(), kernel);
      best_odds = odds;
      continue;
    }
    for (size_t row = 0; row < odds.size(); ++row) {
      if (odds[row] <= best_odds[row]) continue;
      best[row] = kernel;
      best_odds[row] = odds[row];
    }
  }
  return best;
}

}  // namespace tandem::predict
