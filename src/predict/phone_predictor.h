// Predictors of one phone: which kernel runs, then how long it takes, for each operator family.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "predict/kernel_choice.h"
#include "predict/phone_features.h"
#include "predict/regressor.h"

namespace tandem::predict {

// The operators of one phone with their measurements.
struct PhoneTable {
  const PhoneSchema& schema;
  const PhoneDevice& device;
  const std::vector<PhoneOperator>& operators;
  const std::vector<PhoneMeasurement>& measured;

  std::vector<double> times_us(std::span<const size_t> rows) const;
  std::vector<std::string> networks(std::span<const size_t> rows) const;
  // With the kernels that ran, or with others, one a row.
  StatusOr<Frame> frame(std::span<const size_t> rows) const;
  StatusOr<Frame> frame(std::span<const size_t> rows, std::span<const int> kernels) const;
  std::vector<size_t> rows_of(Family family, std::span<const size_t> among) const;
};

// What a predictor is told about operators.
enum class Knowledge {
  kPredictedKernel,  // arguments, and the kernel that it expects itself
  kTrueKernel,       // arguments, and the kernel that ran: known only afterwards
};

class PhonePredictor {
 public:
  struct Options {
    BoostingOptions boosting;
    bool kernel_features = true;
  };
  // Fits the families that `rows` have.
  static StatusOr<PhonePredictor> fit(const PhoneTable& table, std::span<const size_t> rows,
                                      const Options& options);

  // Microseconds, one for each of `rows`; NaN where no operator of the family was learned from.
  StatusOr<std::vector<double>> predict(const PhoneTable& table, std::span<const size_t> rows,
                                        Knowledge knowledge) const;
  // The kernels that it expects, as numbers of KernelKind.
  StatusOr<std::vector<int>> expect_kernels(const PhoneTable& table,
                                            std::span<const size_t> rows) const;

  const std::map<Family, Regressor>& regressors() const { return regressors_; }

 private:
  Options options_;
  std::map<Family, Regressor> regressors_;
  std::map<Family, KernelChoice> choices_;
};

// The columns that the choice of a kernel is learned from: all but those that depend on it.
Frame choice_columns(const Frame& frame);

}  // namespace tandem::predict
