// A predictor of time: one lane or device, one operator family.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/boosting.h"
#include "predict/cost_line.h"
#include "predict/frame.h"
#include "predict/tree_ensemble.h"

namespace tandem::predict {

// What a model was made for and with. Times of another platform, or of kernels that an engine no
// longer has, are wrong without looking so.
struct Fingerprints {
  std::string platform;
  std::string engine;
};

struct TrainingStatistics {
  size_t rows = 0;
  size_t groups = 0;
  int trees = 0;
  double validation_error = 0;  // of log(predicted / measured), root mean square or, of robust
                                // errors, mean absolute; 0: not validated
  double fastest_us = 0;        // of the measurements
  double slowest_us = 0;
};

struct RegressorOptions {
  // Columns whose weighted sum, with a constant, is the time that the trees correct.
  std::vector<std::string> cost_terms = {"flops", "bytes"};
  // Rows that differ in this column get a sum of their own where there are enough of them. Empty:
  // one sum for all.
  std::string class_column = {};
  Objective objective = Objective::kSquaredError;  // of the trees, in logarithms of time
  BoostingOptions boosting = {};
  bool trees = true;  // false: the sums alone
};

// log(time) = log(cost line of the row's class) + trees(features). The line extrapolates to sizes
// that trees cannot tell apart; the trees know tiles, caches and what else is not linear.
class Regressor {
 public:
  static constexpr int kSchemaVersion = 1;
  static constexpr int kPackedVersion = 2;

  // times_us: positive, one a row; groups: of equal length, for validation (see group_folds).
  static StatusOr<Regressor> fit(const Frame& frame, std::span<const double> times_us,
                                 std::span<const std::string> groups,
                                 const RegressorOptions& options);

  // Microseconds, one a row. The frame must have the columns of the one fitted, in their order;
  // others are refused.
  StatusOr<std::vector<double>> predict(const Frame& frame) const;
  // The same of one row of such a frame.
  double predict(std::span<const float> row) const;

  const TrainingStatistics& statistics() const { return statistics_; }
  const std::vector<std::string>& feature_names() const { return names_; }

  // JSON. `made_for` is kept with it.
  std::string to_text(const Fingerprints& made_for) const;
  // A line of JSON, and the trees as bytes: the same to the bit, and read many times as fast.
  std::string to_packed(const Fingerprints& made_for) const;

  struct Expectation {
    std::vector<std::string> feature_names;
    Fingerprints fingerprints;
    bool allow_other_fingerprints = false;  // warn instead of refusing
  };
  // Of either. Refuses another schema version and other features always, other fingerprints unless
  // allowed; says which, and to train again.
  static StatusOr<Regressor> parse(std::string_view text, const Expectation& expected);

 private:
  struct Columns {
    std::vector<int> terms;
    int class_column = -1;
  };
  // All but the trees.
  nlohmann::json describe(const Fingerprints& made_for) const;
  // Throws what the JSON library throws.
  Status read_description(const nlohmann::json& document, const Expectation& expected);
  // By names_.
  Status find_columns();
  void fit_lines(const Frame& frame, std::span<const double> times_us);
  Status fit_trees(const Frame& frame, std::span<const double> times_us,
                   std::span<const std::string> groups, const RegressorOptions& options);
  double line_us(std::span<const float> row) const;

  std::vector<std::string> names_;
  std::vector<std::string> cost_terms_;
  std::string class_column_;
  Columns columns_;
  CostLine all_classes_;
  std::map<int, CostLine> lines_;
  TreeEnsemble trees_;
  TrainingStatistics statistics_;
};

}  // namespace tandem::predict
