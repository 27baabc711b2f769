#include "cli/paper_layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/layer_times.h"
#include "cli/progress.h"
#include "cli/shape_sets.h"
#include "lane/sim/world.h"
#include "platform/simulated_platform.h"
#include "predict/metrics.h"
#include "profile/describe_slice.h"
#include "simulate/layer_split.h"
#include "zoo/random.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using predict::SliceCase;
using predict::SliceKnowledge;
using predict::SlicePredictor;
using predict::SliceSample;
using simulate::alone_us;
using simulate::best_us;
using simulate::divided_us;
using simulate::DivisibleLayer;
using simulate::Exchange;
using simulate::exchanges;
using simulate::kCpu;
using simulate::kGpu;
using simulate::LayerCut;

constexpr Family kFamilies[] = {Family::kLinear, Family::kConv};
constexpr int kLanes = 2;
constexpr int kRepetitions = 7;
constexpr SliceKnowledge kKnowledge[] = {SliceKnowledge::kKernels, SliceKnowledge::kArguments};
const char* name_of(SliceKnowledge knowledge) {
  return knowledge == SliceKnowledge::kKernels ? "predicted" : "predicted_without_kernels";
}

int64_t pick(zoo::Random& random, std::initializer_list<int64_t> values) {
  return values.begin()[random.next() % values.size()];
}

// Evenly on a logarithmic scale, rounded to a multiple.
int64_t draw_extent(zoo::Random& random, int64_t least, int64_t most, int64_t multiple) {
  constexpr double kRange = 1 << 20;
  const double at = static_cast<double>(random.next() % (1 << 20)) / kRange;
  const double value = static_cast<double>(least) *
                       std::pow(static_cast<double>(most) / static_cast<double>(least), at);
  const int64_t multiples = std::llround(value / static_cast<double>(multiple));
  return std::max(least, multiples * multiple);
}

// What is known of one platform while it is studied.
struct Subject {
  const PaperPlatform* platform = nullptr;
  std::shared_ptr<SimulatedPlatform> lanes;
  predict::LaneFacts facts[kLanes];
  std::vector<SliceSample> samples[kLanes];
  std::map<SliceKnowledge, std::vector<SlicePredictor>> predictors;  // by lane
  std::map<SliceKnowledge, std::vector<double>> predicted[kLanes];   // of the layers to divide
  std::vector<double> expected[kLanes];

  const sim::PlatformModel& model() const { return platform->model; }
  SliceCase describe(const DivisibleLayer& layer, int lane, const Slice& slice, int threads) const {
    const sim::Workload work = sim::workload_of(layer.graph(), slice);
    return predict_case(layer, lane, slice, sim::slice_time(model(), lane, work, threads));
  }

 private:
  SliceCase predict_case(const DivisibleLayer& layer, int lane, const Slice& slice,
                         const sim::SliceTime& time) const {
    return describe_slice(layer.graph(), layer.placement(), slice, facts[lane],
                          time.implementation);
  }
};

Subject subject_of(const PaperPlatform& platform, uint64_t seed) {
  Subject subject;
  subject.platform = &platform;
  subject.lanes = make_simulated_platform(platform.model, seed);
  for (int lane = 0; lane < kLanes; ++lane) {
    subject.facts[lane] = lane_facts(subject.lanes->lanes()[lane]->info(), Topology{});
  }
  return subject;
}

// Medians of a few runs on the lane's clock, with data not in caches.
void measure(Subject& subject, const DivisibleLayer& layer, int lane, const Slice& slice,
             int threads) {
  const sim::Workload work = sim::workload_of(layer.graph(), slice);
  std::vector<double> runs;
  for (int i = 0; i < kRepetitions; ++i) {
    runs.push_back(subject.lanes->world().run(lane, work, threads, nullptr));
  }
  std::sort(runs.begin(), runs.end());
  SliceSample sample;
  sample.slice = subject.describe(layer, lane, slice, threads);
  sample.us = runs[kRepetitions / 2];
  sample.low_us = runs[kRepetitions / 4];
  sample.high_us = runs[kRepetitions - 1 - kRepetitions / 4];
  subject.samples[lane].push_back(std::move(sample));
}

