#include "schedule/mode_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "schedule/placement.h"

namespace tandem {
namespace {

// Axes that are looked at, in the order of partition_axes().
constexpr size_t kAxes = 2;
// Work shifted from one lane to another, as shares of the operator.
constexpr double kShifts[] = {0.1, 0.25};
// A cut where the producer is cut may take this much longer than where parts end together.
constexpr double kAlignmentPrice = 1.3;
constexpr size_t kAlignedModes = 3;

// A partition before it is a mode.
struct Cut {
  int axis = kNone;             // kNone: whole, on lanes.front()
  std::vector<int> lanes;       // ascending, those with work
  std::vector<int64_t> places;  // where slices begin, and the extent

  bool operator==(const Cut&) const = default;
};

// The modes of one operator.
class OperatorModes {
 public:
  OperatorModes(const Problem& problem, OperatorId op)
      : problem_(problem),
        graph_(*problem.graph),
        op_(op),
        dims_(graph_.output_of(op).dims),
        axes_(partition_axes(graph_, op)),
        lanes_(static_cast<int>(problem.lanes.size())) {}

  // `producers`: the cuts that this operator's should be lined up with.
  std::vector<Cut> search(const std::vector<const std::vector<Cut>*>& producers, int max_modes);
  StatusOr<std::vector<Cut>> pinned(const Pin& pin);
  Mode mode_of(const Cut& cut);
  // Of a schedule's slices of this operator.
  Mode mode_of(const std::vector<std::pair<int, ScheduledSlice>>& slices);

 private:
  struct Timed {
    double us = 0;
    int threads = 0;
  };

  Slice slice_of(const Cut& cut, size_t part) const {
    if (cut.axis == kNone) return Slice{.op = op_};
    return Slice{op_, cut.axis, cut.places[part], cut.places[part + 1]};
  }
  Timed time(int lane, const Slice& slice);
  double copies_us(int lane, const Slice& slice) const;
  double leave_us(int lane, const Slice& slice) const;
  Part part_of(int lane, const Slice& slice, const Timed& timed) const;
  double end_us(const Cut& cut);

  int64_t units(const PartitionAxis& axis) const {
    return (dims_[axis.axis] + axis.granularity - 1) / axis.granularity;
  }
  // Shares of units as a cut; those without any are left out.
  Cut cut_of(const PartitionAxis& axis, const std::vector<int>& lanes,
             const std::vector<int64_t>& shares) const;
  std::vector<int64_t> proportional(const std::vector<double>& weights, int64_t units) const;
  // Where all parts end together, as nearly as may be.
  Cut balance(const PartitionAxis& axis, const std::vector<int>& lanes);
  Cut shifted(const PartitionAxis& axis, const Cut& cut, size_t from, size_t to,
              double share) const;
  std::optional<Cut> aligned(const Cut& producer);
  bool is_dominated(const Cut& cut, const std::vector<Cut>& by);

