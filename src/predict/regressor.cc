#include "predict/regressor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "predict/splits.h"

namespace tandem::predict {
namespace {

// Rows of a class from which its own cost line is fitted.
constexpr size_t kRowsForALine = 8;
// Rows and groups from which some are held out to stop the training by.
constexpr size_t kRowsForValidation = 60;
constexpr size_t kGroupsForValidation = 5;
// One group in so many is held out.
constexpr int kValidationFolds = 6;

// 1 and the values of `columns`.
std::vector<double> terms_of(std::span<const float> row, std::span<const int> columns) {
  std::vector<double> terms;
  terms.reserve(columns.size() + 1);
  terms.push_back(1);
  for (const int column : columns) terms.push_back(row[column]);
  return terms;
}

CostLine fit_line(const Frame& frame, std::span<const int> columns, std::span<const size_t> rows,
                  std::span<const double> times_us) {
  std::vector<double> terms;
  std::vector<double> times;
  for (const size_t row : rows) {
    const std::vector<double> of_row = terms_of(frame.row(row), columns);
    terms.insert(terms.end(), of_row.begin(), of_row.end());
    times.push_back(times_us[row]);
  }
  return CostLine::fit(terms, columns.size() + 1, times);
}

Status check_times(std::span<const double> times_us) {
  for (const double us : times_us) {
    if (!(us > 0) || !std::isfinite(us)) {
      return invalid_argument(fmt::format("a time of {} us: it must be positive", us));
    }
  }
  return {};
}

}  // namespace

Status Regressor::find_columns() {
  const auto find = [&](const std::string& name) -> StatusOr<int> {
    const auto column = std::find(names_.begin(), names_.end(), name);
    if (column == names_.end()) return invalid_argument("there is no feature " + name);
    return static_cast<int>(column - names_.begin());
  };
  columns_ = {};
  for (const std::string& name : cost_terms_) {
    TANDEM_ASSIGN_OR_RETURN(columns_.terms.emplace_back(), find(name));
  }
  if (!class_column_.empty()) {
    TANDEM_ASSIGN_OR_RETURN(columns_.class_column, find(class_column_));
  }
  return {};
}

void Regressor::fit_lines(const Frame& frame, std::span<const double> times_us) {
  std::vector<size_t> all;
  std::map<int, std::vector<size_t>> classes;
  for (size_t row = 0; row < frame.rows(); ++row) {
    all.push_back(row);
    if (columns_.class_column < 0) continue;
    classes[static_cast<int>(frame.at(row, columns_.class_column))].push_back(row);
  }
  all_classes_ = fit_line(frame, columns_.terms, all, times_us);
  for (const auto& [name, rows] : classes) {
    if (rows.size() < kRowsForALine) continue;
    lines_[name] = fit_line(frame, columns_.terms, rows, times_us);
  }
}

double Regressor::line_us(std::span<const float> row) const {
  const CostLine* line = &all_classes_;
  if (columns_.class_column >= 0) {
    const auto found = lines_.find(static_cast<int>(row[columns_.class_column]));
    if (found != lines_.end()) line = &found->second;
  }
  return line->predict(terms_of(row, columns_.terms));
}

Status Regressor::fit_trees(const Frame& frame, std::span<const double> times_us,
                            std::span<const std::string> groups, const RegressorOptions& options) {
  std::vector<float> targets;
  for (size_t row = 0; row < frame.rows(); ++row) {
    targets.push_back(static_cast<float>(std::log(times_us[row] / line_us(frame.row(row)))));
  }
  BoostingOptions final_options = options.boosting;
  if (frame.rows() >= kRowsForValidation && statistics_.groups >= kGroupsForValidation) {
    const std::vector<int> folds = group_folds(groups, kValidationFolds, options.boosting.seed);
    const std::vector<size_t> validation = rows_of_fold(folds, 0);
    TANDEM_ASSIGN_OR_RETURN(const Boosted trial,
                            boost(frame, targets, validation, options.objective, options.boosting));
    final_options.trees = trial.rounds;
    statistics_.validation_error = trial.validation_error;
  }
  // With the count of trees known, nothing needs to be held out.
  TANDEM_ASSIGN_OR_RETURN(Boosted boosted,
                          boost(frame, targets, {}, options.objective, final_options));
  trees_ = std::move(boosted.ensemble);
  statistics_.trees = boosted.rounds;
  return {};
}

StatusOr<Regressor> Regressor::fit(const Frame& frame, std::span<const double> times_us,
                                   std::span<const std::string> groups,
                                   const RegressorOptions& options) {
  if (frame.rows() == 0 || frame.rows() != times_us.size() || frame.rows() != groups.size()) {
    return invalid_argument(fmt::format("{} rows, {} times and {} groups to learn from",
                                        frame.rows(), times_us.size(), groups.size()));
  }
  TANDEM_RETURN_IF_ERROR(check_times(times_us));
  Regressor regressor;
  regressor.names_ = frame.names();
  regressor.cost_terms_ = options.cost_terms;
  regressor.class_column_ = options.class_column;
  TANDEM_RETURN_IF_ERROR(regressor.find_columns());
  const auto [fastest, slowest] = std::minmax_element(times_us.begin(), times_us.end());
  regressor.statistics_ = {.rows = frame.rows(),
                           .groups = std::set<std::string>(groups.begin(), groups.end()).size(),
                           .fastest_us = *fastest,
                           .slowest_us = *slowest};
  regressor.fit_lines(frame, times_us);
  regressor.trees_ = TreeEnsemble(frame.columns(), 0);
  if (options.trees) {
    TANDEM_RETURN_IF_ERROR(regressor.fit_trees(frame, times_us, groups, options));
  }
  return regressor;
}

StatusOr<std::vector<double>> Regressor::predict(const Frame& frame) const {
  if (!frame.has_names(names_)) {
    return invalid_argument(fmt::format("features {} where the predictor was trained with {}",
                                        fmt::join(frame.names(), ","), fmt::join(names_, ",")));
  }
  std::vector<float> corrections(frame.rows());
  trees_.predict(frame.values(), corrections);
  std::vector<double> times;
  times.reserve(frame.rows());
  for (size_t row = 0; row < frame.rows(); ++row) {
    times.push_back(line_us(frame.row(row)) * std::exp(corrections[row]));
  }
  return times;
}

double Regressor::predict(std::span<const float> row) const {
  float correction = 0;
  trees_.predict(row, std::span(&correction, 1));
  return line_us(row) * std::exp(correction);
}

}  // namespace tandem::predict