// The whole layer and two parts of it on each lane, with drawn numbers of threads.
void take_samples(Subject& subject, const DivisibleLayer& layer, int max_threads,
                  zoo::Random& random) {
  const auto threads = [&] { return static_cast<int>(random.next() % max_threads) + 1; };
  measure(subject, layer, kCpu, layer.whole(), threads());
  measure(subject, layer, kGpu, layer.whole(), 0);
  for (int i = 0; i < 2 && !layer.cuts().empty(); ++i) {
    const LayerCut& cut = layer.cuts()[random.next() % layer.cuts().size()];
    measure(subject, layer, kCpu, cut.cpu, threads());
    measure(subject, layer, kGpu, cut.gpu, 0);
  }
}

Status train(Subject& subject) {
  for (auto& samples : subject.samples) {
    std::vector<const SliceSample*> rows;
    for (const SliceSample& sample : samples) rows.push_back(&sample);
    const std::vector<std::string> groups = predict::shape_groups(samples);
    for (const SliceKnowledge knowledge : kKnowledge) {
      predict::SlicePredictorOptions options;
      options.knowledge = knowledge;
      TANDEM_ASSIGN_OR_RETURN(SlicePredictor fitted, SlicePredictor::fit(rows, groups, options));
      subject.predictors[knowledge].push_back(std::move(fitted));
    }
  }
  return {};
}

// Predictions of the whole layer (first) and of each cut's part.
using Predictions = std::vector<double>;

StatusOr<Predictions> predict_layer(Subject& subject, const DivisibleLayer& layer, int lane,
                                    int threads, SliceKnowledge knowledge) {
  std::vector<SliceCase> cases = {subject.describe(layer, lane, layer.whole(), threads)};
  for (const LayerCut& cut : layer.cuts()) {
    cases.push_back(subject.describe(layer, lane, lane == kCpu ? cut.cpu : cut.gpu, threads));
  }
  std::vector<const SliceCase*> pointers;
  for (const SliceCase& slice : cases) pointers.push_back(&slice);
  TANDEM_ASSIGN_OR_RETURN(Predictions times, subject.predictors[knowledge][lane].predict(pointers));
  auto& predicted = subject.predicted[lane][knowledge];
  predicted.insert(predicted.end(), times.begin(), times.end());
  return times;
}

// What the predictions choose, and what it takes then.
Choice choose(const sim::PlatformModel& model, const DivisibleLayer& layer, int threads,
              const Exchange& exchange, const Predictions& cpu, const Predictions& gpu) {
  const int64_t whole_bytes =
      4 * element_count(layer.graph().tensor(layer.graph().op(layer.whole().op).output).dims);
  double least = std::min(cpu[0], gpu[0]);
  size_t best = 0;  // 0: not divided
  for (size_t i = 0; i < layer.cuts().size(); ++i) {
    const Slice& part = layer.cuts()[i].gpu;
    const double share = static_cast<double>(part.end - part.begin) / static_cast<double>(part.end);
    const double us = std::max(cpu[i + 1], gpu[i + 1]) + exchange.us +
                      share * static_cast<double>(whole_bytes) * exchange.us_per_byte;
    if (us < least) {
      least = us;
      best = i + 1;
    }
  }
  if (best > 0) {
    return {divided_us(model, layer, layer.cuts()[best - 1], threads, exchange), true};
  }
  return {alone_us(model, layer, cpu[0] <= gpu[0] ? kCpu : kGpu, threads), false};
}

StatusOr<LayerTimes> divide(Subject& subject, const DivisibleLayer& layer, int threads) {
  const sim::PlatformModel& model = subject.model();
  LayerTimes times;
  times.cpu_us = alone_us(model, layer, kCpu, threads);
  times.gpu_us = alone_us(model, layer, kGpu, 0);
  const std::vector<Exchange> ways = exchanges(model);
  for (const Exchange& exchange : ways) {
    const double us = best_us(model, layer, threads, exchange);
    times.choices[exchange.name]["exhaustive"] = {us, us < times.better_lane_us()};
  }
  for (const SliceKnowledge knowledge : kKnowledge) {
    TANDEM_ASSIGN_OR_RETURN(const Predictions cpu,
                            predict_layer(subject, layer, kCpu, threads, knowledge));
    TANDEM_ASSIGN_OR_RETURN(const Predictions gpu,
                            predict_layer(subject, layer, kGpu, 0, knowledge));
    for (const Exchange& exchange : ways) {
      times.choices[exchange.name][name_of(knowledge)] =
          choose(model, layer, threads, exchange, cpu, gpu);
    }
  }
  for (const int lane : {kCpu, kGpu}) {
    const auto expect = [&](const Slice& slice) {
      const sim::Workload work = sim::workload_of(layer.graph(), slice);
      subject.expected[lane].push_back(
          sim::slice_time(model, lane, work, lane == kCpu ? threads : 0).us);
    };
    expect(layer.whole());
    for (const LayerCut& cut : layer.cuts()) expect(lane == kCpu ? cut.cpu : cut.gpu);
  }
  return times;
}

