#include "profile/predicted_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "profile/describe_slice.h"
#include "profile/signature.h"
#include "support/log.h"

namespace tandem {
namespace {

using predict::SliceCase;
using predict::SlicePredictor;

constexpr double kImpossible = std::numeric_limits<double>::infinity();
// Axes of an operator that searches cut, in the order of partition_axes().
constexpr size_t kAxes = 2;
// Slowdowns are those of the nearest of so many parts of the axis.
constexpr int kSlowdownSteps = 8;

// All tensors at `nowhere`: lanes choose implementations by shapes and strides.
TensorBindings bindings_without_memory(const Graph& graph, const Placement& placement,
                                       std::byte* nowhere) {
  TensorBindings bindings;
  for (size_t id = 0; id < graph.tensors().size(); ++id) {
    const Tensor& tensor = graph.tensors()[id];
    TensorView view{tensor.type, tensor.dims, placement.tensors[id].strides, nullptr};
    if (tensor.kind != TensorKind::kConstant) view.data = nowhere;
    bindings.views.push_back(std::move(view));
  }
  return bindings;
}

int64_t size_of(const Slice& slice) { return slice.whole() ? 0 : slice.end - slice.begin; }

// Where an axis may be cut, by granules.
struct Granules {
  Granules(const Graph& graph, OperatorId op, const PartitionAxis& axis)
      : extent(graph.output_of(op).dims[axis.axis]),
        size(axis.granularity),
        count((extent + size - 1) / size) {}

  int64_t extent = 0;
  int64_t size = 1;
  int64_t count = 0;

  // The last one may be less than a granule: slices up to the end of the axis have other sizes
  // than those from its start.
  bool even() const { return extent % size == 0; }
};

// Slices of 1/steps and so on, from the start of the axis and up to its end.
void add_parts(const Graph& graph, OperatorId op, const PartitionAxis& axis, int steps,
               std::vector<Slice>* slices) {
  const Granules granules(graph, op, axis);
  int64_t before = 0;
  for (int step = 1; step < steps; ++step) {
    const int64_t end = granules.count * step / steps * granules.size;
    if (end <= before || end >= granules.extent) continue;
    slices->push_back({op, axis.axis, 0, end});
    if (!granules.even()) slices->push_back({op, axis.axis, end, granules.extent});
    before = end;
  }
}

// Of all slices of that size, the one at the start of the axis; at its end, if its last granule is
// not whole. So it does not depend on who asks first which one stands for all of them.
Slice usual_place(const Graph& graph, const PartitionAxis& axis, const Slice& slice) {
  const Granules granules(graph, slice.op, axis);
  const int64_t size = slice.end - slice.begin;
  if (size % granules.size != 0) {
    return {slice.op, slice.axis, granules.extent - size, granules.extent};
  }
  return {slice.op, slice.axis, 0, size};
}

// The slice, of those that add_parts() makes of the axis for kSlowdownSteps, of nearly its size.
Slice with_rounded_size(const Graph& graph, const PartitionAxis& axis, const Slice& slice) {
  const Granules granules(graph, slice.op, axis);
  const double share =
      static_cast<double>(slice.end - slice.begin) / static_cast<double>(granules.extent);
  const auto step = std::max<int64_t>(1, std::llround(share * kSlowdownSteps));
  const int64_t end = granules.count * step / kSlowdownSteps * granules.size;
  if (end >= granules.extent) return {.op = slice.op};
  return {slice.op, slice.axis, 0, std::max(end, granules.size)};
}

// Only the models that the graph needs are read.
std::map<std::string, predict::SharedText> texts_for(
    const Graph& graph, const Placement& placement,
    const std::map<std::string, predict::SharedText>& models) {
  std::map<std::string, predict::SharedText> texts;
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!placement.launched[op]) continue;
    const char* family = to_string(family_of(graph, static_cast<OperatorId>(op)));
    auto found = models.find(family);
    if (found == models.end()) found = models.find("all");
    if (found != models.end()) texts.insert(*found);
  }
  const auto slowdown = models.find("slowdown");
  if (slowdown != models.end()) texts.insert(*slowdown);
  return texts;
}

}  // namespace

