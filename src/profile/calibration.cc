#include "profile/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "profile/lane_contention.h"
#include "profile/lane_traits.h"
#include "profile/signature.h"
#include "profile/slice_timer.h"
#include "schedule/choose_split.h"
#include "support/log.h"
#include "support/statistics.h"

namespace tandem {
namespace {

// Cuts of faster operators cost more than they could gain, wherever lanes have to meet.
constexpr double kWorthCuttingUs = 20;
// Axes tried, in the order of partition_axes().
constexpr size_t kAxes = 2;
// What is added to a time along an axis that was not measured, so that measured ones are preferred.
constexpr double kUnmeasuredPenalty = 1.1;
// How often the best division by what is known is measured, unless it is known before.
constexpr size_t kRefinements = 6;

// Before the signatures of operators that are timed behind themselves.
constexpr char kRepeated[] = "repeated ";

// What of every operator is measured in one go. In this order, the first ones tell most.
struct Stage {
  size_t axis = 0;  // into partition_axes()
  std::vector<double> fractions;
};
const std::vector<Stage>& stages() {
  static const std::vector<Stage> all = {
      {0, {1}}, {0, {0.5}}, {1, {0.5}}, {0, {0.25, 0.75}}, {1, {0.25, 0.75}}};
  return all;
}

std::optional<Slice> slice_at(const Graph& graph, OperatorId op, const Stage& stage,
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

// A time to compare operators by where none is measured: microseconds on a machine of 50 GFLOPS and
// 10 GB/s.
double nominal_us(const Work& work) { return std::max(work.flops / 50e3, work.bytes / 10e3); }

// The value at `size` of the line through two points.
double line(std::pair<int64_t, double> a, std::pair<int64_t, double> b, int64_t size) {
  const double t = static_cast<double>(size - a.first) / static_cast<double>(b.first - a.first);
  return a.second + t * (b.second - a.second);
}

// Of at least one. Whatever disturbs a measurement makes it longer, never shorter.
double undisturbed(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.25);
}

// What operators cost that were not measured: as many times their nominal time as others of the
// kind take.
class Estimator {
 public:
  void add(OperatorKind kind, double nominal, double us) {
    const double ratio = us / std::max(nominal, 1e-3);
    by_kind_[static_cast<size_t>(kind)].push_back(ratio);
    all_.push_back(ratio);
  }
  double estimate(OperatorKind kind, double nominal) const {
    const std::vector<double>& same = by_kind_[static_cast<size_t>(kind)];
    const std::vector<double>& from = same.empty() ? all_ : same;
    return nominal * (from.empty() ? 1 : summarize(from).median);
  }

 private:
  std::array<std::vector<double>, kOperatorKinds> by_kind_;
  std::vector<double> all_;
};

}  // namespace

// Fills gaps in CalibrationData.
class Calibration::Measurement {
 public:
  Measurement(const Graph& graph, LaneCrew& crew, const std::vector<std::string>& signatures,
              bool repeated, double seconds, CalibrationData* data)
      : graph_(graph),
        crew_(crew),
        signatures_(signatures),
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