  const Problem& problem_;
  const Graph& graph_;
  const OperatorId op_;
  const Dims& dims_;
  const std::vector<PartitionAxis> axes_;
  const int lanes_;
  std::map<std::tuple<int, int, int64_t, int64_t>, Timed> times_;
};

OperatorModes::Timed OperatorModes::time(int lane, const Slice& slice) {
  const auto [entry, fresh] = times_.try_emplace({lane, slice.axis, slice.begin, slice.end});
  if (!fresh) return entry->second;
  Timed best{problem_.cost->slice_us(lane, slice), 0};
  // More threads than are of use cost time; of few sizes, halving finds the best.
  for (int threads = problem_.lanes[lane].max_threads / 2; threads > 0; threads /= 2) {
    const double us = problem_.cost->slice_us(lane, slice, threads);
    if (us >= best.us) break;
    best = {us, threads};
  }
  best.us = std::max(best.us + copies_us(lane, slice), problem_.cost->enqueue_us(lane));
  return entry->second = best;
}

// Of the model's inputs to the lane's memory, and of its outputs back.
double OperatorModes::copies_us(int lane, const Slice& slice) const {
  if (!problem_.lanes[lane].own_memory) return 0;
  const Operator& op = graph_.op(op_);
  const Region region = output_region(graph_, slice);
  double us = graph_.is_output(op.output) ? leave_us(lane, slice) : 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (graph_.tensor(op.inputs[i]).kind != TensorKind::kInput) continue;
    const TensorRegion read{op.inputs[i], input_region(graph_, op_, static_cast<int>(i), region)};
    if (!is_empty(read.region)) us += problem_.cost->copy_us(lane, copy_size(graph_, read));
  }
  return us;
}

double OperatorModes::leave_us(int lane, const Slice& slice) const {
  if (!problem_.lanes[lane].own_memory) return 0;
  return problem_.cost->copy_us(
      lane, copy_size(graph_, {graph_.op(op_).output, output_region(graph_, slice)}));
}

Part OperatorModes::part_of(int lane, const Slice& slice, const Timed& timed) const {
  Part part;
  part.lane = lane;
  part.threads = timed.threads;
  part.us = timed.us;
  if (!graph_.is_output(graph_.op(op_).output)) part.leave_us = leave_us(lane, slice);
  part.slice = slice;
  part.contention = problem_.cost->contention(lane, slice);
  return part;
}

Mode OperatorModes::mode_of(const Cut& cut) {
  Mode mode;
  for (size_t i = 0; i < cut.lanes.size(); ++i) {
    const Slice slice = slice_of(cut, i);
    mode.parts.push_back(part_of(cut.lanes[i], slice, time(cut.lanes[i], slice)));
  }
  return mode;
}

Mode OperatorModes::mode_of(const std::vector<std::pair<int, ScheduledSlice>>& slices) {
  Mode mode;
  for (const auto& [lane, scheduled] : slices) {
    Timed timed = time(lane, scheduled.slice);
    if (scheduled.threads > 0) {
      const double us = problem_.cost->slice_us(lane, scheduled.slice, scheduled.threads);
      timed = {std::max(us + copies_us(lane, scheduled.slice), problem_.cost->enqueue_us(lane)),
               scheduled.threads};
    }
    mode.parts.push_back(part_of(lane, scheduled.slice, timed));
  }
  return mode;
}

// Of the longest part.
double OperatorModes::end_us(const Cut& cut) {
  double end = 0;
  for (size_t i = 0; i < cut.lanes.size(); ++i) {
    end = std::max(end, time(cut.lanes[i], slice_of(cut, i)).us);
  }
  return end;
}

Cut OperatorModes::cut_of(const PartitionAxis& axis, const std::vector<int>& lanes,
                          const std::vector<int64_t>& shares) const {
  Cut cut{axis.axis, {}, {0}};
  int64_t end = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (shares[i] == 0) continue;
    end += shares[i];
    cut.lanes.push_back(lanes[i]);
    cut.places.push_back(std::min(end * axis.granularity, dims_[axis.axis]));
  }
  if (cut.lanes.size() == 1) return {kNone, cut.lanes, {}};
  return cut;
}

std::vector<int64_t> OperatorModes::proportional(const std::vector<double>& weights,
                                                 int64_t units) const {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  double sum = 0;
  int64_t given = 0;
  for (const double weight : weights) {
    sum += weight;
    const int64_t end = std::llround(static_cast<double>(units) * sum / total);
    shares.push_back(end - given);
    given = end;
  }
  return shares;
}

Cut OperatorModes::balance(const PartitionAxis& axis, const std::vector<int>& lanes) {
  std::vector<double> speeds;
  for (const int lane : lanes) speeds.push_back(1 / std::max(time(lane, {.op = op_}).us, 1e-3));
  std::vector<int64_t> shares = proportional(speeds, units(axis));
  Cut best = cut_of(axis, lanes, shares);
  double best_us = end_us(best);
  constexpr int kMoves = 8;
  int64_t most = units(axis);
  // From the lane that ends last to the one that ends first, as much as would let both end
  // together at their present speeds; less each time that it was too much.
  for (int move = 0; move < kMoves && most > 0; ++move) {
    const Cut now = cut_of(axis, lanes, shares);
    std::vector<double> us(lanes.size(), 0);
    for (size_t i = 0, part = 0; i < lanes.size(); ++i) {
      if (shares[i] == 0) continue;
      us[i] = time(lanes[i], slice_of(now, part++)).us;
    }
    const size_t last = std::max_element(us.begin(), us.end()) - us.begin();
    const size_t first = std::min_element(us.begin(), us.end()) - us.begin();
    const double per_unit = us[last] / static_cast<double>(std::max<int64_t>(shares[last], 1)) +
                            1 / std::max(speeds[first] * static_cast<double>(units(axis)), 1e-9);
    const int64_t moved =
        std::clamp<int64_t>(std::llround((us[last] - us[first]) / per_unit), 1, most);
    if (last == first || shares[last] < moved) break;
    shares[last] -= moved;
    shares[first] += moved;
    const Cut cut = cut_of(axis, lanes, shares);
    const double end = end_us(cut);
    if (end < best_us) {
      best = cut;
      best_us = end;
    } else {
      shares[last] += moved;
      shares[first] -= moved;
      most = moved / 2;
    }
  }
  return best;
}

