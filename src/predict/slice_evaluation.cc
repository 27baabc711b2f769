#include "predict/slice_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "predict/splits.h"

namespace tandem::predict {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kTarget = 0.08;
constexpr double kTargetOverNoise = 1.5;
// From so many on, twins say more than quartiles.
constexpr size_t kEnoughTwins = 20;

// Rows of one lane.
struct LaneRows {
  std::string lane;
  std::vector<size_t> rows;
};

class Evaluation {
 public:
  Evaluation(std::span<const SliceSample> samples, const SliceEvaluationOptions& options)
      : samples_(samples), options_(options) {
    result_.groups = shape_groups(samples);
    folds_ = group_folds(result_.groups, options.folds, options.seed);
    for (auto* values : {&result_.predictions.ours, &result_.predictions.without_kernel,
                         &result_.predictions.flops_only}) {
      values->assign(samples.size(), kUnknown);
    }
    constant_slowdowns_.assign(samples.size(), kUnknown);
    slowdowns_.assign(samples.size(), kUnknown);
  }

  StatusOr<SliceEvaluation> run(const std::function<void()>& on_step) {
    for (const std::string& lane : lanes_of(samples_)) {
      for (int fold = 0; fold < options_.folds; ++fold) {
        TANDEM_RETURN_IF_ERROR(predict_fold(lane, fold).with_context("lane " + lane));
        on_step();
      }
      summarize(lane);
      summarize_slowdowns(lane);
    }
    return std::move(result_);
  }

 private:
  std::vector<size_t> rows(const std::string& lane, int fold, bool inside) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < samples_.size(); ++i) {
      if (samples_[i].slice.lane.name != lane || (folds_[i] == fold) != inside) continue;
      if (inside || options_.learn.empty() || options_.learn[i]) found.push_back(i);
    }
    return found;
  }

  StatusOr<SlicePredictor> fit(std::span<const size_t> rows, SliceKnowledge knowledge) const {
    std::vector<const SliceSample*> samples;
    std::vector<std::string> groups;
    for (const size_t row : rows) {
      samples.push_back(&samples_[row]);
      groups.push_back(result_.groups[row]);
    }
    return SlicePredictor::fit(samples, groups,
                               {.boosting = options_.boosting, .knowledge = knowledge});
  }

  Status predict_fold(const std::string& lane, int fold) {
    const std::vector<size_t> training = rows(lane, fold, false);
    const std::vector<size_t> test = rows(lane, fold, true);
    if (training.empty() || test.empty()) return {};
    std::vector<const SliceCase*> asked;
    for (const size_t row : test) asked.push_back(&samples_[row].slice);
    for (const auto& [knowledge, values] :
         {std::pair{SliceKnowledge::kKernels, &result_.predictions.ours},
          std::pair{SliceKnowledge::kArguments, &result_.predictions.without_kernel},
          std::pair{SliceKnowledge::kFlops, &result_.predictions.flops_only}}) {
      if (options_.only_ours && knowledge != SliceKnowledge::kKernels) continue;
      TANDEM_ASSIGN_OR_RETURN(const SlicePredictor predictor, fit(training, knowledge));
      TANDEM_ASSIGN_OR_RETURN(const std::vector<double> predicted, predictor.predict(asked));
      for (size_t i = 0; i < test.size(); ++i) (*values)[test[i]] = predicted[i];
      if (knowledge != SliceKnowledge::kKernels || !predictor.knows_slowdowns()) continue;
      TANDEM_ASSIGN_OR_RETURN(const std::vector<double> slowdowns, predictor.slowdowns(asked));
      for (size_t i = 0; i < test.size(); ++i) slowdowns_[test[i]] = slowdowns[i];
    }
    note_constants(training, test);
    return {};
  }

  // What a model would say that knows the load alone.
  void note_constants(std::span<const size_t> training, std::span<const size_t> test) {
    std::map<OtherLoad, std::pair<double, int>> sums;
    for (const size_t row : training) {
      const SliceSample& sample = samples_[row];
      if (sample.alone_us <= 0) continue;
      auto& [sum, count] = sums[sample.slice.load];
      sum += sample.us / sample.alone_us;
      ++count;
    }
    for (const size_t row : test) {
      const auto found = sums.find(samples_[row].slice.load);
      if (found == sums.end()) continue;
      constant_slowdowns_[row] = found->second.first / found->second.second;
    }
  }

  ErrorSummary errors(const std::vector<double>& predictions, std::span<const size_t> rows) const {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (const size_t row : rows) {
      if (std::isnan(predictions[row])) continue;
      predicted.push_back(predictions[row]);
      measured.push_back(samples_[row].us);
    }
    return summarize_errors(predicted, measured);
  }

  void summarize(const std::string& lane) {
    std::map<SliceFamily, std::vector<size_t>> families;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const SliceCase& slice = samples_[i].slice;
      if (slice.lane.name != lane || slice.load != OtherLoad::kNone) continue;
      families[slice.family].push_back(i);
    }
    for (const auto& [family, rows] : families) {
      std::set<std::string> shapes;
      std::vector<const SliceSample*> samples;
      for (const size_t row : rows) {
        shapes.insert(result_.groups[row]);
        samples.push_back(&samples_[row]);
      }
      const bool enough = rows.size() >= SlicePredictor::kFewestRows &&
                          shapes.size() >= SlicePredictor::kFewestShapes;
      result_.families.push_back(
          {.lane = lane,
           .family = family,
           .rows = rows.size(),
           .shapes = shapes.size(),
           .own_model = enough,
           .ours = errors(result_.predictions.ours, rows),
           .without_kernel = errors(result_.predictions.without_kernel, rows),
           .flops_only = errors(result_.predictions.flops_only, rows),
           .noise = repeat_noise(samples)});
    }
  }

  void summarize_slowdowns(const std::string& lane) {
    for (const OtherLoad load : {OtherLoad::kMemory, OtherLoad::kCompute}) {
      std::vector<double> measured;
      std::vector<double> predicted;
      std::vector<double> constant;
      SlowdownErrors errors{.lane = lane, .load = load};
      for (size_t i = 0; i < samples_.size(); ++i) {
        const SliceSample& sample = samples_[i];
        if (sample.slice.lane.name != lane || sample.slice.load != load) continue;
        if (sample.alone_us <= 0 || std::isnan(slowdowns_[i])) continue;
        measured.push_back(sample.us / sample.alone_us);
        predicted.push_back(slowdowns_[i]);
        constant.push_back(constant_slowdowns_[i]);
      }
      if (measured.empty()) continue;
      double sum = 0;
      for (const double value : measured) sum += value;
      errors.mean = sum / static_cast<double>(measured.size());
      errors.ours = summarize_errors(predicted, measured);
      errors.constant = summarize_errors(constant, measured);
      result_.slowdowns.push_back(errors);
    }
  }

  std::span<const SliceSample> samples_;
  const SliceEvaluationOptions& options_;
  SliceEvaluation result_;
  std::vector<int> folds_;
  std::vector<double> slowdowns_;
  std::vector<double> constant_slowdowns_;
};

