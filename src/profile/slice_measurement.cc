#include "profile/slice_measurement.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "profile/on_lane.h"
#include "support/statistics.h"

namespace tandem {
namespace {

// Cuts of faster operators cost more than they could gain, wherever lanes have to meet.
constexpr double kWorthCuttingUs = 20;
// Axes tried, in the order of partition_axes().
constexpr size_t kAxes = 2;
// For errors.
constexpr char kPurpose[] = "calibrating";

std::optional<Slice> slice_at(const Graph& graph, OperatorId op, const MeasurementStage& stage,
                              double fraction, bool at_end) {
  if (fraction == 1) return Slice{.op = op};
  const std::vector<PartitionAxis> axes = partition_axes(graph, op);
  if (stage.axis >= std::min(axes.size(), kAxes)) return std::nullopt;
  const auto [axis, granularity] = axes[stage.axis];
  const int64_t extent = graph.output_of(op).dims[axis];
  const auto units = static_cast<double>(extent) / static_cast<double>(granularity);
  // The end of an axis may be less than a granule; cuts fall on multiples from the start.
  const int64_t cut = std::llround(units * (at_end ? 1 - fraction : fraction)) * granularity;
  if (cut <= 0 || cut >= extent) return std::nullopt;
  return at_end ? Slice{op, axis, cut, extent} : Slice{op, axis, 0, cut};
}

SliceSize size_of(const Slice& slice) {
  return slice.whole() ? SliceSize{} : SliceSize{slice.axis, slice.end - slice.begin};
}

// Of at least one. Whatever disturbs a measurement makes it longer, never shorter.
double undisturbed(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.25);
}

}  // namespace

const std::vector<MeasurementStage>& measurement_stages() {
  static const std::vector<MeasurementStage> all = {
      {0, {1}}, {0, {0.5}}, {1, {0.5}}, {0, {0.25, 0.75}}, {1, {0.25, 0.75}}};
  return all;
}

double nominal_us(const Work& work) { return std::max(work.flops / 50e3, work.bytes / 10e3); }

SliceMeasurement::SliceMeasurement(const Graph& graph, LaneCrew& crew,
                                   const std::vector<std::string>& signatures, Memory memory,
                                   bool repeated, double seconds, CalibrationData* data)
    : graph_(graph),
      crew_(crew),
      signatures_(signatures),
      memory_(std::move(memory)),
      repeated_(repeated),
      data_(data),
      deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds))) {
  std::set<std::string> seen;
  for (size_t op = 0; op < signatures.size(); ++op) {
    if (!signatures[op].empty() && seen.insert(signatures[op]).second) {
      representatives_.push_back(static_cast<OperatorId>(op));
    }
  }
}

SliceMeasurement::SlicesByLane SliceMeasurement::wanted(const MeasurementStage& stage) const {
  SlicesByLane result(crew_.lanes().size());
  for (OperatorId op : representatives_) {
    if (stage.fractions.front() != 1 && fastest_us(op) < kWorthCuttingUs) continue;
    for (size_t lane = 0; lane < result.size(); ++lane) {
      for (double fraction : stage.fractions) {
        // Schedules give lanes their shares in the order of lanes.
        const std::optional<Slice> slice = slice_at(graph_, op, stage, fraction, lane > 0);
        if (slice && !is_known(static_cast<int>(lane), *slice)) result[lane].push_back(*slice);
      }
    }
  }
  // If time runs out, then on the least.
  for (std::vector<Slice>& slices : result) {
    std::stable_sort(slices.begin(), slices.end(), [this](const Slice& a, const Slice& b) {
      return nominal_us(work_of(graph_, a)) > nominal_us(work_of(graph_, b));
    });
  }
  return result;
}

SliceMeasurement::SlicesByLane SliceMeasurement::unknown(SlicesByLane slices) const {
  for (size_t lane = 0; lane < slices.size(); ++lane) {
    std::erase_if(slices[lane],
                  [&](const Slice& slice) { return is_known(static_cast<int>(lane), slice); });
  }
  return slices;
}

std::vector<OperatorId> SliceMeasurement::worth_cutting() const {
  std::vector<OperatorId> operators;
  for (OperatorId op : representatives_) {
    if (fastest_us(op) >= kWorthCuttingUs) operators.push_back(op);
  }
  return operators;
}

Status SliceMeasurement::measure(const SlicesByLane& slices, size_t rounds_left) {
  if (!bindings_) {
    TANDEM_ASSIGN_OR_RETURN(bindings_, memory_());
  }
  Clock::time_point now = Clock::now();
  if (now >= deadline_) return {};
  // Preparing slices must leave time for running them. Whole operators are prepared without regard
  // to time: what a lane does with them has to be known, and a driver's compiler, which may take
  // longer than all measurements, has to be waited for anyway, once.
  const bool first = rounds_left == measurement_stages().size() + kMeasurementRefinements;
  const Clock::time_point bind_until =
      first ? Clock::time_point::max() : now + (deadline_ - now) / 2;
  TANDEM_ASSIGN_OR_RETURN(std::vector<Bound> bound, bind_all(slices, bind_until));
  if (first) {
    deadline_ += Clock::now() - now;
    now = Clock::now();
  }
  const auto rounds = static_cast<Clock::rep>(std::max<size_t>(rounds_left, 1));
  TANDEM_RETURN_IF_ERROR(time_in_turns(now + (deadline_ - now) / rounds, &bound));
  for (size_t lane = 0; lane < bound.size(); ++lane) {
    keep(static_cast<int>(lane), std::move(bound[lane]));
  }
  return {};
}

