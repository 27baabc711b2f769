#include "schedule/operator_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem {
namespace {

// Axes that are looked at, in the order of partition_axes().
constexpr size_t kAxes = 2;
// Work shifted from one lane to another, as shares of the operator.
constexpr double kShifts[] = {0.1, 0.25};
// A cut where the producer is cut may take this much longer than where parts end together.
constexpr double kAlignmentPrice = 1.3;
constexpr size_t kAlignedModes = 3;

}  // namespace

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

bool OperatorModes::is_made_into_output() const {
  std::vector<TensorRegion> made;
  for (const TensorId output : graph_.outputs()) {
    resolve(graph_, placement_, output, whole_region(graph_.tensor(output).dims), &made);
  }
  return std::any_of(made.begin(), made.end(), [this](const TensorRegion& part) {
    return part.tensor == graph_.op(op_).output;
  });
}

// Of the model's inputs to the lane's memory, and of its outputs back.
double OperatorModes::copies_us(int lane, const Slice& slice) const {
  if (!problem_.lanes[lane].own_memory) return 0;
  const Operator& op = graph_.op(op_);
  const Region region = output_region(graph_, slice);
  std::vector<TensorRegion> read;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (graph_.tensor(op.inputs[i]).kind == TensorKind::kConstant) continue;
    resolve(graph_, placement_, op.inputs[i],
            input_region(graph_, op_, static_cast<int>(i), region), &read);
  }
  double us = makes_output_ ? leave_us(lane, slice) : 0;
  for (const TensorRegion& part : read) {
    if (graph_.tensor(part.tensor).kind != TensorKind::kInput || is_empty(part.region)) continue;
    us += problem_.cost->copy_us(lane, copy_size(graph_, part));
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
  if (!makes_output_) part.leave_us = leave_us(lane, slice);
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
    const double us = problem_.cost->slice_us(lane, scheduled.slice, scheduled.threads) +
                      copies_us(lane, scheduled.slice);
    const Timed timed{std::max(us, problem_.cost->enqueue_us(lane)), scheduled.threads};
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

}  // namespace tandem
