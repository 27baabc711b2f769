// `tandem train`: predictors from measurements, and how wrong they are where they have not looked.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "cli/train_lanes.h"
#include "fmt/format.h"
#include "predict/phone_evaluation.h"
#include "support/write_file.h"
#include "tandem/version.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using predict::ErrorSummary;
using predict::FamilyErrors;
using predict::PhoneReport;

struct Flags {
  std::string csv;
  std::string schema = "phones";
  std::string end_to_end;
  std::string output;
  bool print_schema = false;
  bool json = false;
  TrainLanesFlags lanes;  // without --csv; what both have in common is above and below
  predict::PhoneEvaluationOptions options;
};

json to_json(const ErrorSummary& errors) {
  return {{"count", errors.count},
          {"mape", errors.mape},
          {"p90", errors.p90},
          {"within_10", errors.within_10}};
}

json to_json(const FamilyErrors& errors) {
  json family = {{"family", errors.family},
                 {"operators", errors.ours.count},
                 {"mape", errors.ours.mape},
                 {"p90", errors.ours.p90},
                 {"within_10", errors.ours.within_10},
                 {"mape_true_kernel", errors.true_kernel.mape},
                 {"mape_without_kernel", errors.without_kernel.mape},
                 {"mape_flops_only", errors.flops_only.mape},
                 {"new_shapes", to_json(errors.new_shapes)},
                 {"repeats", to_json(errors.repeats)}};
  if (!errors.part_of.empty()) family["part_of"] = errors.part_of;
  return family;
}

json to_json(const PhoneReport& report) {
  json phone = {{"phone", report.phone},
                {"kernel_accuracy", report.kernel_accuracy},
                {"families", json::array()},
                {"transfer", json::object()}};
  for (const FamilyErrors& errors : report.families) phone["families"].push_back(to_json(errors));
  if (report.end_to_end) {
    phone["end_to_end"] = to_json(report.end_to_end->ours);
    phone["end_to_end"]["mape_plain_sum"] = report.end_to_end->plain_sum.mape;
    phone["end_to_end"]["mape_from_measured"] = report.end_to_end->from_measured.mape;
  }
  for (const auto& [known, errors] : report.transfer) {
    phone["transfer"][fmt::to_string(known)] = {
        {"all", to_json(errors.all)},
        {"convolutions", to_json(errors.convolutions)},
        {"alone_all", to_json(errors.alone_all)},
        {"alone_convolutions", to_json(errors.alone_convolutions)}};
  }
  return phone;
}

double percent(double fraction) { return 100 * fraction; }

// A dash where nothing was there to be summarised.
std::string percent_or_dash(const ErrorSummary& errors) {
  return errors.count == 0 ? "-" : fmt::format("{:.1f}", percent(errors.mape));
}

void print_families(const PhoneReport& report) {
  fmt::print("\n{} (kernel expected rightly: {:.1f}%)\n", report.phone,
             percent(report.kernel_accuracy));
  fmt::print("{:24} {:>6} {:>6} {:>6} {:>8} | {:>6} {:>8} {:>6} | {:>10} {:>7}\n", "family",
             "number", "MAPE", "p90", "in 10%", "true k", "without", "FLOPs", "new shapes",
             "repeats");
  for (const FamilyErrors& f : report.families) {
    fmt::print(
        "{:24} {:>6} {:>6.1f} {:>6.1f} {:>8.1f} | {:>6.1f} {:>8.1f} {:>6.1f} | {:>10} {:>7}\n",
        (f.part_of.empty() ? "" : "  ") + f.family, f.ours.count, percent(f.ours.mape),
        percent(f.ours.p90), percent(f.ours.within_10), percent(f.true_kernel.mape),
        percent(f.without_kernel.mape), percent(f.flops_only.mape), percent_or_dash(f.new_shapes),
        percent_or_dash(f.repeats));
  }
}

void print_report(const PhoneReport& report) {
  print_families(report);
  if (report.end_to_end) {
    const predict::EndToEndErrors& e = *report.end_to_end;
    fmt::print(
        "whole networks ({}): MAPE {:.1f}, p90 {:.1f}, in 10% {:.1f}; plain sum of operators "
        "{:.1f}; from measured operators {:.1f}\n",
        e.ours.count, percent(e.ours.mape), percent(e.ours.p90), percent(e.ours.within_10),
        percent(e.plain_sum.mape), percent(e.from_measured.mape));
  }
  for (const auto& [known, errors] : report.transfer) {
    fmt::print(
        "known by {} operators: MAPE {:.1f} (convolutions {:.1f}); without the other phones "
        "{:.1f} ({:.1f})\n",
        known, percent(errors.all.mape), percent(errors.convolutions.mape),
        percent(errors.alone_all.mape), percent(errors.alone_convolutions.mape));
  }
}