Cut OperatorModes::shifted(const PartitionAxis& axis, const Cut& cut, size_t from, size_t to,
                           double share) const {
  std::vector<int64_t> shares;
  for (size_t i = 0; i < cut.lanes.size(); ++i) {
    shares.push_back((cut.places[i + 1] - cut.places[i] + axis.granularity - 1) / axis.granularity);
  }
  const int64_t moved =
      std::clamp<int64_t>(std::llround(share * static_cast<double>(units(axis))), 1, shares[from]);
  shares[from] -= moved;
  shares[to] += moved;
  return cut_of(axis, cut.lanes, shares);
}

// Cut where the producer is, in proportion.
std::optional<Cut> OperatorModes::aligned(const Cut& producer) {
  const auto axis = std::find_if(axes_.begin(), axes_.end(),
                                 [&](const PartitionAxis& a) { return a.axis == producer.axis; });
  if (axis == axes_.end()) return std::nullopt;
  std::vector<int64_t> shares;
  int64_t given = 0;
  for (size_t i = 1; i < producer.places.size(); ++i) {
    const double place =
        static_cast<double>(producer.places[i]) / static_cast<double>(producer.places.back());
    const int64_t end = std::llround(place * static_cast<double>(units(*axis)));
    shares.push_back(end - given);
    given = end;
  }
  const Cut cut = cut_of(*axis, producer.lanes, shares);
  return cut.axis == kNone ? std::nullopt : std::optional(cut);
}

bool OperatorModes::is_dominated(const Cut& cut, const std::vector<Cut>& by) {
  return std::any_of(by.begin(), by.end(), [&](const Cut& other) {
    if (other == cut) return true;
    if (other.axis != kNone && (other.axis != cut.axis || other.lanes != cut.lanes)) return false;
    // Whole on a lane that would be busy with its part for as long; or every part takes as long.
    for (size_t i = 0; i < other.lanes.size(); ++i) {
      const auto part = std::find(cut.lanes.begin(), cut.lanes.end(), other.lanes[i]);
      if (part == cut.lanes.end()) return false;
      if (time(*part, slice_of(cut, part - cut.lanes.begin())).us <
          time(other.lanes[i], slice_of(other, i)).us) {
        return false;
      }
    }
    return true;
  });
}