  // Slices that the data lack.
  std::vector<std::vector<Slice>> wanted(const Stage& stage) const {
    std::vector<std::vector<Slice>> result(crew_.lanes().size());
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

  // Those of the slices that the data lack.
  std::vector<std::vector<Slice>> unknown(std::vector<std::vector<Slice>> slices) const {
    for (size_t lane = 0; lane < slices.size(); ++lane) {
      std::erase_if(slices[lane],
                    [&](const Slice& slice) { return is_known(static_cast<int>(lane), slice); });
    }
    return slices;
  }

  // Operators that it may pay to cut, one of each kind.
  std::vector<OperatorId> worth_cutting() const {
    std::vector<OperatorId> operators;
    for (OperatorId op : representatives_) {
      if (fastest_us(op) >= kWorthCuttingUs) operators.push_back(op);
    }
    return operators;
  }

  Status measure(const std::vector<std::vector<Slice>>& wanted, const TensorBindings& bindings,
                 size_t stages_left) {
    Clock::time_point now = Clock::now();
    if (now >= deadline_) return {};
    // Preparing slices must leave time for running them. Whole operators are prepared without
    // regard to time: what a lane does with them has to be known, and a driver's compiler, which
    // may take longer than all measurements, has to be waited for anyway, once.
    const bool first = stages_left == stages().size() + kRefinements;
    const Clock::time_point bind_until =
        first ? Clock::time_point::max() : now + (deadline_ - now) / 2;
    std::vector<Bound> bound(wanted.size());
    for (size_t lane = 0; lane < wanted.size(); ++lane) {
      TANDEM_RETURN_IF_ERROR(on_lane(lane, [&] {
        return bind(static_cast<int>(lane), wanted[lane], bindings, bind_until, &bound[lane]);
      }));
    }
    if (first) {
      deadline_ += Clock::now() - now;
      now = Clock::now();
    }
    const Clock::time_point until =
        now + (deadline_ - now) / static_cast<Clock::rep>(std::max<size_t>(stages_left, 1));
    // Lanes take turns, so that what disturbs the machine for a while disturbs both alike. The
    // first turn warms up. On a busy machine, turns may tell nothing: then there are more.
    constexpr int kLeastTurns = 3;
    constexpr int kTurns = 8;
    constexpr int kMostTurns = 40;
    for (int turn = 0; turn < kMostTurns; ++turn) {
      if (turn >= kLeastTurns && Clock::now() >= until) break;
      if (turn >= kTurns && std::all_of(bound.begin(), bound.end(), is_told)) break;
      for (size_t lane = 0; lane < wanted.size(); ++lane) {
        if (bound[lane].tasks.empty()) continue;
        TANDEM_RETURN_IF_ERROR(on_lane(lane, [&] { return time(turn, &bound[lane]); }));
      }
    }
    for (size_t lane = 0; lane < wanted.size(); ++lane) {
      for (size_t i = 0; i < bound[lane].tasks.size(); ++i) {
        if (bound[lane].samples[i].empty()) continue;
        const Slice& slice = bound[lane].slices[i];
        times_of(static_cast<int>(lane), slice.op)[size_of(slice)] =
            undisturbed(std::move(bound[lane].samples[i]));
        ++measured_;
      }
      if (bound[lane].timer && bound[lane].timer->enqueue_us() > 0) {
        data_->enqueueing[crew_.info(static_cast<int>(lane)).name] =
            bound[lane].timer->enqueue_us();
      }
    }
    return {};
  }

  int measured() const { return measured_; }

 private:
  struct Bound {
    std::vector<Slice> slices;
    std::vector<std::unique_ptr<Task>> tasks;
    std::vector<std::vector<double>> samples;
    SliceTimer* timer = nullptr;
  };
  static bool is_told(const Bound& bound) {
    return std::none_of(bound.samples.begin(), bound.samples.end(),
                        [](const std::vector<double>& samples) { return samples.empty(); });
  }
  struct LaneTools {
    std::unique_ptr<LaneProgram> program;
    std::unique_ptr<SliceTimer> timer;
  };

  std::map<SliceSize, double>& times_of(int lane, OperatorId op) {
    return data_->slices[signatures_[op]][crew_.info(lane).name];
  }

  bool is_known(int lane, const Slice& slice) const {
    const auto operators = data_->slices.find(signatures_[slice.op]);
    if (operators == data_->slices.end()) return false;
    const auto lanes = operators->second.find(crew_.info(lane).name);
    return lanes != operators->second.end() && lanes->second.contains(size_of(slice));
  }

  // Whole, on the lane where it is fastest. Zero if it was not measured anywhere.
  double fastest_us(OperatorId op) const {
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

  template <typename Work>  // Status()
  Status on_lane(size_t lane, const Work& work) {
    Status status;
    crew_.thread(static_cast<int>(lane)).run([&] { status = work(); });
    return status.with_context("calibrating lane " + crew_.info(static_cast<int>(lane)).name);
  }

  StatusOr<LaneTools*> tools_of(int lane, const TensorBindings& bindings) {
    if (tools_.empty()) tools_.resize(crew_.lanes().size());
    LaneTools& tools = tools_[lane];
    if (!tools.program) {
      TANDEM_ASSIGN_OR_RETURN(tools.program, crew_.lanes()[lane]->load(graph_, bindings));
      TANDEM_ASSIGN_OR_RETURN(tools.timer, SliceTimer::create(crew_, lane));
    }
    return &tools;
  }

  Status bind(int lane, const std::vector<Slice>& slices, const TensorBindings& bindings,
              Clock::time_point until, Bound* bound) {
    if (slices.empty()) return {};
    TANDEM_ASSIGN_OR_RETURN(LaneTools * tools, tools_of(lane, bindings));
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

  Status time(int turn, Bound* bound) const {
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

  const Graph& graph_;
  LaneCrew& crew_;
  const std::vector<std::string>& signatures_;
  const bool repeated_;
  CalibrationData* data_;
  Clock::time_point deadline_;
  std::vector<OperatorId> representatives_;
  std::vector<LaneTools> tools_;  // by lane; empty until something has to be measured
  int measured_ = 0;
};

StatusOr<std::unique_ptr<Calibration>> Calibration::create(const Graph& graph, LaneCrew& crew,
                                                           const CalibrationOptions& options,
                                                           const CalibrationSources& sources) {
  const auto lanes = static_cast<int>(crew.lanes().size());
  const Placement placement = analyse(graph);
  std::vector<std::string> signatures(graph.operators().size());
  for (size_t op = 0; op < signatures.size(); ++op) {
    if (!placement.launched[op]) continue;
    signatures[op] = signature(graph, placement, static_cast<OperatorId>(op));
  }
  const bool repeated = is_alone(placement);
  for (std::string& signature : signatures) {
    if (repeated && !signature.empty()) signature = kRepeated + signature;
  }
  std::vector<std::string> lane_names;
  for (int lane = 0; lane < lanes; ++lane) lane_names.push_back(crew.info(lane).name);

  const CalibrationCache cache(options.dir, options.fingerprint);
  CalibrationData data = cache.load();
  const CalibrationData before = data;
  std::unique_ptr<Calibration> calibration(new Calibration(graph, lanes));

  Measurement measurement(graph, crew, signatures, repeated, options.seconds, &data);
  const TensorBindings* bindings = nullptr;
  const auto measure = [&](const std::vector<std::vector<Slice>>& wanted,
                           size_t stages_left) -> Status {
    if (!bindings) {
      TANDEM_ASSIGN_OR_RETURN(bindings, sources.memory());
    }
    return measurement.measure(wanted, *bindings, stages_left);
  };
  const auto is_empty = [](const std::vector<std::vector<Slice>>& wanted) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [](const auto& slices) { return slices.empty(); });
  };
  const auto count_missing = [&](const std::vector<std::vector<Slice>>& wanted) {
    for (const auto& slices : wanted) calibration->missing_ += static_cast<int>(slices.size());
  };
  for (size_t stage = 0; stage < stages().size(); ++stage) {
    const auto wanted = measurement.wanted(stages()[stage]);
    if (is_empty(wanted)) continue;
    TANDEM_RETURN_IF_ERROR(measure(wanted, stages().size() + kRefinements - stage));
    count_missing(measurement.wanted(stages()[stage]));
  }
  if (sources.contention) TANDEM_RETURN_IF_ERROR(sources.contention(&data));
  for (const std::string& name : lane_names) {
    const auto known = data.slowdowns.find(name);
    calibration->slowdowns_.push_back(known == data.slowdowns.end() ? LaneSlowdowns{}
                                                                    : known->second);
  }
  TANDEM_RETURN_IF_ERROR(measure_transfers(graph, crew, options.mechanism, sources, &data));
  calibration->transfers_ = transfer_costs(crew, options.mechanism, data);
  TANDEM_RETURN_IF_ERROR(measure_starts(crew, sources, &calibration->transfers_));
  calibration->build(signatures, lane_names, data);
  for (size_t round = 0; round < kRefinements && lanes > 1; ++round) {
    const auto wanted =
        measurement.unknown(calibration->best_parts(crew, measurement.worth_cutting()));
    if (is_empty(wanted)) break;
    TANDEM_RETURN_IF_ERROR(measure(wanted, kRefinements - round));
    calibration->build(signatures, lane_names, data);
    const auto left = measurement.unknown(wanted);
    count_missing(left);
    if (!is_empty(left)) break;  // no time
  }
  calibration->measured_ = measurement.measured();
  if (data != before) cache.save(data);
  log().debug("calibration: {} slices measured, {} left to estimates", calibration->measured_,
              calibration->missing_);
  return calibration;
}

std::vector<std::vector<Slice>> Calibration::best_parts(
    const LaneCrew& crew, const std::vector<OperatorId>& operators) const {
  const Problem problem{&graph_, traits_of(crew), this};
  std::vector<std::vector<Slice>> parts(crew.lanes().size());
  for (OperatorId op : operators) {
    for (const SplitPart& part : choose_split(problem, op).parts) {
      parts[part.lane].push_back(part.slice);
    }
  }
  return parts;
}

void Calibration::build(const std::vector<std::string>& signatures,
                        const std::vector<std::string>& lane_names, const CalibrationData& data) {
  const size_t operators = signatures.size();
  for (size_t lane = 0; lane < lane_names.size(); ++lane) {
    const auto times_of = [&](size_t op) -> const std::map<SliceSize, double>* {
      const auto lanes = data.slices.find(signatures[op]);
      if (signatures[op].empty() || lanes == data.slices.end()) return nullptr;
      const auto times = lanes->second.find(lane_names[lane]);
      return times == lanes->second.end() ? nullptr : &times->second;
    };
    std::vector<OperatorCosts>& costs = costs_[lane];
    costs.assign(operators, {});
    Estimator estimator;
    double least = 1;
    for (size_t op = 0; op < operators; ++op) {
      const auto* times = times_of(op);
      if (!times || !times->contains(SliceSize{})) continue;
      const auto id = static_cast<OperatorId>(op);
      const double us = times->at(SliceSize{});
      costs[op].whole_us = us;
      estimator.add(graph_.op(id).kind(), nominal_us(work_of(graph_, id)), us);
      least = std::min(least, us);
    }
    overhead_us_[lane] = least;
    for (size_t op = 0; op < operators; ++op) {
      const auto id = static_cast<OperatorId>(op);
      if (signatures[op].empty()) continue;
      if (costs[op].whole_us == 0) {
        costs[op].whole_us =
            estimator.estimate(graph_.op(id).kind(), nominal_us(work_of(graph_, id)));
      }
      const auto* times = times_of(op);
      if (!times) continue;
      for (const auto& [size, us] : *times) {
        if (size.axis == kNone) continue;
        auto& curves = costs[op].curves;
        if (curves.empty() || curves.back().first != size.axis) {
          curves.push_back({size.axis, Curve{{0, std::min(overhead_us_[lane], us)}}});
        }
        curves.back().second.emplace_back(size.size, us);
      }
      for (auto& [axis, curve] : costs[op].curves) {
        curve.emplace_back(graph_.output_of(id).dims[axis], costs[op].whole_us);
      }
    }
  }
}

double Calibration::copy_us(int lane, const CopySize& size) const {
  return tandem::copy_us(transfers_.copies[lane], size);
}

Contention Calibration::contention(int lane, const Slice& slice) const {
  return contention_of(slowdowns_[lane], work_of(graph_, slice).bytes, slice_us(lane, slice));
}

double Calibration::slice_us(int lane, const Slice& slice, int /*threads*/) const {
  const OperatorCosts& costs = costs_[lane][slice.op];
  if (slice.whole()) return costs.whole_us;
  const int64_t size = slice.end - slice.begin;
  for (const auto& [axis, curve] : costs.curves) {
    if (axis != slice.axis) continue;
    size_t above = 1;
    while (above + 1 < curve.size() && curve[above].first < size) ++above;
    return line(curve[above - 1], curve[above], size);
  }
  const int64_t extent = graph_.output_of(slice.op).dims[slice.axis];
  const double overhead = std::min(overhead_us_[lane], costs.whole_us);
  return kUnmeasuredPenalty * line({0, overhead}, {extent, costs.whole_us}, size);
}

}  // namespace tandem
