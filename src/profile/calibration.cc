#include "profile/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profile/lane_contention.h"
#include "profile/lane_traits.h"
#include "profile/signature.h"
#include "profile/slice_measurement.h"
#include "schedule/choose_split.h"
#include "support/log.h"
#include "support/statistics.h"

namespace tandem {
namespace {

// What is added to a time along an axis that was not measured, so that measured ones are preferred.
constexpr double kUnmeasuredPenalty = 1.1;
// Before the signatures of operators that are timed behind themselves.
constexpr char kRepeated[] = "repeated ";

// The value at `size` of the line through two points.
double line(std::pair<int64_t, double> a, std::pair<int64_t, double> b, int64_t size) {
  const double t = static_cast<double>(size - a.first) / static_cast<double>(b.first - a.first);
  return a.second + t * (b.second - a.second);
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

// By operator; empty for those that are not launched.
std::vector<std::string> signatures_of(const Graph& graph, const Placement& placement,
                                       bool repeated) {
  std::vector<std::string> signatures(graph.operators().size());
  for (size_t op = 0; op < signatures.size(); ++op) {
    if (!placement.launched[op]) continue;
    signatures[op] = signature(graph, placement, static_cast<OperatorId>(op));
    if (repeated) signatures[op] = kRepeated + signatures[op];
  }
  return signatures;
}

std::vector<LaneSlowdowns> slowdowns_of(const LaneCrew& crew, const CalibrationData& data) {
  std::vector<LaneSlowdowns> slowdowns;
  for (const Lane* lane : crew.lanes()) {
    const auto known = data.slowdowns.find(lane->info().name);
    slowdowns.push_back(known == data.slowdowns.end() ? LaneSlowdowns{} : known->second);
  }
  return slowdowns;
}

int count(const std::vector<std::vector<Slice>>& slices) {
  size_t all = 0;
  for (const std::vector<Slice>& of_lane : slices) all += of_lane.size();
  return static_cast<int>(all);
}

// Null if there are none.
const std::map<SliceSize, double>* times_of(const CalibrationData& data,
                                            const std::string& signature, const std::string& lane) {
  const auto lanes = data.slices.find(signature);
  if (signature.empty() || lanes == data.slices.end()) return nullptr;
  const auto times = lanes->second.find(lane);
  return times == lanes->second.end() ? nullptr : &times->second;
}

}  // namespace

StatusOr<std::unique_ptr<Calibration>> Calibration::create(const Graph& graph, LaneCrew& crew,
                                                           const CalibrationOptions& options,
                                                           const CalibrationSources& sources) {
  const Placement placement = analyse(graph);
  const bool repeated = is_alone(placement);
  const std::vector<std::string> signatures = signatures_of(graph, placement, repeated);
  const CalibrationCache cache(options.dir, options.fingerprint);
  CalibrationData data = cache.load();
  const CalibrationData before = data;
  std::unique_ptr<Calibration> calibration(
      new Calibration(graph, static_cast<int>(crew.lanes().size())));
  SliceMeasurement measurement(graph, crew, signatures, sources.memory, repeated, options.seconds,
                               &data);
  TANDEM_RETURN_IF_ERROR(calibration->measure_stages(&measurement));
  if (sources.contention) TANDEM_RETURN_IF_ERROR(sources.contention(&data));
  calibration->slowdowns_ = slowdowns_of(crew, data);
  TANDEM_RETURN_IF_ERROR(measure_transfers(graph, crew, options.mechanism, sources, &data));
  calibration->transfers_ = transfer_costs(crew, options.mechanism, data);
  TANDEM_RETURN_IF_ERROR(measure_starts(crew, sources, &calibration->transfers_));
  const auto build = [&] { calibration->build(signatures, crew, data); };
  build();
  TANDEM_RETURN_IF_ERROR(calibration->refine(crew, &measurement, build));
  calibration->measured_ = measurement.measured();
  if (data != before) cache.save(data);
  log().debug("calibration: {} slices measured, {} left to estimates", calibration->measured_,
              calibration->missing_);
  return calibration;
}

// What schedules are made of in any case.
Status Calibration::measure_stages(SliceMeasurement* measurement) {
  const std::vector<MeasurementStage>& stages = measurement_stages();
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const auto wanted = measurement->wanted(stages[stage]);
    if (count(wanted) == 0) continue;
    const size_t rounds_left = stages.size() + kMeasurementRefinements - stage;
    TANDEM_RETURN_IF_ERROR(measurement->measure(wanted, rounds_left));
    missing_ += count(measurement->wanted(stages[stage]));
  }
  return {};
}

// The best divisions by what is known, until they are known.
Status Calibration::refine(const LaneCrew& crew, SliceMeasurement* measurement,
                           const std::function<void()>& build) {
  for (size_t round = 0; round < kMeasurementRefinements && crew.lanes().size() > 1; ++round) {
    const auto wanted = measurement->unknown(best_parts(crew, measurement->worth_cutting()));
    if (count(wanted) == 0) break;
    TANDEM_RETURN_IF_ERROR(measurement->measure(wanted, kMeasurementRefinements - round));
    build();
    const int left = count(measurement->unknown(wanted));
    missing_ += left;
    if (left > 0) break;  // no time
  }
  return {};
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

void Calibration::build(const std::vector<std::string>& signatures, const LaneCrew& crew,
                        const CalibrationData& data) {
  for (int lane = 0; lane < static_cast<int>(crew.lanes().size()); ++lane) {
    std::vector<const SliceTimes*> times;
    for (const std::string& signature : signatures) {
      times.push_back(times_of(data, signature, crew.info(lane).name));
    }
    build_whole(lane, signatures, times);
    for (size_t op = 0; op < times.size(); ++op) {
      if (times[op]) build_curves(lane, static_cast<OperatorId>(op), *times[op]);
    }
  }
}

// What whole operators take, measured or estimated, and what a slice of next to nothing does.
void Calibration::build_whole(int lane, const std::vector<std::string>& signatures,
                              const std::vector<const SliceTimes*>& times) {
  std::vector<OperatorCosts>& costs = costs_[lane];
  costs.assign(signatures.size(), {});
  const auto nominal = [this](size_t op) {
    return nominal_us(work_of(graph_, static_cast<OperatorId>(op)));
  };
  const auto kind = [this](size_t op) { return graph_.op(static_cast<OperatorId>(op)).kind(); };
  Estimator estimator;
  double least = 1;
  for (size_t op = 0; op < costs.size(); ++op) {
    if (!times[op] || !times[op]->contains(SliceSize{})) continue;
    costs[op].whole_us = times[op]->at(SliceSize{});
    estimator.add(kind(op), nominal(op), costs[op].whole_us);
    least = std::min(least, costs[op].whole_us);
  }
  overhead_us_[lane] = least;
  for (size_t op = 0; op < costs.size(); ++op) {
    if (signatures[op].empty() || costs[op].whole_us != 0) continue;
    costs[op].whole_us = estimator.estimate(kind(op), nominal(op));
  }
}

// From nothing over what was measured to the whole.
void Calibration::build_curves(int lane, OperatorId op, const SliceTimes& times) {
  OperatorCosts& costs = costs_[lane][op];
  for (const auto& [size, us] : times) {
    if (size.axis == kNone) continue;
    if (costs.curves.empty() || costs.curves.back().first != size.axis) {
      costs.curves.push_back({size.axis, Curve{{0, std::min(overhead_us_[lane], us)}}});
    }
    costs.curves.back().second.emplace_back(size.size, us);
  }
  for (auto& [axis, curve] : costs.curves) {
    curve.emplace_back(graph_.output_of(op).dims[axis], costs.whole_us);
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
