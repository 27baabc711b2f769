#include "cli/train_lanes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/conditions.h"
#include "cli/distinct_files.h"
#include "cli/predictor_bench.h"
#include "cli/predictor_plots.h"
#include "cli/progress.h"
#include "cli/train_budgets.h"
#include "fmt/format.h"
#include "platform/engine.h"
#include "profile/predicted_costs.h"
#include "profile/training.h"
#include "support/statistics.h"
#include "tandem/session.h"
#include "tandem/version.h"
#include "zoo/zoo.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using predict::ErrorSummary;
using predict::PredictorFile;
using predict::SliceErrors;
using predict::SliceEvaluation;
using predict::SlowdownErrors;

// Of networks run to compare with.
constexpr int kWarmup = 2;
constexpr int kRuns = 9;

double percent(double fraction) { return 100 * fraction; }

// A dash for models that were not fitted.
std::string percent_or_dash(const ErrorSummary& errors) {
  return errors.count == 0 ? "-" : fmt::format("{:.1f}", percent(errors.mape));
}

json to_json(const SliceErrors& errors) {
  return {{"lane", errors.lane},
          {"family", to_string(errors.family)},
          {"rows", errors.rows},
          {"shapes", errors.shapes},
          {"own_model", errors.own_model},
          {"ours", errors_json(errors.ours)},
          {"without_kernel", errors_json(errors.without_kernel)},
          {"flops_only", errors_json(errors.flops_only)},
          {"noise",
           {{"quartiles", errors.noise.quartiles},
            {"twins", errors_json(errors.noise.twins)},
            {"used", errors.noise.value()}}},
          {"target", predict::target_mape(errors.noise)},
          {"meets_target", errors.meets_target()}};
}

json to_json(const SlowdownErrors& errors) {
  return {{"lane", errors.lane},
          {"load", to_string(errors.load)},
          {"mean_slowdown", errors.mean},
          {"ours", errors_json(errors.ours)},
          {"constant", errors_json(errors.constant)}};
}

json to_json(const NetworkErrors& errors) {
  return {{"network", errors.network},
          {"lane", errors.lane},
          {"operators", errors.operators},
          {"operators_measured", errors.measured},
          {"errors", errors_json(errors.errors)},
          {"predicted_us", errors.predicted_us},
          {"measured_us", errors.measured_us},
          {"predicted_whole_us", errors.predicted_whole_us},
          {"run_us", errors.run_us}};
}

json to_json(const SliceEvaluation& evaluation) {
  json result = {{"families", json::array()}, {"slowdowns", json::array()}};
  for (const SliceErrors& errors : evaluation.families) {
    result["families"].push_back(to_json(errors));
  }
  for (const SlowdownErrors& errors : evaluation.slowdowns) {
    result["slowdowns"].push_back(to_json(errors));
  }
  return result;
}

void print_families(const SliceEvaluation& evaluation) {
  fmt::print("{:5} {:15} {:>6} {:>6} | {:>6} {:>6} {:>7} {:>7} | {:>8} {:>6} | {:>6} {:>7} {}\n",
             "lane", "family", "rows", "shapes", "MAPE", "p90", "in 10%", "by time", "without",
             "FLOPs", "noise", "target", "met");
  for (const SliceErrors& e : evaluation.families) {
    fmt::print(
        "{:5} {:15} {:>6} {:>6} | {:>6.1f} {:>6.1f} {:>7.1f} {:>7.1f} | {:>8} {:>6} | "
        "{:>6.1f} {:>7.1f} {}{}\n",
        e.lane, to_string(e.family), e.rows, e.shapes, percent(e.ours.mape), percent(e.ours.p90),
        percent(e.ours.within_10), percent(e.ours.time_weighted), percent_or_dash(e.without_kernel),
        percent_or_dash(e.flops_only), percent(e.noise.value()),
        percent(predict::target_mape(e.noise)), e.meets_target() ? "yes" : "no",
        e.own_model ? "" : "; the lane's common model");
  }
  for (const SlowdownErrors& e : evaluation.slowdowns) {
    fmt::print(
        "{:5} slowdown beside {:8} {:.2f} on average; MAPE {:.1f} of {} rows, of the "
        "average {:.1f}\n",
        e.lane, to_string(e.load), e.mean, percent(e.ours.mape), e.ours.count,
        percent(e.constant.mape));
  }
}