struct PredictedCosts::LaneModel {
  std::string name;
  int max_threads = 1;
  predict::LaneFacts facts;
  double memory_gbps = 0;
  SlicePredictor predictor;
  std::unique_ptr<LaneProgram> program;
  std::unordered_map<Key, Answer> answers;
};

PredictedCosts::PredictedCosts(const Graph& graph, TransferCosts transfers)
    : graph_(graph),
      placement_(analyse(graph)),
      repeated_(is_alone(placement_)),
      transfers_(std::move(transfers)) {
  axes_.resize(graph.operators().size());
  std::map<std::string, int> known;
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!placement_.launched[op]) {
      question_of_.push_back(kNone);
      continue;
    }
    axes_[op] = partition_axes(graph, static_cast<OperatorId>(op));
    const std::string text = signature(graph, placement_, static_cast<OperatorId>(op));
    question_of_.push_back(known.try_emplace(text, static_cast<int>(op)).first->second);
  }
}

PredictedCosts::~PredictedCosts() = default;

StatusOr<std::unique_ptr<PredictedCosts>> PredictedCosts::create(
    const Graph& graph, const std::vector<Lane*>& lanes, const predict::PredictorFile& predictors,
    TransferCosts transfers) {
  std::unique_ptr<PredictedCosts> costs(new PredictedCosts(graph, std::move(transfers)));
  const TensorBindings bindings =
      bindings_without_memory(graph, costs->placement_, costs->nowhere_);
  for (Lane* lane : lanes) {
    TANDEM_RETURN_IF_ERROR(costs->load_lane(lane, predictors, bindings));
  }
  return costs;
}

Status PredictedCosts::load_lane(Lane* lane, const predict::PredictorFile& predictors,
                                 const TensorBindings& bindings) {
  const std::string& name = lane->info().name;
  const auto found = predictors.lanes.find(name);
  if (found == predictors.lanes.end()) {
    return not_found(fmt::format(
        "there are no predictors for lane {}: run `tandem profile` and `tandem train`", name));
  }
  auto model = std::make_unique<LaneModel>();
  model->name = name;
  model->max_threads = std::max(1, lane->info().max_threads);
  model->facts = found->second.facts;
  model->memory_gbps = found->second.memory_gbps;
  // That the file is of this platform and engine was checked when it was read.
  TANDEM_ASSIGN_OR_RETURN(
      model->predictor,
      SlicePredictor::parse(texts_for(graph_, placement_, found->second.models),
                            {predict::slice_feature_names(), predictors.made_for, false}));
  TANDEM_ASSIGN_OR_RETURN(model->program, lane->load(graph_, bindings));
  lanes_.push_back(std::move(model));
  return {};
}

// Operator 24 bits, threads 8, axis 4, size 28: more than graphs and machines have.
PredictedCosts::Key PredictedCosts::key_of(int lane, const Slice& slice, int threads) const {
  const LaneModel& model = *lanes_[lane];
  const int team = threads <= 0 ? model.max_threads : std::min(threads, model.max_threads);
  Key key = static_cast<Key>(question_of_[slice.op]);
  key = key << 8 | static_cast<Key>(team);
  key = key << 4 | static_cast<Key>(slice.axis + 1);
  return key << 28 | static_cast<Key>(size_of(slice));
}

Status PredictedCosts::prepare(const std::vector<LaneSlice>& slices) const {
  for (const LaneSlice& slice : slices) {
    if (question_of_[slice.slice.op] == kNone) continue;
    TANDEM_RETURN_IF_ERROR(ask(slice.lane, slice.slice, slice.threads).status());
  }
  return {};
}

StatusOr<const PredictedCosts::Answer*> PredictedCosts::ask(int lane, const Slice& slice,
                                                            int threads) const {
  LaneModel& model = *lanes_[lane];
  const auto [entry, fresh] = model.answers.try_emplace(key_of(lane, slice, threads));
  if (!fresh) return &entry->second;
  StatusOr<Answer> answer = predict(model, slice, threads);
  if (!answer.ok()) {
    model.answers.erase(entry);
    return std::move(answer).status().with_context("predicting lane " + model.name);
  }
  entry->second = *answer;
  return &entry->second;
}