std::vector<Cut> OperatorModes::search(const std::vector<const std::vector<Cut>*>& producers,
                                       int max_modes) {
  std::vector<Cut> modes;
  const auto add = [&](const Cut& cut) {
    if (is_dominated(cut, modes)) return false;
    modes.push_back(cut);
    return true;
  };
  for (int lane = 0; lane < lanes_; ++lane) add({kNone, {lane}, {}});
  const size_t axes = std::min(axes_.size(), kAxes);
  std::vector<int> all(lanes_);
  std::iota(all.begin(), all.end(), 0);
  std::vector<Cut> balanced;  // over all lanes
  for (size_t a = 0; lanes_ > 1 && a < axes; ++a) {
    const Cut cut = balance(axes_[a], all);
    if (add(cut)) balanced.push_back(cut);
  }
  double best_us = std::numeric_limits<double>::infinity();
  for (const Cut& cut : modes) best_us = std::min(best_us, end_us(cut));
  size_t lined_up = 0;
  for (const std::vector<Cut>* cuts : producers) {
    for (const Cut& producer : *cuts) {
      if (producer.axis == kNone || lined_up == kAlignedModes) continue;
      const std::optional<Cut> cut = aligned(producer);
      if (cut && end_us(*cut) <= kAlignmentPrice * best_us) lined_up += add(*cut);
    }
  }
  // Smaller sets of lanes, along the axis that suits each best; the best of them.
  std::vector<std::pair<double, Cut>> smaller;
  for (unsigned set = 1; axes > 0 && set + 1 < 1u << lanes_; ++set) {
    std::vector<int> lanes;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (set >> lane & 1) lanes.push_back(lane);
    }
    if (lanes.size() < 2 || lanes.size() > 3) continue;
    std::optional<std::pair<double, Cut>> best;
    for (size_t a = 0; a < axes; ++a) {
      const Cut cut = balance(axes_[a], lanes);
      if (const double us = end_us(cut); !best || us < best->first) best = {us, cut};
    }
    smaller.push_back(*best);
  }
  std::stable_sort(smaller.begin(), smaller.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto is_full = [&] { return static_cast<int>(modes.size()) >= max_modes; };
  for (size_t i = 0; i < smaller.size() && !is_full(); ++i) add(smaller[i].second);
  for (const double share : kShifts) {
    for (const Cut& cut : balanced) {
      if (cut.lanes.size() < 2) continue;
      const PartitionAxis& axis = *std::find_if(
          axes_.begin(), axes_.end(), [&](const PartitionAxis& a) { return a.axis == cut.axis; });
      for (size_t i = 1; i < cut.lanes.size(); ++i) {
        if (!is_full()) add(shifted(axis, cut, i - 1, i, share));
        if (!is_full()) add(shifted(axis, cut, i, i - 1, share));
      }
    }
  }
  return modes;
}

StatusOr<std::vector<Cut>> OperatorModes::pinned(const Pin& pin) {
  const std::string& name = graph_.op(op_).name;
  if (pin.lane < 0 || pin.lane >= lanes_) {
    return invalid_argument(
        fmt::format("{} is pinned to lane {}, which does not exist", name, pin.lane));
  }
  if (!(pin.share > 0 && pin.share <= 1)) {
    return invalid_argument(
        fmt::format("{} is pinned to lane {} with a share of {}; shares are "
                    "above 0 and at most 1",
                    name, problem_.lanes[pin.lane].name, pin.share));
  }
  if (pin.share == 1) return std::vector<Cut>{{kNone, {pin.lane}, {}}};
  std::vector<Cut> cuts;
  for (size_t a = 0; a < std::min(axes_.size(), kAxes); ++a) {
    for (int other = 0; other < lanes_; ++other) {
      if (other == pin.lane) continue;
      const bool first = pin.lane < other;
      const double low = first ? pin.share : 1 - pin.share;
      const Cut cut = cut_of(axes_[a], {std::min(pin.lane, other), std::max(pin.lane, other)},
                             proportional({low, 1 - low}, units(axes_[a])));
      if (cut.axis != kNone) cuts.push_back(cut);
    }
  }
  if (!cuts.empty()) return cuts;
  return invalid_argument(
      fmt::format("{} is pinned to lane {} with a share of {}, and cannot be cut {}", name,
                  problem_.lanes[pin.lane].name, pin.share,
                  axes_.empty() ? "at all" : "that unevenly, nor is there any other lane"));
}

// Fills in edges: which parts wait for which.
class EdgeBuilder {
 public:
  EdgeBuilder(const Problem& problem, const Placement& placement,
              const std::vector<OperatorId>& launched, ModeProblem* result)
      : problem_(problem),
        graph_(*problem.graph),
        placement_(placement),
        result_(result),
        index_of_(graph_.operators().size(), kNone) {
    for (size_t i = 0; i < launched.size(); ++i) index_of_[launched[i]] = static_cast<int>(i);
    for (const LaneTraits& lane : problem.lanes) any_own_memory_ |= lane.own_memory;
  }