void print_networks(const std::vector<NetworkErrors>& networks) {
  if (networks.empty()) return;
  fmt::print("\nNetworks left out of training: each operator, and their sum\n");
  fmt::print("{:22} {:5} {:>9} | {:>6} {:>6} {:>7} | {:>10} {:>10} {:>7} | {:>10} {:>10} {:>7}\n",
             "network", "lane", "operators", "MAPE", "p90", "in 10%", "sum ms", "predicted",
             "error", "run ms", "predicted", "error");
  for (const NetworkErrors& e : networks) {
    fmt::print(
        "{:22} {:5} {:>4}/{:<4} | {:>6.1f} {:>6.1f} {:>7.1f} | {:>10.3f} {:>10.3f} {:>6.1f}%",
        e.network, e.lane, e.measured, e.operators, percent(e.errors.mape), percent(e.errors.p90),
        percent(e.errors.within_10), e.measured_us / 1e3, e.predicted_us / 1e3,
        e.measured_us > 0 ? percent(e.predicted_us / e.measured_us - 1) : 0.0);
    if (e.run_us > 0) {
      fmt::print(" | {:>10.3f} {:>10.3f} {:>6.1f}%", e.run_us / 1e3, e.predicted_whole_us / 1e3,
                 percent(e.predicted_whole_us / e.run_us - 1));
    }
    fmt::print("\n");
  }
}

class Training {
 public:
  explicit Training(const TrainLanesFlags& flags) : flags_(flags) {}

  Status run() {
    TANDEM_RETURN_IF_ERROR(read());
    TANDEM_RETURN_IF_ERROR(evaluate());
    TANDEM_RETURN_IF_ERROR(leave_networks_out());
    TANDEM_RETURN_IF_ERROR(compare_budgets());
    TANDEM_RETURN_IF_ERROR(plot());
    TANDEM_RETURN_IF_ERROR(save());
    if (flags_.json) return print_json();
    print();
    return {};
  }

 private:
  StatusOr<std::shared_ptr<Platform>> platform() {
    if (!platform_) {
      TANDEM_ASSIGN_OR_RETURN(platform_, create_platform(flags_.platform));
    }
    return platform_;
  }

  Status read() {
    path_ = flags_.store;
    if (path_.empty()) {
      TANDEM_RETURN_IF_ERROR(platform().status());
      TANDEM_ASSIGN_OR_RETURN(path_, MeasurementStore::default_path(platform_->fingerprint()));
    }
    TANDEM_RETURN_IF_ERROR(check_distinct({{"the store", path_}, {"--output", flags_.output}}));
    TANDEM_ASSIGN_OR_RETURN(const MeasurementStore store, MeasurementStore::open_to_read(path_));
    TANDEM_ASSIGN_OR_RETURN(data_, read_training_data(store));
    if (data_.made_for.engine == engine_fingerprint()) return {};
    const std::string message =
        fmt::format("the measurements in {} are of the engine '{}', and this is '{}'", path_,
                    data_.made_for.engine, engine_fingerprint());
    if (!flags_.allow_other) {
      return failed_precondition(message + ": profile again, or give --allow-other-engine");
    }
    fmt::print(stderr, "warning: {}\n", message);
    return {};
  }

