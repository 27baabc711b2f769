#include "predict/phone_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "predict/phone_transfer.h"
#include "predict/splits.h"

namespace tandem::predict {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Predictions of every operator by predictors that have not seen its network.
struct HeldOut {
  explicit HeldOut(size_t operators)
      : ours(operators, kNone),
        true_kernel(operators, kNone),
        without_kernel(operators, kNone),
        flops_only(operators, kNone),
        kernels(operators) {}

  std::vector<double> ours;
  std::vector<double> true_kernel;
  std::vector<double> without_kernel;
  std::vector<double> flops_only;
  std::vector<int> kernels;
};

void put(std::span<const size_t> rows, std::span<const double> values, std::vector<double>* all) {
  for (size_t i = 0; i < rows.size(); ++i) (*all)[rows[i]] = values[i];
}

// A line through the FLOPs of each family.
StatusOr<std::vector<double>> predict_by_flops(const PhoneTable& table,
                                               std::span<const size_t> training,
                                               std::span<const size_t> test) {
  std::vector<double> times(table.operators.size(), kNone);
  for (int i = 0; i < kFamilies; ++i) {
    const std::vector<size_t> known = table.rows_of(static_cast<Family>(i), training);
    const std::vector<size_t> asked = table.rows_of(static_cast<Family>(i), test);
    if (known.empty()) continue;
    TANDEM_ASSIGN_OR_RETURN(const Frame frame, table.frame(known));
    TANDEM_ASSIGN_OR_RETURN(const Frame asked_frame, table.frame(asked));
    TANDEM_ASSIGN_OR_RETURN(const Regressor line,
                            Regressor::fit(frame, table.times_us(known), table.networks(known),
                                           {.cost_terms = {"flops"}, .trees = false}));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> predicted, line.predict(asked_frame));
    put(asked, predicted, &times);
  }
  std::vector<double> result;
  for (const size_t row : test) result.push_back(times[row]);
  return result;
}

ErrorSummary errors_of(const std::vector<double>& predicted, const PhoneTable& table,
                       std::span<const size_t> rows) {
  std::vector<double> known;
  std::vector<double> measured;
  for (const size_t row : rows) {
    if (std::isnan(predicted[row])) continue;
    known.push_back(predicted[row]);
    measured.push_back(table.measured[row].us);
  }
  return summarize_errors(known, measured);
}

ErrorSummary repeats_of(const PhoneTable& table, std::span<const size_t> rows) {
  std::vector<std::string> keys;
  for (const size_t row : rows) {
    keys.push_back(table.operators[row].shape + " " + table.measured[row].kernel_name);
  }
  return repeat_errors(keys, table.times_us(rows));
}

// The part of a convolution's family that it belongs to.
std::string part_of_convolutions(const PhoneOperator& op) {
  if (op.input_size == 1) return "convolution of 1 pixel";
  if (op.kernel_size == 1) return "convolution 1x1";
  return op.kernel_size == 3 ? "convolution 3x3" : "convolution other";
}

class Evaluation {
 public:
  Evaluation(const PhoneSchema& schema, const PhoneData& data,
             const PhoneEvaluationOptions& options)
      : schema_(schema), data_(data), options_(options) {
    std::vector<std::string> networks;
    for (const PhoneOperator& op : data.operators) networks.push_back(op.network);
    folds_ = group_folds(networks, options.folds, options.seed);
    find_new_shapes();
  }

  StatusOr<std::vector<PhoneReport>> run(const EndToEnd* end_to_end,
                                         const std::function<void()>& on_step) {
    for (size_t device = 0; device < schema_.devices.size(); ++device) {
      held_out_.emplace_back(data_.operators.size());
      by_fold_.emplace_back(options_.folds);
      for (int fold = 0; fold < options_.folds; ++fold) {
        TANDEM_RETURN_IF_ERROR(fit_fold(device, fold).with_context(schema_.devices[device].name));
        on_step();
      }
    }
    std::vector<PhoneReport> reports;
    for (size_t device = 0; device < schema_.devices.size(); ++device) {
      TANDEM_ASSIGN_OR_RETURN(PhoneReport report, report_of(device, end_to_end));
      reports.push_back(std::move(report));
    }
    return reports;
  }