void print_legend(const Flags& flags) {
  fmt::print(
      "Errors in % of measured times, of networks held out ({} folds by network, seed {}). true k: "
      "told which kernel ran; without: arguments only; FLOPs: a line; new shapes: those that no "
      "training network has; repeats: the same measured again.\n",
      flags.options.folds, flags.options.seed);
}

// One file for each phone and family, trained on everything.
Status save_predictors(const Flags& flags, const predict::PhoneSchema& schema,
                       const predict::PhoneData& data) {
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  if (error) {
    return invalid_argument(fmt::format("cannot make {}: {}", flags.output, error.message()));
  }
  std::vector<size_t> rows(data.operators.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  for (size_t i = 0; i < schema.devices.size(); ++i) {
    const predict::PhoneTable table{schema, schema.devices[i], data.operators, data.measured[i]};
    TANDEM_ASSIGN_OR_RETURN(
        const predict::PhonePredictor predictor,
        predict::PhonePredictor::fit(table, rows, {.boosting = flags.options.boosting}));
    for (const auto& [family, regressor] : predictor.regressors()) {
      const auto path = std::filesystem::path(flags.output) /
                        fmt::format("{}-{}.json", schema.devices[i].name, to_string(family));
      TANDEM_RETURN_IF_ERROR(write_file(
          path, regressor.to_text({schema.name + "/" + schema.devices[i].name, kVersion})));
    }
  }
  return {};
}

// Folders are made where there are none.
Status check_outputs(const Flags& flags) {
  TANDEM_RETURN_IF_ERROR(check_can_fill("--plots", flags.lanes.plots));
  if (!flags.csv.empty()) return check_can_fill("--output", flags.output);
  if (flags.output.empty() || flags.output == "none") return {};
  std::error_code error;
  if (std::filesystem::is_directory(flags.output, error)) {
    return check_can_write({{"--output", flags.output}});
  }
  const std::filesystem::path file = std::filesystem::absolute(flags.output, error);
  return check_can_fill("--output", file.parent_path().string());
}

Status train(const Flags& flags) {
  if (flags.print_schema) {
    fmt::print("{}\n", predict::builtin_phone_schema());
    return {};
  }
  TANDEM_RETURN_IF_ERROR(check_outputs(flags));
  if (flags.csv.empty()) {
    TrainLanesFlags lanes = flags.lanes;
    lanes.output = flags.output;
    lanes.json = flags.json;
    lanes.folds = flags.options.folds;
    lanes.seed = flags.options.seed;
    lanes.boosting = flags.options.boosting;
    return train_lanes(lanes);
  }
  TANDEM_ASSIGN_OR_RETURN(const predict::PhoneSchema schema,
                          predict::PhoneSchema::load(flags.schema));
  TANDEM_ASSIGN_OR_RETURN(const predict::CsvTable table, predict::CsvTable::read(flags.csv));
  StatusOr<predict::PhoneData> data = predict::read_phone_data(table, schema);
  if (!data.ok()) return data.status().with_context(flags.csv);
  predict::EndToEnd whole;
  if (!flags.end_to_end.empty()) {
    TANDEM_ASSIGN_OR_RETURN(const predict::CsvTable networks,
                            predict::CsvTable::read(flags.end_to_end));
    StatusOr<predict::EndToEnd> times = predict::read_end_to_end(networks, schema);
    if (!times.ok()) return times.status().with_context(flags.end_to_end);
    whole = std::move(*times);
  }
  std::vector<PhoneReport> reports;
  {
    Progress progress("training", static_cast<int>(schema.devices.size()) * flags.options.folds);
    TANDEM_ASSIGN_OR_RETURN(
        reports, predict::evaluate_phones(schema, *data, whole.empty() ? nullptr : &whole,
                                          flags.options, [&progress] { progress.step(); }));
  }
  if (!flags.output.empty()) TANDEM_RETURN_IF_ERROR(save_predictors(flags, schema, *data));
  if (flags.json) {
    json phones = json::array();
    for (const PhoneReport& report : reports) phones.push_back(to_json(report));
    fmt::print("{}\n", json{{"schema", schema.name},
                            {"csv", flags.csv},
                            {"folds", flags.options.folds},
                            {"seed", flags.options.seed},
                            {"xgboost", predict::boosting_version()},
                            {"phones", phones}}
                           .dump(2));
    return {};
  }
  print_legend(flags);
  for (const PhoneReport& report : reports) print_report(report);
  return {};
}

}  // namespace

