// How long 48,000 predictions by 100 trees of depth 6 take: Tandem's evaluator beside XGBoost's
// own, on one core. Built with -DTANDEM_BENCHMARKS=ON; prints milliseconds, medians of 15 rounds.
#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "predict/boosting.h"
#include "support/clock.h"
#include "support/statistics.h"

namespace tandem::predict {
namespace {

constexpr size_t kRows = 48000;
constexpr size_t kTrainingRows = 4000;
constexpr int kFeatures = 40;
constexpr int kRounds = 15;

Frame make_frame(size_t rows) {
  std::vector<Feature> features;
  for (int i = 0; i < kFeatures; ++i) features.push_back({fmt::to_string(i), "1", "benchmark"});
  Frame frame(std::move(features));
  std::mt19937_64 random(1);
  std::vector<double> row(kFeatures);
  for (size_t r = 0; r < rows; ++r) {
    for (double& value : row) value = static_cast<double>(random() % 4096) / 64;
    if (!frame.add(row).ok()) std::abort();
  }
  return frame;
}

template <typename Call>
double median_ms(const Call& call) {
  std::vector<double> samples;
  for (int i = 0; i < kRounds; ++i) {
    const Clock::time_point start = Clock::now();
    call();
    samples.push_back(microseconds(Clock::now() - start) / 1000);
  }
  return summarize(std::move(samples)).median;
}

void check(int code) {
  if (code == 0) return;
  fmt::print(stderr, "XGBoost: {}\n", XGBGetLastError());
  std::exit(1);
}

DMatrixHandle make_matrix(const Frame& frame) {
  DMatrixHandle matrix = nullptr;
  check(XGDMatrixCreateFromMat(frame.values().data(), frame.rows(), frame.columns(),
                               std::numeric_limits<float>::quiet_NaN(), &matrix));
  return matrix;
}

BoosterHandle train(const Frame& frame, const std::vector<float>& targets) {
  DMatrixHandle matrix = make_matrix(frame);
  check(XGDMatrixSetFloatInfo(matrix, "label", targets.data(), targets.size()));
  BoosterHandle booster = nullptr;
  check(XGBoosterCreate(&matrix, 1, &booster));
  for (const auto& [name, value] :
       {std::pair{"max_depth", "6"}, {"nthread", "1"}, {"tree_method", "hist"}}) {
    check(XGBoosterSetParam(booster, name, value));
  }
  for (int i = 0; i < 100; ++i) check(XGBoosterUpdateOneIter(booster, i, matrix));
  XGDMatrixFree(matrix);
  return booster;
}

double time_xgboost(BoosterHandle booster, const Frame& frame) {
  return median_ms([&] {
    DMatrixHandle matrix = make_matrix(frame);
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* values = nullptr;
    check(XGBoosterPredictFromDMatrix(
        booster, matrix,
        R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0,
            "strict_shape": false})",
        &shape, &dimensions, &values));
    XGDMatrixFree(matrix);
  });
}

int run() {
  const Frame training = make_frame(kTrainingRows);
  std::vector<float> targets;
  for (size_t i = 0; i < training.rows(); ++i) {
    targets.push_back(std::sin(training.at(i, 0)) + training.at(i, 1) * training.at(i, 2));
  }
  const Frame asked = make_frame(kRows);
  const StatusOr<Boosted> boosted =
      boost(training, targets, {}, Objective::kSquaredError, {.trees = 100, .depth = 6});
  if (!boosted.ok()) {
    fmt::print(stderr, "{}\n", boosted.status().to_string());
    return 1;
  }
  std::vector<float> results(kRows);
  const double ours = median_ms([&] { boosted->ensemble.predict(asked.values(), results); });
  BoosterHandle booster = train(training, targets);
  const double theirs = time_xgboost(booster, asked);
  XGBoosterFree(booster);
  fmt::print("{} rows, 100 trees of depth 6: Tandem {:.1f} ms, XGBoost {} {:.1f} ms\n", kRows, ours,
             boosting_version(), theirs);
  return 0;
}

}  // namespace
}  // namespace tandem::predict

int main() { return tandem::predict::run(); }
