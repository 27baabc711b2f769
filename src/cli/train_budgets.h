// How good predictors are after so much profiling.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "predict/slice_evaluation.h"
#include "profile/training.h"

namespace tandem::cli {

// Seconds of measuring from which predictors learn.
struct TrainingBudget {
  std::string name = {};  // "10s"
  double seconds = 0;     // infinite: all measurements
};
// "10s", "1m", "2h" or "full"; the error names what is none of these.
StatusOr<TrainingBudget> parse_training_budget(const std::string& text);

struct BudgetErrors {
  TrainingBudget budget = {};
  bool reached = true;  // there are measurements of such a time
  size_t rows = 0;      // learned from
  predict::SliceEvaluation evaluation = {};
  std::vector<std::pair<std::string, predict::ErrorSummary>> lanes = {};  // over all families
};

// Errors on the same held-out shapes (all of the data's), whatever the budget, of predictors that
// know only the rows that were there after the budget's time.
StatusOr<std::vector<BudgetErrors>> errors_by_budget(
    const TrainingData& data, const std::vector<TrainingBudget>& budgets,
    const predict::SliceEvaluationOptions& options);

// Errors as all of train's JSON has them.
nlohmann::json errors_json(const predict::ErrorSummary& errors);
nlohmann::json to_json(const BudgetErrors& errors);
void print_budgets(const std::vector<BudgetErrors>& budgets, double seconds_measured);

}  // namespace tandem::cli