// Equal for parts of one size of one operator under equal conditions.
std::string twin_key(SliceCase slice) {
  slice.cut_end -= slice.cut_begin;
  slice.cut_begin = 0;
  return to_json(slice);
}

}  // namespace

double RepeatNoise::value() const { return twins.count >= kEnoughTwins ? twins.mape : quartiles; }

double target_mape(const RepeatNoise& noise) {
  return std::max(kTarget, kTargetOverNoise * noise.value());
}

RepeatNoise repeat_noise(std::span<const SliceSample* const> samples) {
  RepeatNoise noise;
  std::vector<std::string> keys;
  std::vector<double> times;
  for (const SliceSample* sample : samples) {
    noise.quartiles += (sample->high_us - sample->low_us) / 2 / sample->us;
    keys.push_back(twin_key(sample->slice));
    times.push_back(sample->us);
  }
  if (!samples.empty()) noise.quartiles /= static_cast<double>(samples.size());
  noise.twins = repeat_errors(keys, times);
  return noise;
}

std::vector<std::string> lanes_of(std::span<const SliceSample> samples) {
  std::vector<std::string> lanes;
  for (const SliceSample& sample : samples) {
    if (std::find(lanes.begin(), lanes.end(), sample.slice.lane.name) == lanes.end()) {
      lanes.push_back(sample.slice.lane.name);
    }
  }
  return lanes;
}

ErrorSummary overall_errors(std::span<const SliceSample> samples,
                            std::span<const double> predictions, const std::string& lane) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (size_t i = 0; i < samples.size(); ++i) {
    const SliceCase& slice = samples[i].slice;
    if (slice.lane.name != lane || slice.load != OtherLoad::kNone) continue;
    if (std::isnan(predictions[i])) continue;
    predicted.push_back(predictions[i]);
    measured.push_back(samples[i].us);
  }
  return summarize_errors(predicted, measured);
}

StatusOr<SliceEvaluation> evaluate_slices(std::span<const SliceSample> samples,
                                          const SliceEvaluationOptions& options,
                                          const std::function<void()>& on_step) {
  const std::vector<std::string> groups = shape_groups(samples);
  const size_t distinct = std::set<std::string>(groups.begin(), groups.end()).size();
  if (options.folds < 2 || distinct < static_cast<size_t>(options.folds)) {
    return invalid_argument(
        fmt::format("{} folds of {} shapes: give --folds from 2 to the number of shapes, or "
                    "profile more",
                    options.folds, distinct));
  }
  return Evaluation(samples, options).run(on_step);
}

}  // namespace tandem::predict