  void add_edges_to(int to) {
    std::map<int, ModeEdge> edges;  // by producer
    const std::vector<Mode>& modes = result_->operators[to].modes;
    for (size_t m = 0; m < modes.size(); ++m) {
      for (size_t p = 0; p < modes[m].parts.size(); ++p) {
        for (const TensorRegion& read : reads_of(modes[m].parts[p].slice)) {
          const int from = index_of_[graph_.tensor(read.tensor).producer];
          const auto [entry, fresh] = edges.try_emplace(from);
          ModeEdge& edge = entry->second;
          if (fresh) {
            edge.from = from;
            edge.to = to;
            edge.waits.assign(result_->index_size(edge), 0);
            if (any_own_memory_) edge.fetch_us.assign(edge.waits.size(), 0);
          }
          add(&edge, static_cast<int>(m), static_cast<int>(p), read);
        }
      }
    }
    for (auto& [from, edge] : edges) result_->edges.push_back(std::move(edge));
  }

 private:
  // What the slice reads that operators make. Modes share many slices.
  const std::vector<TensorRegion>& reads_of(const Slice& slice) {
    for (const auto& [known, reads] : reads_) {
      if (known == slice) return reads;
    }
    if (!reads_.empty() && reads_.back().first.op != slice.op) reads_.clear();
    const Operator& op = graph_.op(slice.op);
    const Region region = output_region(graph_, slice);
    std::vector<TensorRegion> parts;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (graph_.tensor(op.inputs[i]).kind == TensorKind::kConstant) continue;
      resolve(graph_, placement_, op.inputs[i],
              input_region(graph_, slice.op, static_cast<int>(i), region), &parts);
    }
    std::erase_if(parts, [&](const TensorRegion& part) {
      return graph_.tensor(part.tensor).producer == kNone || is_empty(part.region);
    });
    return reads_.emplace_back(slice, std::move(parts)).second;
  }

  void add(ModeEdge* edge, int to_mode, int to_part, const TensorRegion& read) {
    const std::vector<Mode>& from_modes = result_->operators[edge->from].modes;
    const int reader = result_->operators[edge->to].modes[to_mode].parts[to_part].lane;
    const size_t stride = edge->waits.size() / from_modes.size();
    size_t at = result_->index(*edge, 0, to_mode, to_part);
    for (size_t f = 0; f < from_modes.size(); ++f, at += stride) {
      for (size_t q = 0; q < from_modes[f].parts.size(); ++q) {
        const Part& made = from_modes[f].parts[q];
        const Slice& slice = made.slice;
        if (!slice.whole() && (slice.begin >= read.region[slice.axis].end ||
                               read.region[slice.axis].begin >= slice.end)) {
          continue;
        }
        edge->waits[at] = static_cast<PartMask>(edge->waits[at] | (1u << q));
        if (made.lane == reader || !problem_.lanes[reader].own_memory) continue;
        TensorRegion fetched = read;
        if (!slice.whole()) {
          Range& range = fetched.region[slice.axis];
          range = {std::max(range.begin, slice.begin), std::min(range.end, slice.end)};
        }
        edge->fetch_us[at] += problem_.cost->copy_us(reader, copy_size(graph_, fetched));
      }
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  ModeProblem* result_;
  std::vector<int> index_of_;  // by OperatorId
  bool any_own_memory_ = false;
  std::vector<std::pair<Slice, std::vector<TensorRegion>>> reads_;  // of one operator
};

void add_lanes(const Problem& problem, ModeProblem* result) {
  const size_t lanes = problem.lanes.size();
  result->latency_us.assign(lanes, std::vector<double>(lanes, 0));
  for (size_t l = 0; l < lanes; ++l) {
    ModeLane lane;
    lane.name = problem.lanes[l].name;
    lane.fed_by = problem.lanes[l].fed_by;
    lane.enqueue_us = problem.cost->enqueue_us(static_cast<int>(l));
    result->lanes.push_back(lane);
    for (size_t to = 0; to < lanes; ++to) {
      if (to == l) continue;
      result->latency_us[l][to] =
          problem.cost->crossing_us(static_cast<int>(l), static_cast<int>(to));
    }
  }
}

// By operator, the slices that each schedule cuts it into.
using Partitions = std::vector<std::vector<std::pair<int, ScheduledSlice>>>;
Partitions partitions_of(const Graph& graph, const Schedule& schedule) {
  Partitions partitions(graph.operators().size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      partitions[scheduled.slice.op].emplace_back(static_cast<int>(lane), scheduled);
    }
  }
  return partitions;
}