StatusOr<std::vector<CountedShape>> set_of(Family family, int most) {
  const std::string file = std::string("set_") + to_string(family) + ".csv";
  const auto found = shape_sets().find(file);
  if (found == shape_sets().end()) return not_found("there is no bench/shapes/" + file);
  TANDEM_ASSIGN_OR_RETURN(std::vector<CountedShape> shapes,
                          parse_csv(std::string(found->second), file));
  std::erase_if(shapes, [&](const CountedShape& shape) { return shape.shape.family != family; });
  if (most > 0 && static_cast<size_t>(most) < shapes.size()) shapes.resize(most);
  return shapes;
}

Status take_all_samples(std::vector<Subject>& subjects, const LayerStudyOptions& options,
                        const std::vector<CountedShape>& held_out) {
  Progress progress("drawn layers", 2 * options.samples);
  zoo::Random random(options.seed);
  for (const Family family : kFamilies) {
    for (int i = 0; i < options.samples; ++i) {
      const OperatorShape shape = draw_layer(family, random.next());
      progress.step();
      const auto is_this = [&](const CountedShape& other) { return other.shape == shape; };
      if (std::any_of(held_out.begin(), held_out.end(), is_this)) continue;
      TANDEM_ASSIGN_OR_RETURN(const Graph graph, graph_of(shape));
      const DivisibleLayer layer(graph);
      for (Subject& subject : subjects) take_samples(subject, layer, options.max_threads, random);
    }
  }
  return {};
}

// By subject and threads (from 1).
using Table = std::vector<std::vector<std::vector<LayerTimes>>>;
// Exhaustive search where a lane computes in another precision: [platform][threads - 1].
struct OtherPrecision {
  const char* name;
  void (*set)(sim::PlatformModel&);
};
constexpr OtherPrecision kOtherPrecisions[] = {
    {"gpu_f32", [](sim::PlatformModel& model) { model.runtime.gpu_f16 = false; }},
    {"cpu_f16", [](sim::PlatformModel& model) { model.runtime.cpu_f16 = true; }}};

void add_other_precisions(const std::vector<Subject>& subjects, const DivisibleLayer& layer,
                          int max_threads, std::map<std::string, Table>& tables) {
  for (const OtherPrecision& precision : kOtherPrecisions) {
    Table& table = tables[precision.name];
    table.resize(subjects.size(), std::vector<std::vector<LayerTimes>>(max_threads));
    for (size_t s = 0; s < subjects.size(); ++s) {
      sim::PlatformModel model = subjects[s].model();
      precision.set(model);
      const Exchange exchange = exchanges(model).front();
      for (int threads = 1; threads <= max_threads; ++threads) {
        LayerTimes times;
        times.cpu_us = alone_us(model, layer, kCpu, threads);
        times.gpu_us = alone_us(model, layer, kGpu, 0);
        const double us = best_us(model, layer, threads, exchange);
        times.choices[exchange.name]["exhaustive"] = {us, us < times.better_lane_us()};
        table[s][threads - 1].push_back(times);
      }
    }
  }
}