 private:
  PhoneTable table(size_t device) const {
    return {schema_, schema_.devices[device], data_.operators, data_.measured[device]};
  }

  void find_new_shapes() {
    is_new_.resize(data_.operators.size());
    for (int fold = 0; fold < options_.folds; ++fold) {
      std::set<std::string> seen;
      for (const size_t row : rows_outside_fold(folds_, fold)) {
        seen.insert(data_.operators[row].shape);
      }
      for (const size_t row : rows_of_fold(folds_, fold)) {
        is_new_[row] = !seen.contains(data_.operators[row].shape);
      }
    }
  }

  Status fit_fold(size_t device, int fold) {
    const PhoneTable phone = table(device);
    const std::vector<size_t> training = rows_outside_fold(folds_, fold);
    const std::vector<size_t> test = rows_of_fold(folds_, fold);
    if (test.empty()) return {};
    HeldOut& held = held_out_[device];
    TANDEM_ASSIGN_OR_RETURN(const PhonePredictor ours,
                            PhonePredictor::fit(phone, training, {.boosting = options_.boosting}));
    TANDEM_ASSIGN_OR_RETURN(
        const PhonePredictor plain,
        PhonePredictor::fit(phone, training,
                            {.boosting = options_.boosting, .kernel_features = false}));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<int> kernels, ours.expect_kernels(phone, test));
    for (size_t i = 0; i < test.size(); ++i) held.kernels[test[i]] = kernels[i];

