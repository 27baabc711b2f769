#include "predict/boosting.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace tandem::predict {
namespace {

using nlohmann::json;

struct MatrixDeleter {
  void operator()(DMatrixHandle matrix) const { XGDMatrixFree(matrix); }
};
struct BoosterDeleter {
  void operator()(BoosterHandle booster) const { XGBoosterFree(booster); }
};
using Matrix = std::unique_ptr<std::remove_pointer_t<DMatrixHandle>, MatrixDeleter>;
using Booster = std::unique_ptr<std::remove_pointer_t<BoosterHandle>, BoosterDeleter>;

Status check(int code, const char* what) {
  if (code == 0) return {};
  return internal_error(fmt::format("XGBoost: {}: {}", what, XGBGetLastError()));
}

StatusOr<Matrix> make_matrix(const Frame& frame, std::span<const float> targets) {
  DMatrixHandle handle = nullptr;
  TANDEM_RETURN_IF_ERROR(
      check(XGDMatrixCreateFromMat(frame.values().data(), frame.rows(), frame.columns(),
                                   std::numeric_limits<float>::quiet_NaN(), &handle),
            "making a matrix"));
  Matrix matrix(handle);
  TANDEM_RETURN_IF_ERROR(
      check(XGDMatrixSetFloatInfo(handle, "label", targets.data(), targets.size()), "labels"));
  return matrix;
}

const char* objective_name(Objective objective) {
  switch (objective) {
    case Objective::kSquaredError:
      return "reg:squarederror";
    case Objective::kRobustError:
      return "reg:pseudohubererror";
    case Objective::kLogistic:
      return "binary:logistic";
  }
  return "";
}

// What tells when to stop.
const char* metric_name(Objective objective) {
  switch (objective) {
    case Objective::kSquaredError:
      return "rmse";
    case Objective::kRobustError:
      return "mae";
    case Objective::kLogistic:
      return "logloss";
  }
  return "";
}

StatusOr<Booster> make_booster(DMatrixHandle training, Objective objective,
                               const BoostingOptions& options) {
  BoosterHandle handle = nullptr;
  TANDEM_RETURN_IF_ERROR(check(XGBoosterCreate(&training, 1, &handle), "making a booster"));
  Booster booster(handle);
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", objective_name(objective)},
      {"eval_metric", metric_name(objective)},
      {"huber_slope", fmt::to_string(kRobustSlope)},
      // The log-odds of a half are 0, as is the mean that squared errors start from.
      {"base_score", objective == Objective::kLogistic ? "0.5" : "0"},
      {"tree_method", "hist"},
      {"nthread", "1"},
      {"verbosity", "0"},
      {"max_depth", fmt::to_string(options.depth)},
      {"learning_rate", fmt::to_string(options.learning_rate)},
      {"subsample", fmt::to_string(options.row_share)},
      {"colsample_bytree", fmt::to_string(options.feature_share)},
      {"min_child_weight", fmt::to_string(options.minimum_weight)},
      {"lambda", fmt::to_string(options.regularisation)},
      {"seed", fmt::to_string(options.seed)}};
  for (const auto& [name, value] : parameters) {
    TANDEM_RETURN_IF_ERROR(check(XGBoosterSetParam(handle, name, value.c_str()), name));
  }
  return booster;
}

// The error of the second matrix, from "[7]\ttraining-rmse:0.2\tvalidation-rmse:0.3".
StatusOr<double> validation_error(BoosterHandle booster, int round, DMatrixHandle validation) {
  const char* name = "validation";
  const char* text = nullptr;
  TANDEM_RETURN_IF_ERROR(
      check(XGBoosterEvalOneIter(booster, round, &validation, &name, 1, &text), "evaluating"));
  const std::string line = text;
  const size_t colon = line.rfind(':');
  if (colon == std::string::npos) return internal_error("XGBoost: no error in '" + line + "'");
  return std::stod(line.substr(colon + 1));
}

struct Stopped {
  int rounds = 0;
  double error = 0;
};

// Adds trees until there are enough, or the validation error has not fallen for a while.
StatusOr<Stopped> add_trees(BoosterHandle booster, DMatrixHandle training, DMatrixHandle validation,
                            const BoostingOptions& options) {
  Stopped best{options.trees, 0};
  for (int round = 0; round < options.trees; ++round) {
    TANDEM_RETURN_IF_ERROR(
        check(XGBoosterUpdateOneIter(booster, round, training), "adding a tree"));
    if (validation == nullptr) continue;
    TANDEM_ASSIGN_OR_RETURN(const double error, validation_error(booster, round, validation));
    if (round == 0 || error < best.error) best = {round + 1, error};
    if (round + 1 - best.rounds >= options.patience) break;
  }
  return best;
}