StatusOr<std::vector<SliceMeasurement::Bound>> SliceMeasurement::bind_all(
    const SlicesByLane& slices, Clock::time_point until) {
  std::vector<Bound> bound(slices.size());
  for (size_t lane = 0; lane < slices.size(); ++lane) {
    const auto index = static_cast<int>(lane);
    TANDEM_RETURN_IF_ERROR(on_lane(crew_, index, kPurpose,
                                   [&] { return bind(index, slices[lane], until, &bound[lane]); }));
  }
  return bound;
}

// Lanes take turns, so that what disturbs the machine for a while disturbs both alike. The first
// turn warms up. On a busy machine, turns may tell nothing: then there are more.
Status SliceMeasurement::time_in_turns(Clock::time_point until, std::vector<Bound>* bound) {
  constexpr int kLeastTurns = 3;
  constexpr int kTurns = 8;
  constexpr int kMostTurns = 40;
  const auto is_told = [](const Bound& lane) {
    return std::none_of(lane.samples.begin(), lane.samples.end(),
                        [](const std::vector<double>& samples) { return samples.empty(); });
  };
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if (turn >= kLeastTurns && Clock::now() >= until) break;
    if (turn >= kTurns && std::all_of(bound->begin(), bound->end(), is_told)) break;
    for (size_t lane = 0; lane < bound->size(); ++lane) {
      Bound& slices = (*bound)[lane];
      if (slices.tasks.empty()) continue;
      TANDEM_RETURN_IF_ERROR(
          on_lane(crew_, static_cast<int>(lane), kPurpose, [&] { return time(turn, &slices); }));
    }
  }
  return {};
}

void SliceMeasurement::keep(int lane, Bound bound) {
  for (size_t i = 0; i < bound.tasks.size(); ++i) {
    if (bound.samples[i].empty()) continue;
    const Slice& slice = bound.slices[i];
    times_of(lane, slice.op)[size_of(slice)] = undisturbed(std::move(bound.samples[i]));
    ++measured_;
  }
  if (bound.timer && bound.timer->enqueue_us() > 0) {
    data_->enqueueing[crew_.info(lane).name] = bound.timer->enqueue_us();
  }
}

std::map<SliceSize, double>& SliceMeasurement::times_of(int lane, OperatorId op) {
  return data_->slices[signatures_[op]][crew_.info(lane).name];
}

bool SliceMeasurement::is_known(int lane, const Slice& slice) const {
  const auto operators = data_->slices.find(signatures_[slice.op]);
  if (operators == data_->slices.end()) return false;
  const auto lanes = operators->second.find(crew_.info(lane).name);
  return lanes != operators->second.end() && lanes->second.contains(size_of(slice));
}

// Whole, on the lane where it is fastest. Zero if it was not measured anywhere.
double SliceMeasurement::fastest_us(OperatorId op) const {
  double fastest = 0;
  const auto operators = data_->slices.find(signatures_[op]);
  if (operators == data_->slices.end()) return 0;
  for (const auto& [lane, times] : operators->second) {
    const auto whole = times.find(SliceSize{});
    if (whole == times.end()) continue;
    fastest = fastest == 0 ? whole->second : std::min(fastest, whole->second);
  }
  return fastest;
}

StatusOr<SliceMeasurement::LaneTools*> SliceMeasurement::tools_of(int lane) {
  if (tools_.empty()) tools_.resize(crew_.lanes().size());
  LaneTools& tools = tools_[lane];
  if (!tools.program) {
    TANDEM_ASSIGN_OR_RETURN(tools.program, crew_.lanes()[lane]->load(graph_, *bindings_));
    TANDEM_ASSIGN_OR_RETURN(tools.timer, SliceTimer::create(crew_, lane));
  }
  return &tools;
}

Status SliceMeasurement::bind(int lane, const std::vector<Slice>& slices, Clock::time_point until,
                              Bound* bound) {
  if (slices.empty()) return {};
  TANDEM_ASSIGN_OR_RETURN(LaneTools * tools, tools_of(lane));
  bound->timer = tools->timer.get();
  for (const Slice& slice : slices) {
    if (Clock::now() >= until) break;
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Task> task, tools->program->bind(slice, 0));
    bound->slices.push_back(slice);
    bound->tasks.push_back(std::move(task));
  }
  bound->samples.resize(bound->tasks.size());
  return {};
}

Status SliceMeasurement::time(int turn, Bound* bound) const {
  std::vector<Task*> tasks;
  const size_t times_each = repeated_ && !bound->timer->repeats_tasks() ? 2 : 1;
  for (const auto& task : bound->tasks) tasks.insert(tasks.end(), times_each, task.get());
  TANDEM_ASSIGN_OR_RETURN(const auto times, bound->timer->time(tasks));
  for (size_t i = 0; turn > 0 && i < bound->tasks.size(); ++i) {
    const std::optional<double>& last = times[(i + 1) * times_each - 1];
    if (last) bound->samples[i].push_back(*last);
  }
  return {};
}

}  // namespace tandem
