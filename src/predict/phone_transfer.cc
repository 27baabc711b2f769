#include "predict/phone_transfer.h"

#include <cmath>

#include "predict/splits.h"

namespace tandem::predict {
namespace {

// Fewer operators say nothing that trees could learn.
constexpr int kOperatorsForTrees = 200;

std::vector<int> others_than(size_t device, size_t devices) {
  std::vector<int> others;
  for (size_t i = 0; i < devices; ++i) {
    if (i != device) others.push_back(static_cast<int>(i));
  }
  return others;
}

std::string time_name(int device) { return "time_on_device_" + std::to_string(device); }

// All features, and what the other phones are expected to take. kernels: one a row.
StatusOr<Frame> transfer_frame(const PhoneTable& phone, std::span<const size_t> rows,
                               std::span<const int> kernels, std::span<const int> others,
                               const std::vector<std::vector<std::vector<double>>>& predictions,
                               int fold) {
  TANDEM_ASSIGN_OR_RETURN(const Frame own, phone.frame(rows, kernels));
  std::vector<Feature> features = own.features();
  for (const int other : others) {
    features.push_back(
        {time_name(other), "us", "what another phone takes", FeatureKind::kArgument});
  }
  Frame frame(std::move(features));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> values = own.row(i);
    std::vector<double> row(values.begin(), values.end());
    for (const int other : others) row.push_back(predictions[other][fold][rows[i]]);
    TANDEM_RETURN_IF_ERROR(frame.add(row));
  }
  return frame;
}

// What the kernels of `asked` are, going by those of `known`.
StatusOr<std::vector<int>> expect_kernels(const PhoneTable& phone, std::span<const size_t> known,
                                          std::span<const int> kernels,
                                          std::span<const size_t> asked) {
  TANDEM_ASSIGN_OR_RETURN(const Frame known_frame, phone.frame(known));
  TANDEM_ASSIGN_OR_RETURN(const Frame asked_frame, phone.frame(asked));
  TANDEM_ASSIGN_OR_RETURN(const KernelChoice choice,
                          KernelChoice::fit(choice_columns(known_frame), kernels));
  return choice.predict(choice_columns(asked_frame));
}

struct Collected {
  std::vector<double> predicted;
  std::vector<double> measured;

  void add(double value, double truth) {
    predicted.push_back(value);
    measured.push_back(truth);
  }
  ErrorSummary summary() const { return summarize_errors(predicted, measured); }
};

struct Split {
  std::vector<size_t> known;
  std::vector<size_t> test;
};

// Of what is known, with the kernels that ran, and of what is asked, with those expected.
StatusOr<std::pair<Frame, Frame>> frames_of(
    const PhoneTable& phone, const Split& split, std::span<const int> others,
    const std::vector<std::vector<std::vector<double>>>& predictions, int fold) {
  std::vector<int> ran;
  for (const size_t row : split.known) ran.push_back(static_cast<int>(phone.measured[row].kernel));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int> expected,
                          expect_kernels(phone, split.known, ran, split.test));
  TANDEM_ASSIGN_OR_RETURN(Frame known,
                          transfer_frame(phone, split.known, ran, others, predictions, fold));
  TANDEM_ASSIGN_OR_RETURN(Frame test,
                          transfer_frame(phone, split.test, expected, others, predictions, fold));
  return std::pair(std::move(known), std::move(test));
}

// Rows that every other phone's predictors know the family of.
std::vector<size_t> predictable(std::span<const size_t> rows, std::span<const int> others,
                                const std::vector<std::vector<std::vector<double>>>& predictions,
                                int fold) {
  std::vector<size_t> kept;
  for (const size_t row : rows) {
    bool good = true;
    for (const int other : others) good = good && !std::isnan(predictions[other][fold][row]);
    if (good) kept.push_back(row);
  }
  return kept;
}

Status predict_split(const PhoneTable& phone, const Split& split, const Frame& known,
                     const Frame& test, const RegressorOptions& options, Collected* all,
                     Collected* convolutions) {
  TANDEM_ASSIGN_OR_RETURN(
      const Regressor regressor,
      Regressor::fit(known, phone.times_us(split.known), phone.networks(split.known), options));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> predicted, regressor.predict(test));
  for (size_t i = 0; i < split.test.size(); ++i) {
    const size_t row = split.test[i];
    all->add(predicted[i], phone.measured[row].us);
    if (phone.operators[row].family != Family::kConvolution) continue;
    convolutions->add(predicted[i], phone.measured[row].us);
  }
  return {};
}

}  // namespace

StatusOr<TransferErrors> evaluate_transfer(
    const PhoneTable& phone, size_t device, std::span<const int> folds,
    const std::vector<std::vector<std::vector<double>>>& predictions, int known,
    const PhoneEvaluationOptions& options) {
  const std::vector<int> others = others_than(device, predictions.size());
  RegressorOptions alone{.class_column = "operator",
                         .boosting = options.boosting,
                         .trees = known >= kOperatorsForTrees};
  RegressorOptions helped = alone;
  for (const int other : others) helped.cost_terms.push_back(time_name(other));
  Collected all;
  Collected convolutions;
  Collected alone_all;
  Collected alone_convolutions;
  for (int fold = 0; fold < options.folds; ++fold) {
    const std::vector<size_t> training =
        predictable(rows_outside_fold(folds, fold), others, predictions, fold);
    const std::vector<size_t> test =
        predictable(rows_of_fold(folds, fold), others, predictions, fold);
    if (training.empty() || test.empty()) continue;
    for (int draw = 0; draw < options.transfer_draws; ++draw) {
      const Split split{draw_rows(training, known, options.seed + draw), test};
      TANDEM_ASSIGN_OR_RETURN(const auto frames,
                              frames_of(phone, split, others, predictions, fold));
      const auto& [known_frame, test_frame] = frames;
      TANDEM_RETURN_IF_ERROR(
          predict_split(phone, split, known_frame, test_frame, helped, &all, &convolutions));
      const auto without_others = [](const Feature& feature) {
        return !feature.name.starts_with("time_on_device_");
      };
      TANDEM_RETURN_IF_ERROR(predict_split(phone, split, known_frame.with_features(without_others),
                                           test_frame.with_features(without_others), alone,
                                           &alone_all, &alone_convolutions));
    }
  }
  return TransferErrors{all.summary(), convolutions.summary(), alone_all.summary(),
                        alone_convolutions.summary()};
}

}  // namespace tandem::predict
