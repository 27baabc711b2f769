#include "predict/phone_predictor.h"

#include <limits>

namespace tandem::predict {

namespace {

// Whose inner loop the features of blocks and rounds describe.
bool is_dense(Family family) {
  return family == Family::kConvolution || family == Family::kGroupedConvolution;
}

// The columns that predictors of the family learn from.
Frame columns_for(Family family, const Frame& frame, bool kernel_features) {
  return frame.with_features([&](const Feature& feature) {
    switch (feature.kind) {
      case FeatureKind::kArgument:
        return true;
      case FeatureKind::kKernel:
        return kernel_features;
      case FeatureKind::kTiling:
        return kernel_features && is_dense(family);
    }
    return false;
  });
}

}  // namespace

Frame choice_columns(const Frame& frame) {
  return frame.with_features([](const Feature& feature) {
    return feature.kind == FeatureKind::kArgument || feature.name == kRecommendation;
  });
}

std::vector<double> PhoneTable::times_us(std::span<const size_t> rows) const {
  std::vector<double> times;
  for (const size_t row : rows) times.push_back(measured[row].us);
  return times;
}

std::vector<std::string> PhoneTable::networks(std::span<const size_t> rows) const {
  std::vector<std::string> networks;
  for (const size_t row : rows) networks.push_back(operators[row].network);
  return networks;
}

StatusOr<Frame> PhoneTable::frame(std::span<const size_t> rows) const {
  std::vector<int> kernels;
  for (const size_t row : rows) kernels.push_back(static_cast<int>(measured[row].kernel));
  return frame(rows, kernels);
}

StatusOr<Frame> PhoneTable::frame(std::span<const size_t> rows,
                                  std::span<const int> kernels) const {
  Frame frame = phone_frame();
  for (size_t i = 0; i < rows.size(); ++i) {
    // What is fused follows from the network, whichever kernel fuses it.
    const PhoneFacts facts(operators[rows[i]], device, schema.bytes_per_element,
                           static_cast<KernelKind>(kernels[i]), measured[rows[i]].fused);
    TANDEM_RETURN_IF_ERROR(
        frame.add(phone_row(facts)).with_context("operator " + operators[rows[i]].shape));
  }
  return frame;
}

std::vector<size_t> PhoneTable::rows_of(Family family, std::span<const size_t> among) const {
  std::vector<size_t> rows;
  for (const size_t row : among) {
    if (operators[row].family == family) rows.push_back(row);
  }
  return rows;
}

StatusOr<PhonePredictor> PhonePredictor::fit(const PhoneTable& table, std::span<const size_t> rows,
                                             const Options& options) {
  PhonePredictor predictor;
  predictor.options_ = options;
  for (int i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    const std::vector<size_t> own = table.rows_of(family, rows);
    if (own.empty()) continue;
    TANDEM_ASSIGN_OR_RETURN(const Frame frame, table.frame(own));
    RegressorOptions regression{.boosting = options.boosting};
    regression.class_column = options.kernel_features ? "kernel" : "operator";
    if (options.kernel_features && is_dense(family)) regression.cost_terms.push_back("round_work");
    TANDEM_ASSIGN_OR_RETURN(Regressor regressor,
                            Regressor::fit(columns_for(family, frame, options.kernel_features),
                                           table.times_us(own), table.networks(own), regression));
    predictor.regressors_.emplace(family, std::move(regressor));
    if (!options.kernel_features) continue;
    std::vector<int> kernels;
    for (const size_t row : own) kernels.push_back(static_cast<int>(table.measured[row].kernel));
    TANDEM_ASSIGN_OR_RETURN(KernelChoice choice, KernelChoice::fit(choice_columns(frame), kernels));
    predictor.choices_.emplace(family, std::move(choice));
  }
  return predictor;
}

StatusOr<std::vector<int>> PhonePredictor::expect_kernels(const PhoneTable& table,
                                                          std::span<const size_t> rows) const {
  std::vector<int> kernels(table.operators.size(), static_cast<int>(KernelKind::kOther));
  for (const auto& [family, choice] : choices_) {
    const std::vector<size_t> own = table.rows_of(family, rows);
    TANDEM_ASSIGN_OR_RETURN(const Frame frame, table.frame(own));
    const std::vector<int> expected = choice.predict(choice_columns(frame));
    for (size_t i = 0; i < own.size(); ++i) kernels[own[i]] = expected[i];
  }
  std::vector<int> result;
  for (const size_t row : rows) result.push_back(kernels[row]);
  return result;
}

StatusOr<std::vector<double>> PhonePredictor::predict(const PhoneTable& table,
                                                      std::span<const size_t> rows,
                                                      Knowledge knowledge) const {
  std::vector<double> times(table.operators.size(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& [family, regressor] : regressors_) {
    const std::vector<size_t> own = table.rows_of(family, rows);
    std::vector<int> kernels;
    if (knowledge == Knowledge::kPredictedKernel && options_.kernel_features) {
      TANDEM_ASSIGN_OR_RETURN(kernels, expect_kernels(table, own));
    } else {
      for (const size_t row : own) kernels.push_back(static_cast<int>(table.measured[row].kernel));
    }
    TANDEM_ASSIGN_OR_RETURN(const Frame frame, table.frame(own, kernels));
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<double> predicted,
        regressor.predict(columns_for(family, frame, options_.kernel_features)));
    for (size_t i = 0; i < own.size(); ++i) times[own[i]] = predicted[i];
  }
  std::vector<double> result;
  for (const size_t row : rows) result.push_back(times[row]);
  return result;
}

}  // namespace tandem::predict
