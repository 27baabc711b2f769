#include "cli/train_budgets.h"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "fmt/format.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using predict::ErrorSummary;
using predict::SliceErrors;

// Nothing could be predicted where nothing was learned.
std::string percent(const ErrorSummary& errors) {
  return errors.count == 0 ? "-" : fmt::format("{:.1f}", 100 * errors.mape);
}

}  // namespace

json errors_json(const ErrorSummary& errors) {
  return {{"rows", errors.count},
          {"mape", errors.mape},
          {"p90", errors.p90},
          {"within_10", errors.within_10},
          {"time_weighted", errors.time_weighted}};
}

StatusOr<TrainingBudget> parse_training_budget(const std::string& text) {
  if (text == "full") return TrainingBudget{text, std::numeric_limits<double>::infinity()};
  static const std::map<char, double> units = {{'s', 1}, {'m', 60}, {'h', 3600}};
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  size_t end = 0;
  double count = 0;
  try {
    count = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (unit == units.end() || end + 1 != text.size() || !(count > 0) || !std::isfinite(count)) {
    return invalid_argument(
        fmt::format("'{}' is no time of profiling: give such as 10s, 1m, 1h, or full", text));
  }
  return TrainingBudget{text, count * unit->second};
}

StatusOr<std::vector<BudgetErrors>> errors_by_budget(
    const TrainingData& data, const std::vector<TrainingBudget>& budgets,
    const predict::SliceEvaluationOptions& options) {
  const std::vector<std::string> lanes = predict::lanes_of(data.samples);
  Progress progress("training by budget",
                    static_cast<int>(budgets.size() * lanes.size()) * options.folds);
  std::vector<BudgetErrors> result;
  for (const TrainingBudget& budget : budgets) {
    BudgetErrors errors{.budget = budget};
    errors.reached = std::isinf(budget.seconds) || data.seconds >= budget.seconds;
    predict::SliceEvaluationOptions own = options;
    own.only_ours = true;
    for (const double after : data.after_seconds) {
      own.learn.push_back(after <= budget.seconds);
      errors.rows += own.learn.back();
    }
    StatusOr<predict::SliceEvaluation> evaluation =
        predict::evaluate_slices(data.samples, own, [&progress] { progress.step(); });
    if (!evaluation.ok()) return evaluation.status().with_context("budget " + budget.name);
    errors.evaluation = std::move(*evaluation);
    for (const std::string& lane : lanes) {
      errors.lanes.emplace_back(
          lane, predict::overall_errors(data.samples, errors.evaluation.predictions.ours, lane));
    }
    result.push_back(std::move(errors));
  }
  return result;
}

json to_json(const BudgetErrors& errors) {
  json result = {{"budget", errors.budget.name},
                 {"rows", errors.rows},
                 {"reached", errors.reached},
                 {"lanes", json::array()},
                 {"families", json::array()}};
  if (std::isfinite(errors.budget.seconds)) result["seconds"] = errors.budget.seconds;
  for (const auto& [lane, overall] : errors.lanes) {
    json of_lane = errors_json(overall);
    of_lane["lane"] = lane;
    result["lanes"].push_back(std::move(of_lane));
  }
  for (const SliceErrors& family : errors.evaluation.families) {
    json of_family = errors_json(family.ours);
    of_family["lane"] = family.lane;
    of_family["family"] = to_string(family.family);
    result["families"].push_back(std::move(of_family));
  }
  return result;
}

void print_budgets(const std::vector<BudgetErrors>& budgets, double seconds_measured) {
  if (budgets.empty()) return;
  fmt::print(
      "\nMAPE after so much profiling, of all shapes, each held out; all there is took {:.0f} s\n",
      seconds_measured);
  const auto line = [&](const std::string& lane, const std::string& what, const auto& cell) {
    fmt::print("{:5} {:22}", lane, what);
    for (const BudgetErrors& budget : budgets) fmt::print(" {:>8}", cell(budget));
    fmt::print("\n");
  };
  line("lane", "family",
       [](const BudgetErrors& b) { return b.budget.name + (b.reached ? "" : " (less)"); });
  line("", "rows learned from", [](const BudgetErrors& b) { return fmt::to_string(b.rows); });
  const std::vector<SliceErrors>& families = budgets.front().evaluation.families;
  for (size_t i = 0; i < families.size(); ++i) {
    line(families[i].lane, to_string(families[i].family),
         [i](const BudgetErrors& b) { return percent(b.evaluation.families[i].ours); });
  }
  for (size_t i = 0; i < budgets.front().lanes.size(); ++i) {
    const std::string& lane = budgets.front().lanes[i].first;
    line(lane, "all", [i](const BudgetErrors& b) { return percent(b.lanes[i].second); });
    line(lane, "all, weighted by time", [i](const BudgetErrors& b) {
      const ErrorSummary& errors = b.lanes[i].second;
      return errors.count == 0 ? "-" : fmt::format("{:.1f}", 100 * errors.time_weighted);
    });
  }
}

}  // namespace tandem::cli