std::vector<TreeNode> nodes_of(const json& tree) {
  const auto left = tree.at("left_children").get<std::vector<int>>();
  const auto right = tree.at("right_children").get<std::vector<int>>();
  const auto feature = tree.at("split_indices").get<std::vector<int>>();
  const auto condition = tree.at("split_conditions").get<std::vector<float>>();
  std::vector<TreeNode> nodes;
  for (size_t i = 0; i < left.size(); ++i) {
    // A leaf keeps its value where the others keep their threshold.
    if (left[i] < 0) {
      nodes.push_back({.leaf = condition.at(i)});
    } else {
      nodes.push_back({left[i], right.at(i), feature.at(i), condition.at(i), 0});
    }
  }
  return nodes;
}

StatusOr<TreeEnsemble> to_ensemble(BoosterHandle booster, size_t features, int rounds) {
  bst_ulong length = 0;
  const char* text = nullptr;
  TANDEM_RETURN_IF_ERROR(
      check(XGBoosterSaveModelToBuffer(booster, R"({"format": "json"})", &length, &text),
            "reading the trees"));
  TreeEnsemble ensemble(features, 0);
  try {
    const json document = json::parse(text, text + length);
    const json& trees = document.at("learner").at("gradient_booster").at("model").at("trees");
    for (int i = 0; i < rounds; ++i) {
      TANDEM_RETURN_IF_ERROR(ensemble.add_tree(nodes_of(trees.at(i))));
    }
  } catch (const std::exception& e) {
    return internal_error(
        fmt::format("XGBoost {} writes models in a form that Tandem does not know: {}",
                    boosting_version(), e.what()));
  }
  return ensemble;
}

StatusOr<std::vector<float>> predict_by_xgboost(BoosterHandle booster, DMatrixHandle matrix,
                                                int rounds) {
  const json config = {{"type", 1},
                       {"training", false},
                       {"iteration_begin", 0},
                       {"iteration_end", rounds},
                       {"strict_shape", false}};
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* values = nullptr;
  TANDEM_RETURN_IF_ERROR(check(XGBoosterPredictFromDMatrix(booster, matrix, config.dump().c_str(),
                                                           &shape, &dimensions, &values),
                               "predicting"));
  return std::vector<float>(values, values + shape[0]);
}

}  // namespace

Status BoostingOptions::validate() const {
  const auto refuse = [](const char* name, double value, const char* range) {
    return invalid_argument(fmt::format("{} is {}: it must be {}", name, value, range));
  };
  const auto is_share = [](double value) { return value > 0 && value <= 1; };
  if (trees < 1 || trees > 10000) return refuse("trees", trees, "1 to 10000");
  if (depth < 1 || depth > TreeEnsemble::kMaximumDepth) return refuse("depth", depth, "1 to 8");
  if (!is_share(learning_rate)) return refuse("learning_rate", learning_rate, "in (0, 1]");
  if (!is_share(row_share)) return refuse("row_share", row_share, "in (0, 1]");
  if (!is_share(feature_share)) return refuse("feature_share", feature_share, "in (0, 1]");
  if (!(minimum_weight >= 0)) return refuse("minimum_weight", minimum_weight, "0 or more");
  if (!(regularisation >= 0)) return refuse("regularisation", regularisation, "0 or more");
  if (patience < 1) return refuse("patience", patience, "1 or more");
  return {};
}

StatusOr<Boosted> boost(const Frame& frame, std::span<const float> targets,
                        std::span<const size_t> validation, Objective objective,
                        const BoostingOptions& options) {
  TANDEM_RETURN_IF_ERROR(options.validate());
  if (frame.rows() == 0 || frame.rows() != targets.size()) {
    return invalid_argument(
        fmt::format("{} rows with {} targets to learn from", frame.rows(), targets.size()));
  }
  std::vector<bool> held(frame.rows());
  for (const size_t row : validation) held[row] = true;
  std::vector<size_t> kept;
  for (size_t row = 0; row < frame.rows(); ++row) {
    if (!held[row]) kept.push_back(row);
  }
  if (kept.empty())
    return invalid_argument("every row is held out: there is nothing to learn from");
  const auto matrix_of = [&](std::span<const size_t> rows) -> StatusOr<Matrix> {
    std::vector<float> labels;
    for (const size_t row : rows) labels.push_back(targets[row]);
    return make_matrix(frame.with_rows(rows), labels);
  };
  TANDEM_ASSIGN_OR_RETURN(const Matrix training, matrix_of(kept));
  Matrix watched;
  if (!validation.empty()) {
    TANDEM_ASSIGN_OR_RETURN(watched, matrix_of(validation));
  }
  TANDEM_ASSIGN_OR_RETURN(const Booster booster, make_booster(training.get(), objective, options));
  TANDEM_ASSIGN_OR_RETURN(const Stopped stopped,
                          add_trees(booster.get(), training.get(), watched.get(), options));
  Boosted boosted;
  TANDEM_ASSIGN_OR_RETURN(boosted.ensemble,
                          to_ensemble(booster.get(), frame.columns(), stopped.rounds));
  TANDEM_ASSIGN_OR_RETURN(boosted.by_xgboost,
                          predict_by_xgboost(booster.get(), training.get(), stopped.rounds));
  boosted.rounds = stopped.rounds;
  boosted.validation_error = stopped.error;
  return boosted;
}

std::string boosting_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace tandem::predict
