#include "profile/training.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <set>

#include "profile/describe_slice.h"
#include "support/statistics.h"

namespace tandem {
namespace {

using predict::SliceCase;
using predict::SlicePredictor;
using predict::SliceSample;

// How a slice runs in a network: whole, with all threads, alone, after other operators.
bool is_usual(const SliceCase& slice) {
  return slice.axis == predict::CutAxis::kWhole && slice.load == predict::OtherLoad::kNone &&
         !slice.repeated && (slice.lane.kind != "cpu" || slice.threads == slice.lane.max_threads);
}

// Far above what cores do, next to the probes beside the measurement: arithmetic (which is counted
// at the edges of images, too, where there is none to do) and memory (caches are that much faster).
constexpr double kMostOverGflops = 4;
constexpr double kMostOverGbps = 25;

// Timers of queues can miss when a slice began; also that of the time without load.
bool is_implausible(const Measurement& row, const SliceCase& slice) {
  if (slice.lane.cores == 0) return false;  // the probes are of the host's cores
  const double us = row.alone_us > 0 ? std::min(row.alone_us, row.median_us) : row.median_us;
  const double units = static_cast<double>(slice.lane.cores);
  const double gflops = slice.flops / us / 1e3;
  const double gbps = slice.bytes() / us / 1e3;
  return (row.probe_gflops > 0 && gflops > kMostOverGflops * units * row.probe_gflops) ||
         (row.probe_gbps > 0 && gbps > kMostOverGbps * units * row.probe_gbps);
}

// Longer than a batch of measurements takes: a pause.
constexpr double kLongestBatch = 20;

// Rows of one batch have one time of day; the first batch of a run takes what others take, as the
// median.
double measuring_seconds(const std::set<double>& times) {
  std::vector<double> gaps;
  double previous = 0;
  for (const double time : times) {
    if (time - previous < kLongestBatch) gaps.push_back(time - previous);
    previous = time;
  }
  const double usual = gaps.empty() ? 0 : summarize(gaps).median;
  const double known = std::accumulate(gaps.begin(), gaps.end(), 0.0);
  return known + usual * static_cast<double>(times.size() - gaps.size());
}

// When each row was there, if measuring took `seconds` in all: its own runs, and an equal share of
// what all took beside. Times of day do not tell: rows that were measured again have the last
// one's.
std::vector<double> seconds_after_rows(const std::vector<double>& runs, double seconds) {
  const double all = std::accumulate(runs.begin(), runs.end(), 0.0);
  const double beside = std::max(0.0, seconds - all) / static_cast<double>(runs.size());
  const double scale = all > seconds ? seconds / all : 1;
  std::vector<double> after;
  double elapsed = 0;
  for (const double own : runs) {
    elapsed += own * scale + beside;
    after.push_back(elapsed);
  }
  return after;
}

}  // namespace

bool TrainingData::has_network(size_t sample, const std::string& network) const {
  return fmt::format(",{},", samples[sample].networks).find("," + network + ",") !=
         std::string::npos;
}

std::vector<std::string> TrainingData::networks() const {
  std::set<std::string> names;
  for (const SliceSample& sample : samples) {
    size_t begin = 0;
    while (begin < sample.networks.size()) {
      const size_t end = std::min(sample.networks.find(',', begin), sample.networks.size());
      names.insert(sample.networks.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return {names.begin(), names.end()};
}

StatusOr<TrainingData> read_training_data(const MeasurementStore& store) {
  TrainingData data;
  data.made_for = {store.identity().platform, store.identity().engine};
  std::vector<double> gbps;
  std::vector<double> runs;  // seconds, of every row
  std::vector<size_t> kept;  // which of them are samples
  std::set<double> times;
  Status status;
  TANDEM_RETURN_IF_ERROR(store.for_each([&](const Measurement& row) {
    if (!status.ok()) return;
    times.insert(row.unix_time);
    runs.push_back(1e-6 * row.samples * row.median_us);
    if (row.disturbed || !(row.median_us > 0)) {
      ++data.disturbed;
      return;
    }
    StatusOr<SliceCase> slice = predict::parse_slice_case(row.slice_case);
    if (!slice.ok()) {
      status = slice.status().with_context(row.key);
      return;
    }
    if (is_implausible(row, *slice)) {
      ++data.implausible;
      return;
    }
    data.samples.push_back(
        {std::move(*slice), row.median_us, row.low_us, row.high_us, row.alone_us, row.networks});
    kept.push_back(runs.size() - 1);
    if (row.probe_gbps > 0) gbps.push_back(row.probe_gbps);
  }));
  TANDEM_RETURN_IF_ERROR(status.with_context(store.path()));
  if (data.samples.empty()) {
    return failed_precondition(
        fmt::format("{} has no measurements of this engine: run `tandem profile`", store.path()));
  }
  data.memory_gbps = summarize(gbps).median;
  data.seconds = measuring_seconds(times);
  const std::vector<double> after = seconds_after_rows(runs, data.seconds);
  for (const size_t row : kept) data.after_seconds.push_back(after[row]);
  return data;
}

StatusOr<predict::PredictorFile> train_predictors(const TrainingData& data,
                                                  const std::vector<std::string>& groups,
                                                  const std::vector<bool>& use,
                                                  const predict::BoostingOptions& boosting,
                                                  const std::function<void()>& on_step) {
  predict::PredictorFile file;
  file.made_for = data.made_for;
  file.trained = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::time(nullptr)));
  for (const std::string& lane : predict::lanes_of(data.samples)) {
    std::vector<const SliceSample*> samples;
    std::vector<std::string> own_groups;
    for (size_t i = 0; i < data.samples.size(); ++i) {
      if (!use[i] || data.samples[i].slice.lane.name != lane) continue;
      samples.push_back(&data.samples[i]);
      own_groups.push_back(groups[i]);
    }
    StatusOr<SlicePredictor> predictor =
        SlicePredictor::fit(samples, own_groups, {.boosting = boosting});
    if (!predictor.ok()) return predictor.status().with_context("lane " + lane);
    predict::LanePredictorTexts& texts = file.lanes[lane];
    if (!samples.empty()) texts.facts = samples.front()->slice.lane;
    texts.models = predictor->to_texts(file.made_for);
    texts.memory_gbps = data.memory_gbps;
    on_step();
  }
  return file;
}

std::map<std::string, int> operator_counts(const Graph& graph) {
  const Placement placement = analyse(graph);
  std::map<std::string, int> counts;
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!placement.launched[op]) continue;
    ++counts[shape_key(describe_slice(graph, placement, {static_cast<OperatorId>(op)}))];
  }
  return counts;
}