void add_train_command(CLI::App& app, Status* outcome) {
  CLI::App* train_app = app.add_subcommand(
      "train",
      "Train predictors from this machine's measurements (see tandem profile), or from those of "
      "phones (--csv), and print their errors on what is held out");
  const auto flags = std::make_shared<Flags>();
  CLI::Option* csv = train_app->add_option(
      "--csv", flags->csv, "Measurements of operators on phones, instead of this machine's");
  train_app
      ->add_option("--schema", flags->schema,
                   "What its columns mean: 'phones', or a JSON file (see --print-schema)")
      ->needs(csv)
      ->capture_default_str();
  train_app
      ->add_option("--end-to-end", flags->end_to_end,
                   "A CSV of whole networks, to compare sums of operators with")
      ->needs(csv);
  train_app->add_option("-o,--output", flags->output,
                        "Where to write predictors trained on everything: a file, and 'none': "
                        "nowhere (default: where sessions look for this platform's); with --csv a "
                        "folder (default: nowhere)");
  train_app->add_flag("--print-schema", flags->print_schema,
                      "Print the built-in schema, to start another from");
  train_app->add_flag("--json", flags->json, "Print JSON");
  predict::PhoneEvaluationOptions& options = flags->options;
  train_app
      ->add_option("--folds", options.folds,
                   "Shapes, with --csv networks, are held out in so many parts")
      ->check(at_least(2))
      ->capture_default_str();
  train_app
      ->add_option(
          "--transfer", options.transfer,
          "Operators that a new phone is known by, to try how the others' predictors help; "
          "0: do not")
      ->needs(csv)
      ->check(at_least(0))
      ->delimiter(',')
      ->capture_default_str();
  train_app->add_option("--seed", options.seed, "Of the parts")
      ->check(at_least(0))
      ->capture_default_str();
  predict::BoostingOptions& boosting = options.boosting;
  train_app->add_option("--trees", boosting.trees, "At most, in a predictor")
      ->check(at_least(1))
      ->capture_default_str();
  train_app->add_option("--depth", boosting.depth, "Of trees")
      ->check(at_least(1))
      ->capture_default_str();
  train_app->add_option("--learning-rate", boosting.learning_rate, "What each tree corrects")
      ->check(share_of_one(0.0001))
      ->capture_default_str();
  train_app->add_option("--row-share", boosting.row_share, "Of the rows, for each tree")
      ->check(share_of_one(0.01))
      ->capture_default_str();
  train_app->add_option("--feature-share", boosting.feature_share, "Of the features, for each tree")
      ->check(share_of_one(0.01))
      ->capture_default_str();
  train_app->add_option("--minimum-weight", boosting.minimum_weight, "Rows in a leaf, at least")
      ->check(number_from(0))
      ->capture_default_str();
  train_app->add_option("--regularisation", boosting.regularisation, "L2, of what leaves add")
      ->check(number_from(0))
      ->capture_default_str();
  const std::vector<CLI::Option*> of_both = train_app->get_options({});
  TrainLanesFlags& lanes = flags->lanes;
  const std::string group = "This machine's lanes";
  train_app
      ->add_option("--store", lanes.store,
                   "Measurements (default: this platform's, see tandem profile)")
      ->group(group);
  train_app
      ->add_option("--leave-out-network", lanes.leave_out,
                   "Also train without the shapes of this network, or of each one in turn ('all'), "
                   "and predict it")
      ->group(group);
  train_app
      ->add_flag("--only-ours", lanes.only_ours,
                 "Do not fit the simpler models that errors are compared with: takes a third")
      ->group(group);
  train_app
      ->add_option(
          "--budgets", lanes.budgets,
          "Also the errors of predictors that learn only what profiles of these times have "
          "measured, such as 10s,1m,10m,full")
      ->delimiter(',')
      ->group(group);
  train_app
      ->add_option("--plots", lanes.plots,
                   "Also draw predicted against measured times into this folder, as SVG; with "
                   "--measure also the steps that tiles make over output channels")
      ->group(group);
  train_app
      ->add_flag("--measure", lanes.measure,
                 "Run the networks left out, to compare their predicted times with, and what is "
                 "plotted")
      ->group(group);
  train_app
      ->add_flag("--allow-other-engine", lanes.allow_other,
                 "Use measurements or predictors of another version of Tandem's kernels or another "
                 "platform, with a warning")
      ->group(group);
  train_app
      ->add_option("--bench-table", lanes.bench_table,
                   "Instead of training, time how long the predictors take to fill the cost tables "
                   "of these networks, such as inception_v3; joined by '+' they are one graph")
      ->delimiter(',')
      ->group(group);
  lanes.platform.add_to(*train_app);
  for (CLI::Option* option : train_app->get_options({})) {
    const bool of_lanes = std::find(of_both.begin(), of_both.end(), option) == of_both.end();
    if (of_lanes) option->excludes(csv);
  }
  train_app->callback([flags, outcome] { *outcome = train(*flags); });
}

}  // namespace tandem::cli