void add_unless_there(Mode mode, std::vector<Mode>* modes) {
  if (std::find(modes->begin(), modes->end(), mode) == modes->end()) {
    modes->push_back(std::move(mode));
  }
}

}  // namespace

std::vector<OperatorId> launched_operators(const Graph& graph) {
  const Placement placement = analyse(graph);
  std::vector<OperatorId> launched;
  for (size_t op = 0; op < placement.launched.size(); ++op) {
    if (placement.launched[op]) launched.push_back(static_cast<OperatorId>(op));
  }
  return launched;
}

namespace {

// `modes_of`: StatusOr<std::vector<Mode>>(OperatorId), called in the graph's order.
template <typename ModesOf>
StatusOr<ModeProblem> build(const Problem& problem, const ModesOf& modes_of) {
  if (!problem.cost) return invalid_argument("modes need a cost model");
  if (problem.lanes.empty()) return invalid_argument("there are no lanes");
  const Graph& graph = *problem.graph;
  const Placement placement = analyse(graph);
  const std::vector<OperatorId> launched = launched_operators(graph);
  ModeProblem result;
  result.name = graph.name;
  add_lanes(problem, &result);
  EdgeBuilder edges(problem, placement, launched, &result);
  for (const OperatorId id : launched) {
    ModeOperator& op = result.operators.emplace_back();
    op.name = graph.op(id).name;
    TANDEM_ASSIGN_OR_RETURN(op.modes, modes_of(id));
    edges.add_edges_to(static_cast<int>(result.operators.size()) - 1);
  }
  TANDEM_RETURN_IF_ERROR(result.validate());
  return result;
}

}  // namespace

StatusOr<ModeProblem> build_mode_problem(const Problem& problem, const ModeOptions& options) {
  const Graph& graph = *problem.graph;
  std::vector<Partitions> partitions;
  for (const Schedule* schedule : options.partitions) {
    partitions.push_back(partitions_of(graph, *schedule));
  }
  std::vector<std::vector<Cut>> cuts(graph.operators().size());
  return build(problem, [&](OperatorId id) -> StatusOr<std::vector<Mode>> {
    OperatorModes search(problem, id);
    const auto pin = std::find_if(options.pins.begin(), options.pins.end(),
                                  [&](const Pin& p) { return p.op == id; });
    if (pin != options.pins.end()) {
      TANDEM_ASSIGN_OR_RETURN(cuts[id], search.pinned(*pin));
    } else {
      std::vector<const std::vector<Cut>*> producers;
      for (const TensorId input : graph.op(id).inputs) {
        const OperatorId producer = graph.tensor(input).producer;
        const bool same_rank = graph.tensor(input).dims.size() == graph.output_of(id).dims.size();
        if (producer != kNone && same_rank) producers.push_back(&cuts[producer]);
      }
      cuts[id] = search.search(producers, options.max_modes);
    }
    std::vector<Mode> modes;
    for (const Cut& cut : cuts[id]) modes.push_back(search.mode_of(cut));
    for (size_t s = 0; s < partitions.size() && pin == options.pins.end(); ++s) {
      if (!partitions[s][id].empty()) add_unless_there(search.mode_of(partitions[s][id]), &modes);
    }
    return modes;
  });
}

StatusOr<ModeProblem> problem_of_schedule(const Problem& problem, const Schedule& schedule) {
  const Partitions partitions = partitions_of(*problem.graph, schedule);
  return build(problem, [&](OperatorId id) -> StatusOr<std::vector<Mode>> {
    return std::vector<Mode>{OperatorModes(problem, id).mode_of(partitions[id])};
  });
}

StatusOr<Schedule> to_schedule(const Graph& graph, const ModeProblem& problem,
                               const ModeSchedule& schedule, std::string strategy) {
  Schedule result;
  result.strategy = std::move(strategy);
  result.lanes.resize(schedule.lanes.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const PartRef& ref : schedule.lanes[lane]) {
      const Part& part = problem.operators[ref.op].modes[schedule.modes[ref.op]].parts[ref.part];
      result.lanes[lane].push_back({part.slice, part.threads, part.us});
    }
  }
  TANDEM_RETURN_IF_ERROR(derive_waits(graph, &result));
  return result;
}

}  // namespace tandem