std::vector<bool> without_network(const TrainingData& data, const std::vector<std::string>& groups,
                                  const std::string& network) {
  std::set<std::string> held_out;
  for (size_t i = 0; i < data.samples.size(); ++i) {
    if (data.has_network(i, network)) held_out.insert(groups[i]);
  }
  std::vector<bool> use;
  for (const std::string& group : groups) use.push_back(!held_out.contains(group));
  return use;
}

StatusOr<std::vector<NetworkErrors>> network_errors(const TrainingData& data,
                                                    const std::string& network,
                                                    const std::map<std::string, int>& counts,
                                                    const predict::PredictorFile& predictors) {
  std::vector<NetworkErrors> result;
  for (const auto& [lane, texts] : predictors.lanes) {
    TANDEM_ASSIGN_OR_RETURN(const SlicePredictor predictor,
                            SlicePredictor::parse(texts.models, {predict::slice_feature_names(),
                                                                 predictors.made_for, false}));
    NetworkErrors errors{.network = network, .lane = lane};
    for (const auto& [shape, count] : counts) errors.operators += static_cast<size_t>(count);
    std::vector<const SliceCase*> slices;
    std::vector<int> times_run;
    std::vector<double> measured;
    std::set<std::string> seen;
    for (size_t i = 0; i < data.samples.size(); ++i) {
      const SliceSample& sample = data.samples[i];
      if (sample.slice.lane.name != lane || !is_usual(sample.slice)) continue;
      const auto found = counts.find(shape_key(sample.slice));
      if (found == counts.end() || !seen.insert(found->first).second) continue;
      slices.push_back(&sample.slice);
      times_run.push_back(found->second);
      measured.push_back(sample.us);
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> predicted, predictor.predict(slices));
    std::vector<double> all_predicted;
    std::vector<double> all_measured;
    for (size_t i = 0; i < slices.size(); ++i) {
      for (int n = 0; n < times_run[i]; ++n) {
        all_predicted.push_back(predicted[i]);
        all_measured.push_back(measured[i]);
        errors.predicted_us += predicted[i];
        errors.measured_us += measured[i];
      }
    }
    errors.measured = all_measured.size();
    errors.errors = predict::summarize_errors(all_predicted, all_measured);
    result.push_back(std::move(errors));
  }
  return result;
}

}  // namespace tandem