json rows_of(const std::vector<Subject>& subjects, Family family, const Table& table) {
  json rows = json::array();
  for (size_t s = 0; s < subjects.size(); ++s) {
    for (size_t t = 0; t < table[s].size(); ++t) {
      json row = summary_of(table[s][t]);
      row["platform"] = subjects[s].model().name;
      row["cores"] = subjects[s].platform->cores;
      row["threads"] = t + 1;
      row["family"] = to_string(family);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void append(json& all, const json& rows) { all.insert(all.end(), rows.begin(), rows.end()); }

// Errors of the predictions of whole layers and all their parts.
json errors_of(const std::vector<Subject>& subjects, Family family, std::vector<size_t>* seen) {
  json rows = json::array();
  seen->resize(subjects.size() * kLanes, 0);
  for (size_t s = 0; s < subjects.size(); ++s) {
    for (const int lane : {kCpu, kGpu}) {
      size_t& from = (*seen)[s * kLanes + lane];
      json row = {{"platform", subjects[s].model().name},
                  {"lane", lane == kCpu ? "cpu" : "gpu"},
                  {"family", to_string(family)},
                  {"trained_on", subjects[s].samples[lane].size()}};
      const std::span<const double> expected(subjects[s].expected[lane]);
      for (const SliceKnowledge knowledge : kKnowledge) {
        const std::span<const double> predicted(subjects[s].predicted[lane].at(knowledge));
        const predict::ErrorSummary errors =
            predict::summarize_errors(predicted.subspan(from), expected.subspan(from));
        row[name_of(knowledge)] = {
            {"mape", errors.mape}, {"p90", errors.p90}, {"within_10", errors.within_10}};
        row["slices"] = errors.count;
      }
      from = expected.size();
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

OperatorShape draw_layer(Family family, uint64_t seed) {
  constexpr int64_t kMostWeights = 1 << 22;
  zoo::Random random(seed);
  OperatorShape shape;
  shape.family = family;
  do {
    if (family == Family::kLinear) {
      shape.n = draw_extent(random, 1, 512, 1);
      shape.c = draw_extent(random, 48, 8192, 16);
      shape.m = draw_extent(random, 48, 8192, 8);
    } else {
      const int64_t kernel = pick(random, {1, 1, 3, 3, 3, 5, 7});
      const int64_t stride = pick(random, {1, 1, 1, 2});
      shape.h = shape.w = draw_extent(random, 7, 160, 1);
      shape.c = random.next() % 16 == 0 ? 3 : draw_extent(random, 16, 1536, 8);
      shape.m = draw_extent(random, 16, 1536, 8);
      shape.kernel = {kernel, kernel};
      shape.stride = {stride, stride};
      shape.pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    }
  } while (shape.c * shape.m * shape.kernel[0] * shape.kernel[1] > kMostWeights);
  return shape;
}

StatusOr<json> study_layers(const std::vector<PaperPlatform>& platforms,
                            const LayerStudyOptions& options) {
  std::vector<Subject> subjects;
  for (const PaperPlatform& platform : platforms) {
    subjects.push_back(subject_of(platform, options.seed));
  }
  std::map<Family, std::vector<CountedShape>> sets;
  std::vector<CountedShape> held_out;
  for (const Family family : kFamilies) {
    TANDEM_ASSIGN_OR_RETURN(sets[family], set_of(family, options.layers));
    held_out.insert(held_out.end(), sets[family].begin(), sets[family].end());
  }
  TANDEM_RETURN_IF_ERROR(take_all_samples(subjects, options, held_out));
  {
    Progress progress("training predictors", static_cast<int>(subjects.size()));
    for (Subject& subject : subjects) {
      TANDEM_RETURN_IF_ERROR(train(subject));
      progress.step();
    }
  }
  json report = {{"layers", json::array()}, {"predictor_errors", json::array()}};
  std::vector<size_t> seen;
  Progress progress("dividing layers", static_cast<int>(held_out.size()));
  for (const Family family : kFamilies) {
    Table table(subjects.size(), std::vector<std::vector<LayerTimes>>(options.max_threads));
    std::map<std::string, Table> others;
    for (const CountedShape& shape : sets[family]) {
      TANDEM_ASSIGN_OR_RETURN(const Graph graph, graph_of(shape.shape));
      const DivisibleLayer layer(graph);
      for (size_t s = 0; s < subjects.size(); ++s) {
        for (int threads = 1; threads <= options.max_threads; ++threads) {
          TANDEM_ASSIGN_OR_RETURN(LayerTimes times, divide(subjects[s], layer, threads));
          table[s][threads - 1].push_back(std::move(times));
        }
      }
      add_other_precisions(subjects, layer, options.max_threads, others);
      progress.step();
    }
    append(report["layers"], rows_of(subjects, family, table));
    append(report["predictor_errors"], errors_of(subjects, family, &seen));
    for (const auto& [name, other] : others) {
      json& rows = report["other_precisions"][name];
      if (rows.is_null()) rows = json::array();
      append(rows, rows_of(subjects, family, other));
    }
  }
  return report;
}

}  // namespace tandem::cli