  Status evaluate() {
    const auto lanes = static_cast<int>(predict::lanes_of(data_.samples).size());
    Progress progress("training", lanes * flags_.folds);
    TANDEM_ASSIGN_OR_RETURN(evaluation_,
                            predict::evaluate_slices(data_.samples,
                                                     {.folds = flags_.folds,
                                                      .seed = flags_.seed,
                                                      .boosting = flags_.boosting,
                                                      .only_ours = flags_.only_ours},
                                                     [&progress] { progress.step(); }));
    return {};
  }

  StatusOr<std::vector<std::string>> networks_left_out() const {
    if (flags_.leave_out.empty()) return std::vector<std::string>{};
    std::vector<std::string> known = data_.networks();
    if (flags_.leave_out == "all") return known;
    if (std::find(known.begin(), known.end(), flags_.leave_out) == known.end()) {
      return not_found(fmt::format("no measurement is of network '{}'; there are: {}",
                                   flags_.leave_out, fmt::join(known, ", ")));
    }
    return std::vector<std::string>{flags_.leave_out};
  }

  Status leave_networks_out() {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> names, networks_left_out());
    Progress progress("leaving networks out", static_cast<int>(names.size()));
    for (const std::string& name : names) {
      TANDEM_RETURN_IF_ERROR(leave_out(name).with_context("network " + name));
      progress.step();
    }
    return {};
  }

  Status leave_out(const std::string& name) {
    TANDEM_ASSIGN_OR_RETURN(const Model model, Model::load("zoo:" + name));
    TANDEM_ASSIGN_OR_RETURN(
        const PredictorFile file,
        train_predictors(data_, evaluation_.groups,
                         without_network(data_, evaluation_.groups, name), flags_.boosting, [] {}));
    TANDEM_ASSIGN_OR_RETURN(std::vector<NetworkErrors> errors,
                            network_errors(data_, name, operator_counts(model.graph()), file));
    for (NetworkErrors& lane : errors) {
      if (flags_.measure) TANDEM_RETURN_IF_ERROR(compare_with_run(model, file, &lane));
      networks_.push_back(std::move(lane));
    }
    return {};
  }

  // All operators, as the lane says that it will compute them, and a run of them.
  Status compare_with_run(const Model& model, const PredictorFile& file, NetworkErrors* errors) {
    TANDEM_RETURN_IF_ERROR(platform().status());
    const auto& lanes = platform_->lanes();
    const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const auto& candidate) {
      return candidate->info().name == errors->lane;
    });
    if (lane == lanes.end()) return not_found("this platform has no lane " + errors->lane);
    TANDEM_ASSIGN_OR_RETURN(
        const std::unique_ptr<PredictedCosts> costs,
        PredictedCosts::create(model.graph(), {lane->get()}, file, TransferCosts()));
    for (size_t op = 0; op < model.graph().operators().size(); ++op) {
      errors->predicted_whole_us += costs->slice_us(0, {static_cast<OperatorId>(op)});
    }
    const bool queue = (*lane)->info().asynchronous;
    SessionOptions options;
    options.strategy = queue ? "gpu" : "cpu";
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                            Session::create(model, platform_, options));
    std::vector<HostTensor> inputs;
    for (const TensorSpec& input : model.inputs()) inputs.emplace_back(input.type, input.dims);
    std::vector<HostTensor> outputs;
    std::vector<double> us;
    for (int run = 0; run < kWarmup + kRuns; ++run) {
      TANDEM_RETURN_IF_ERROR(session->run(inputs, &outputs));
      if (run >= kWarmup) us.push_back(session->last_run_us());
    }
    errors->run_us = summarize(us).median;
    return {};
  }

  Status compare_budgets() {
    std::vector<TrainingBudget> budgets;
    for (const std::string& text : flags_.budgets) {
      TANDEM_ASSIGN_OR_RETURN(budgets.emplace_back(), parse_training_budget(text));
    }
    if (budgets.empty()) return {};
    TANDEM_ASSIGN_OR_RETURN(
        budgets_, errors_by_budget(
                      data_, budgets,
                      {.folds = flags_.folds, .seed = flags_.seed, .boosting = flags_.boosting}));
    return {};
  }

  Status plot() {
    if (flags_.plots.empty()) return {};
    TANDEM_RETURN_IF_ERROR(plot_predictions(flags_.plots, data_, evaluation_));
    if (!flags_.measure) return {};
    TANDEM_RETURN_IF_ERROR(platform().status());
    return plot_steps(flags_.plots, data_, flags_.boosting, platform_);
  }

  Status save() {
    const auto lanes = static_cast<int>(predict::lanes_of(data_.samples).size());
    Progress progress("training on everything", lanes);
    TANDEM_ASSIGN_OR_RETURN(
        PredictorFile file,
        train_predictors(data_, evaluation_.groups, std::vector<bool>(data_.samples.size(), true),
                         flags_.boosting, [&progress] { progress.step(); }));
    file.errors = to_json(evaluation_).dump();
    if (flags_.output == "none") return {};
    saved_ = flags_.output.empty() ? predict::default_predictor_path(data_.made_for.platform)
                                   : flags_.output;
    if (saved_ == "none") {
      return failed_precondition("there is no home folder for predictors: give a file with -o");
    }
    return file.save(saved_);
  }

  Status print_json() const {
    json document = {{"store", path_},
                     {"platform", data_.made_for.platform},
                     {"engine", data_.made_for.engine},
                     {"rows", data_.samples.size()},
                     {"rows_disturbed", data_.disturbed},
                     {"rows_implausible", data_.implausible},
                     {"folds", flags_.folds},
                     {"seed", flags_.seed},
                     {"xgboost", predict::boosting_version()},
                     {"saved", saved_},
                     {"networks_left_out", json::array()}};
    document.update(to_json(evaluation_));
    document["lanes"] = json::array();
    for (const std::string& lane : predict::lanes_of(data_.samples)) {
      json of_lane = errors_json(overall(lane));
      of_lane["lane"] = lane;
      document["lanes"].push_back(std::move(of_lane));
    }
    for (const BudgetErrors& budget : budgets_) document["budgets"].push_back(to_json(budget));
    for (const NetworkErrors& network : networks_) {
      document["networks_left_out"].push_back(to_json(network));
    }
    fmt::print("{}\n", document.dump(2));
    return {};
  }

  void print() const {
    fmt::print(
        "{} measurements of {} (left out: {} disturbed, {} beyond what cores can do). Errors in % "
        "of measured times, of "
        "shapes held out ({} folds by shape, seed {}). by time: the sum of errors over the sum of "
        "times; without: arguments only; FLOPs: a line; noise: the same measured again.\n",
        data_.samples.size(), data_.made_for.platform, data_.disturbed, data_.implausible,
        flags_.folds, flags_.seed);
    print_families(evaluation_);
    for (const std::string& lane : predict::lanes_of(data_.samples)) {
      const ErrorSummary all = overall(lane);
      fmt::print("{:5} all: MAPE {:.1f}, weighted by time {:.1f}\n", lane, percent(all.mape),
                 percent(all.time_weighted));
    }
    print_networks(networks_);
    print_budgets(budgets_, data_.seconds);
    if (!saved_.empty()) fmt::print("\nsaved {}\n", saved_);
  }

  ErrorSummary overall(const std::string& lane) const {
    return predict::overall_errors(data_.samples, evaluation_.predictions.ours, lane);
  }

  const TrainLanesFlags& flags_;
  std::shared_ptr<Platform> platform_;
  std::string path_;
  std::string saved_;
  TrainingData data_;
  SliceEvaluation evaluation_;
  std::vector<NetworkErrors> networks_;
  std::vector<BudgetErrors> budgets_;
};

}  // namespace

Status train_lanes(const TrainLanesFlags& flags) {
  if (!flags.bench_table.empty()) return bench_cost_table(flags);
  return Training(flags).run();
}

}  // namespace tandem::cli