StatusOr<PredictedCosts::Answer> PredictedCosts::predict(const LaneModel& model, const Slice& asked,
                                                         int threads) const {
  Slice slice = asked;
  bool slowdowns = threads <= 0 || threads >= model.max_threads;
  if (const PartitionAxis* axis = axis_of(asked)) {
    slice = usual_place(graph_, *axis, asked);
    slowdowns &= size_of(with_rounded_size(graph_, *axis, slice)) == size_of(slice);
  }
  const StatusOr<ImplementationInfo> implementation = model.program->implementation(slice, threads);
  if (!implementation.ok()) {
    if (implementation.status().code() != StatusCode::kUnsupported) return implementation.status();
    return Answer{.us = kImpossible};
  }
  SliceCase question = describe_slice(graph_, placement_, slice, model.facts, *implementation);
  question.repeated = repeated_;
  TANDEM_ASSIGN_OR_RETURN(const SlicePredictor::Prediction prediction,
                          model.predictor.predict_one(question, slowdowns));
  return Answer{prediction.us, question.bytes(), prediction.slowdown_memory,
                prediction.slowdown_compute};
}

// None where the slice is whole.
const PartitionAxis* PredictedCosts::axis_of(const Slice& slice) const {
  const std::vector<PartitionAxis>& axes = axes_[slice.op];
  const auto axis = std::find_if(axes.begin(), axes.end(), [&](const PartitionAxis& a) {
    return !slice.whole() && a.axis == slice.axis;
  });
  return axis == axes.end() ? nullptr : &*axis;
}

const PredictedCosts::Answer* PredictedCosts::find(int lane, const Slice& slice,
                                                   int threads) const {
  if (question_of_[slice.op] == kNone) return nullptr;  // never runs
  const StatusOr<const Answer*> answer = ask(lane, slice, threads);
  if (answer.ok()) return *answer;
  log().warn("no prediction for {}: {}", to_string(graph_, slice), answer.status().message());
  return nullptr;
}

double PredictedCosts::slice_us(int lane, const Slice& slice, int threads) const {
  if (question_of_[slice.op] == kNone) return 0;
  const Answer* answer = find(lane, slice, threads);
  return answer ? answer->us : kImpossible;
}

Contention PredictedCosts::contention(int lane, const Slice& slice) const {
  const Answer* answer = find(lane, slice, 0);
  if (!answer || answer->us == kImpossible) return {};
  Slice rounded = slice;
  if (const PartitionAxis* axis = axis_of(slice)) rounded = with_rounded_size(graph_, *axis, slice);
  const Answer* slowdown = find(lane, rounded, 0);
  if (!slowdown || slowdown->us == kImpossible) return {};
  Contention contention;
  if (const double most = lanes_[lane]->memory_gbps; most > 0) {
    contention.memory_share = std::clamp(answer->bytes / answer->us / 1e3 / most, 0.0, 1.0);
  }
  contention.slowdown_memory = slowdown->slowdown_memory;
  contention.slowdown_compute = slowdown->slowdown_compute;
  return contention;
}

size_t PredictedCosts::answered() const {
  size_t count = 0;
  for (const auto& lane : lanes_) count += lane->answers.size();
  return count;
}

std::vector<LaneSlice> usual_slices(const Graph& graph, int lanes, int steps) {
  const Placement placement = analyse(graph);
  std::vector<Slice> slices;
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    if (!placement.launched[i]) continue;
    const auto op = static_cast<OperatorId>(i);
    slices.push_back({.op = op});
    const std::vector<PartitionAxis> axes = partition_axes(graph, op);
    for (size_t a = 0; a < std::min(axes.size(), kAxes); ++a) {
      add_parts(graph, op, axes[a], steps, &slices);
    }
  }
  std::vector<LaneSlice> all;
  for (int lane = 0; lane < lanes; ++lane) {
    for (const Slice& slice : slices) all.push_back({lane, slice, 0});
  }
  return all;
}

}  // namespace tandem