    std::vector<size_t> everything(data_.operators.size());
    std::iota(everything.begin(), everything.end(), 0);
    TANDEM_ASSIGN_OR_RETURN(by_fold_[device][fold],
                            ours.predict(phone, everything, Knowledge::kPredictedKernel));
    for (const size_t row : test) held.ours[row] = by_fold_[device][fold][row];
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> with_truth,
                            ours.predict(phone, test, Knowledge::kTrueKernel));
    put(test, with_truth, &held.true_kernel);
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> without,
                            plain.predict(phone, test, Knowledge::kTrueKernel));
    put(test, without, &held.without_kernel);
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> flops,
                            predict_by_flops(phone, training, test));
    put(test, flops, &held.flops_only);
    return {};
  }

  FamilyErrors errors(size_t device, const std::string& family, const std::string& part_of,
                      std::span<const size_t> rows) const {
    const PhoneTable phone = table(device);
    const HeldOut& held = held_out_[device];
    std::vector<size_t> fresh;
    for (const size_t row : rows) {
      if (is_new_[row]) fresh.push_back(row);
    }
    return {.family = family,
            .part_of = part_of,
            .ours = errors_of(held.ours, phone, rows),
            .true_kernel = errors_of(held.true_kernel, phone, rows),
            .without_kernel = errors_of(held.without_kernel, phone, rows),
            .flops_only = errors_of(held.flops_only, phone, rows),
            .new_shapes = errors_of(held.ours, phone, fresh),
            .repeats = repeats_of(phone, rows)};
  }

  std::vector<FamilyErrors> all_errors(size_t device) const {
    std::map<Family, std::vector<size_t>> families;
    std::map<std::string, std::vector<size_t>> parts;
    for (size_t row = 0; row < data_.operators.size(); ++row) {
      const PhoneOperator& op = data_.operators[row];
      families[op.family].push_back(row);
      if (op.family == Family::kConvolution) parts[part_of_convolutions(op)].push_back(row);
    }
    std::vector<FamilyErrors> result;
    for (const auto& [family, rows] : families) {
      result.push_back(errors(device, to_string(family), "", rows));
      if (family != Family::kConvolution) continue;
      for (const auto& [part, part_rows] : parts) {
        result.push_back(errors(device, part, to_string(family), part_rows));
      }
    }
    return result;
  }

  StatusOr<PhoneReport> report_of(size_t device, const EndToEnd* end_to_end) const {
    const PhoneTable phone = table(device);
    PhoneReport report;
    report.phone = schema_.devices[device].name;
    report.families = all_errors(device);
    size_t expected = 0;
    for (size_t row = 0; row < data_.operators.size(); ++row) {
      if (held_out_[device].kernels[row] == static_cast<int>(phone.measured[row].kernel)) {
        ++expected;
      }
    }
    report.kernel_accuracy =
        static_cast<double>(expected) / static_cast<double>(data_.operators.size());
    if (end_to_end != nullptr && !(*end_to_end)[device].empty()) {
      report.end_to_end = whole_networks(phone, held_out_[device].ours, (*end_to_end)[device]);
    }
    if (schema_.devices.size() < 2) return report;
    for (const int known : options_.transfer) {
      if (known <= 0) continue;
      TANDEM_ASSIGN_OR_RETURN(report.transfer[known],
                              evaluate_transfer(phone, device, folds_, by_fold_, known, options_));
    }
    return report;
  }

  // Of one network: the terms of the line, and what was measured.
  struct Whole {
    int fold = 0;
    double count = 0;
    double predicted_sum = 0;
    double measured_sum = 0;
    double measured = 0;
  };

  EndToEndErrors whole_networks(const PhoneTable& phone, const std::vector<double>& predicted,
                                const std::map<std::string, double>& measured) const {
    std::map<std::string, Whole> wholes;
    for (size_t row = 0; row < data_.operators.size(); ++row) {
      const auto found = measured.find(data_.operators[row].network);
      if (found == measured.end()) continue;
      Whole& whole = wholes[found->first];
      whole.fold = folds_[row];
      whole.measured = found->second;
      whole.count += 1;
      whole.predicted_sum += predicted[row];
      whole.measured_sum += phone.measured[row].us;
    }
    std::vector<double> truth;
    std::vector<double> ours;
    std::vector<double> sums;
    std::vector<double> from_measured;
    for (int fold = 0; fold < options_.folds; ++fold) {
      std::vector<double> terms;
      std::vector<double> times;
      for (const auto& [name, whole] : wholes) {
        if (whole.fold == fold) continue;
        terms.insert(terms.end(), {1, whole.measured_sum, whole.count});
        times.push_back(whole.measured);
      }
      const CostLine line = CostLine::fit(terms, 3, times);
      for (const auto& [name, whole] : wholes) {
        if (whole.fold != fold || std::isnan(whole.predicted_sum)) continue;
        truth.push_back(whole.measured);
        ours.push_back(line.predict(std::vector<double>{1, whole.predicted_sum, whole.count}));
        sums.push_back(whole.predicted_sum);
        from_measured.push_back(
            line.predict(std::vector<double>{1, whole.measured_sum, whole.count}));
      }
    }
    return {summarize_errors(ours, truth), summarize_errors(sums, truth),
            summarize_errors(from_measured, truth)};
  }

  const PhoneSchema& schema_;
  const PhoneData& data_;
  const PhoneEvaluationOptions& options_;
  std::vector<int> folds_;
  std::vector<bool> is_new_;
  std::vector<HeldOut> held_out_;  // by device
  // By device, fold (whose networks were not seen) and operator.
  std::vector<std::vector<std::vector<double>>> by_fold_;
};

}  // namespace

StatusOr<std::vector<PhoneReport>> evaluate_phones(const PhoneSchema& schema, const PhoneData& data,
                                                   const EndToEnd* end_to_end,
                                                   const PhoneEvaluationOptions& options,
                                                   const std::function<void()>& on_step) {
  std::set<std::string> networks;
  for (const PhoneOperator& op : data.operators) networks.insert(op.network);
  if (options.folds < 2 || networks.size() < static_cast<size_t>(options.folds)) {
    return invalid_argument(
        fmt::format("{} folds of {} networks: give --folds from 2 to the number of networks",
                    options.folds, networks.size()));
  }
  return Evaluation(schema, data, options).run(end_to_end, on_step);
}

}  // namespace tandem::predict
