#include "cli/predictor_plots.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "cli/temporary_folder.h"
#include "fmt/format.h"
#include "platform/engine.h"
#include "platform/topology.h"
#include "profile/profiler.h"
#include "profile/signature.h"
#include "report/svg_chart.h"
#include "support/write_file.h"

namespace tandem::cli {
namespace {

using predict::OtherLoad;
using predict::SliceCase;
using predict::SlicePredictor;
using predict::SliceSample;

// The operator of which steps are drawn: some tiles of rows, and columns from a part of a tile to
// several.
constexpr int64_t kStepRows = 56;
constexpr int64_t kStepDepth = 384;
constexpr int64_t kMostStepColumns = 320;
constexpr int64_t kStep = 4;
constexpr double kMostStepSeconds = 60;
constexpr std::chrono::seconds kPatience{60};

Status make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid_argument(fmt::format("cannot make {}: {}", folder, error.message()));
  return {};
}

std::string file_in(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

std::vector<Sample> step_samples() {
  std::vector<Sample> samples;
  for (int64_t columns = kStep; columns <= kMostStepColumns; columns += kStep) {
    Graph graph;
    const TensorId x = graph.add_input("x", DataType::kFloat32, {kStepRows, kStepDepth});
    const TensorId w =
        graph.add_constant("w", HostTensor(DataType::kFloat32, {kStepDepth, columns}));
    if (!graph.add("linear", LinearAttributes{}, {x, w}).ok()) continue;
    const Work work = work_of(graph, 0);
    Sample& sample = samples.emplace_back();
    sample.op = std::make_shared<LoneOperator>(lone_operator(graph, 0));
    sample.family = predict::SliceFamily::kLinear;
    sample.signature = signature(graph, analyse(graph), 0);
    sample.flops = work.flops;
    sample.bytes = work.bytes;
    sample.repeated = true;
  }
  return samples;
}

// Of each lane, what it takes when it has just run: without what strangers leave in caches, steps
// are seen best.
StatusOr<std::vector<SliceSample>> measure_steps(const std::shared_ptr<Platform>& platform) {
  TANDEM_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  TANDEM_ASSIGN_OR_RETURN(const Topology topology, detect_topology());
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  TANDEM_ASSIGN_OR_RETURN(
      MeasurementStore store,
      MeasurementStore::open(file_in(folder.path(), "steps.sqlite"),
                             {platform->fingerprint(), engine_fingerprint(), "{}"}));
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + kPatience));
  ProfilerOptions options;
  options.seconds = kMostStepSeconds;
  TANDEM_RETURN_IF_ERROR(profile(step_samples(), *crew, topology, store, options).status());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Measurement> rows, store.rows());
  std::vector<SliceSample> measured;
  for (const Measurement& row : rows) {
    TANDEM_ASSIGN_OR_RETURN(SliceCase slice, predict::parse_slice_case(row.slice_case));
    if (row.disturbed || !slice.repeated || slice.threads != slice.lane.max_threads) continue;
    measured.push_back({std::move(slice), row.median_us, row.low_us, row.high_us, 0, ""});
  }
  return measured;
}

// The lane's predictor without the shapes of `measured` and those hardly different.
StatusOr<SlicePredictor> fit_without(const TrainingData& data,
                                     const std::vector<SliceSample>& measured,
                                     const std::string& lane,
                                     const predict::BoostingOptions& boosting) {
  std::vector<SliceSample> all = measured;
  all.insert(all.end(), data.samples.begin(), data.samples.end());
  const std::vector<std::string> groups = predict::shape_groups(all);
  const std::set<std::string> held_out(
      groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(measured.size()));
  std::vector<const SliceSample*> samples;
  std::vector<std::string> own_groups;
  for (size_t i = measured.size(); i < all.size(); ++i) {
    if (all[i].slice.lane.name != lane || held_out.contains(groups[i])) continue;
    samples.push_back(&all[i]);
    own_groups.push_back(groups[i]);
  }
  return SlicePredictor::fit(samples, own_groups, {.boosting = boosting});
}

Chart step_chart(const std::string& lane, const std::vector<std::pair<double, double>>& measured,
                 const std::vector<std::pair<double, double>>& predicted) {
  return {.title = fmt::format("{}: linear, {} rows, sums of {}; data in caches", lane, kStepRows,
                               kStepDepth),
          .x_label = "output channels",
          .y_label = "microseconds",
          .series = {{"measured", measured}, {"predicted", predicted, true}}};
}

}  // namespace

Status plot_predictions(const std::string& folder, const TrainingData& data,
                        const predict::SliceEvaluation& evaluation) {
  TANDEM_RETURN_IF_ERROR(make_folder(folder));
  for (const std::string& lane : predict::lanes_of(data.samples)) {
    std::map<predict::SliceFamily, ChartSeries> families;
    for (size_t i = 0; i < data.samples.size(); ++i) {
      const SliceSample& sample = data.samples[i];
      const double predicted = evaluation.predictions.ours[i];
      if (sample.slice.lane.name != lane || sample.slice.load != OtherLoad::kNone) continue;
      if (std::isnan(predicted)) continue;
      families[sample.slice.family].points.emplace_back(sample.us, predicted);
    }
    Chart chart{.title = fmt::format("{}: slices of shapes held out", lane),
                .x_label = "measured, microseconds",
                .y_label = "predicted, microseconds",
                .logarithmic = true,
                .diagonal = true};
    for (auto& [family, series] : families) {
      series.name = to_string(family);
      chart.series.push_back(std::move(series));
    }
    TANDEM_RETURN_IF_ERROR(
        write_file(file_in(folder, fmt::format("predicted_{}.svg", lane)), to_svg(chart)));
  }
  return {};
}

Status plot_steps(const std::string& folder, const TrainingData& data,
                  const predict::BoostingOptions& boosting,
                  const std::shared_ptr<Platform>& platform) {
  TANDEM_RETURN_IF_ERROR(make_folder(folder));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SliceSample> measured, measure_steps(platform));
  for (const std::string& lane : predict::lanes_of(measured)) {
    TANDEM_ASSIGN_OR_RETURN(const SlicePredictor predictor,
                            fit_without(data, measured, lane, boosting));
    std::map<double, std::pair<double, const SliceCase*>> by_channels;
    for (const SliceSample& sample : measured) {
      if (sample.slice.lane.name != lane) continue;
      by_channels[static_cast<double>(sample.slice.channels)] = {sample.us, &sample.slice};
    }
    std::vector<const SliceCase*> asked;
    for (const auto& [channels, row] : by_channels) asked.push_back(row.second);
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> times, predictor.predict(asked));
    std::vector<std::pair<double, double>> points;
    std::vector<std::pair<double, double>> line;
    for (const auto& [channels, row] : by_channels) {
      points.emplace_back(channels, row.first);
      line.emplace_back(channels, times[line.size()]);
    }
    TANDEM_RETURN_IF_ERROR(write_file(file_in(folder, fmt::format("steps_{}.svg", lane)),
                                      to_svg(step_chart(lane, points, line))));
  }
  return {};
}

}  // namespace tandem::cli
