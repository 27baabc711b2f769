#include "schedule/choose_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem {
namespace {

// Of quick searches for the place of a cut: from there on, farther places are not looked at.
constexpr double kFarWorse = 1.15;

double slowdown(const Contention& of, double memory_share) {
  return 1 + (of.slowdown_compute - 1) * (1 - memory_share) +
         (of.slowdown_memory - 1) * memory_share;
}

class SplitSearch {
 public:
  SplitSearch(const Problem& problem, OperatorId op, const SplitSurroundings& surroundings,
              SplitEffort effort)
      : problem_(problem),
        graph_(*problem.graph),
        op_(op),
        surroundings_(surroundings),
        effort_(effort) {}

  Split run() {
    Split best;
    const auto consider = [&](std::vector<SplitPart> parts) {
      const double end = end_us(parts, surroundings_.starts_us(parts));
      if (end < best.end_us) best = {std::move(parts), end};
    };
    for (int lane = 0; lane < lane_count(); ++lane) {
      const SplitPart whole = part(lane, Slice{.op = op_});
      whole_us_.push_back(whole.us);
      consider({whole});
    }
    for (const PartitionAxis& axis : partition_axes(graph_, op_)) {
      const int64_t extent = graph_.output_of(op_).dims[axis.axis];
      if (lane_count() < 2 || extent <= axis.granularity) continue;
      consider(cut(axis, extent));
    }
    return best;
  }

 private:
  int lane_count() const { return static_cast<int>(problem_.lanes.size()); }

  // With as many threads as are best for it; all of them among equals.
  SplitPart part(int lane, const Slice& slice) const {
    SplitPart best{lane, slice, 0, problem_.cost->slice_us(lane, slice)};
    for (int threads = problem_.lanes[lane].max_threads / 2; threads >= 1; threads /= 2) {
      const double us = problem_.cost->slice_us(lane, slice, threads);
      if (us < best.us) best = {lane, slice, threads, us};
    }
    return best;
  }

  double end_us(const std::vector<SplitPart>& parts, const std::vector<double>& starts) const {
    const std::vector<double> ends = ends_us(*problem_.cost, parts, starts);
    double latest = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      latest = std::max(latest, ends[i] + surroundings_.joining_us(parts, parts[i]));
    }
    return latest;
  }

  // Lane l gets units [cuts[l], cuts[l + 1]) of the axis, of which there are some.
  SplitPart part_of(int lane, const PartitionAxis& axis, int64_t extent,
                    const std::vector<int64_t>& cuts) const {
    const int64_t begin = cuts[lane];
    const int64_t end = cuts[lane + 1];
    if (end - begin == cuts.back()) return part(lane, Slice{.op = op_});
    return part(lane, Slice{op_, axis.axis, begin * axis.granularity,
                            std::min(end * axis.granularity, extent)});
  }

  std::vector<SplitPart> parts_of(const PartitionAxis& axis, int64_t extent,
                                  const std::vector<int64_t>& cuts) const {
    std::vector<SplitPart> parts;
    for (int lane = 0; lane < lane_count(); ++lane) {
      if (cuts[lane] != cuts[lane + 1]) parts.push_back(part_of(lane, axis, extent, cuts));
    }
    return parts;
  }

  std::vector<SplitPart> cut(const PartitionAxis& axis, int64_t extent) const {
    std::vector<int64_t> cuts =
        proportional_cuts((extent + axis.granularity - 1) / axis.granularity);
    // When a lane can start depends, slightly, on its share: what it reads may be there or not. To
    // ask that for every cut would take long.
    std::vector<double> starts;
    for (int round = 0; round < 2; ++round) {
      std::vector<double> before = std::move(starts);
      starts = starts_us(axis, extent, cuts);
      if (starts == before) break;
      // Anything above `limit` is as good as anything else: no more of costs is asked for.
      const auto score = [&](const std::vector<int64_t>& tried, double limit) {
        const int longest = longest_lane(tried, starts);
        const SplitPart first = part_of(longest, axis, extent, tried);
        if (starts[longest] + first.us > limit) return starts[longest] + first.us;
        const std::vector<SplitPart> parts = parts_of(axis, extent, tried);
        std::vector<double> of_parts;
        double alone = 0;
        for (const SplitPart& p : parts) {
          of_parts.push_back(starts[p.lane]);
          alone = std::max(alone, starts[p.lane] + p.us);
        }
        return alone > limit ? alone : end_us(parts, of_parts);
      };
      for (bool better = true; better;) {
        better = false;
        for (int i = 1; i < lane_count(); ++i) better |= move_cut(&cuts, i, score);
        if (lane_count() == 2) break;  // the only cut is where it is best
      }
    }
    return parts_of(axis, extent, cuts);
  }

  // That ends last, if parts took as much of the time of the whole as they are of it.
  int longest_lane(const std::vector<int64_t>& cuts, const std::vector<double>& starts) const {
    int longest = 0;
    double longest_us = -1;
    for (int lane = 0; lane < lane_count(); ++lane) {
      if (cuts[lane] == cuts[lane + 1]) continue;
      const double us = starts[lane] + whole_us_[lane] *
                                           static_cast<double>(cuts[lane + 1] - cuts[lane]) /
                                           static_cast<double>(cuts.back());
      if (us <= longest_us) continue;
      longest = lane;
      longest_us = us;
    }
    return longest;
  }

  // By lane. Of lanes without a part, what the surroundings say of one with all.
  std::vector<double> starts_us(const PartitionAxis& axis, int64_t extent,
                                const std::vector<int64_t>& cuts) const {
    std::vector<SplitPart> parts = parts_of(axis, extent, cuts);
    for (int lane = 0; lane < lane_count(); ++lane) {
      if (cuts[lane] == cuts[lane + 1]) parts.push_back({lane, Slice{.op = op_}});
    }
    const std::vector<double> of_parts = surroundings_.starts_us(parts);
    std::vector<double> starts(lane_count());
    for (size_t i = 0; i < parts.size(); ++i) starts[parts[i].lane] = of_parts[i];
    return starts;
  }

  // By the lanes' speeds on the whole operator.
  std::vector<int64_t> proportional_cuts(int64_t units) const {
    std::vector<double> speed;
    for (int lane = 0; lane < lane_count(); ++lane) {
      speed.push_back(1 / std::max(whole_us_[lane], 1e-3));
    }
    const double total = std::accumulate(speed.begin(), speed.end(), 0.0);
    std::vector<int64_t> cuts{0};
    double sum = 0;
    for (double s : speed) {
      sum += s;
      cuts.push_back(std::llround(static_cast<double>(units) * sum / total));
    }
    cuts.back() = units;
    return cuts;
  }

  // Moves the cut between lanes i - 1 and i to where the end is earliest. False if it is there
  // already.
  template <typename Score>  // double(const std::vector<int64_t>& cuts, double limit)
  bool move_cut(std::vector<int64_t>* cuts, int i, const Score& score) const {
    const int64_t low = (*cuts)[i - 1];
    const int64_t high = (*cuts)[i + 1];
    const int64_t before = (*cuts)[i];
    if (low == high) return false;
    int64_t best = before;
    double best_us = score(*cuts, std::numeric_limits<double>::infinity());
    const auto try_place = [&](int64_t at) {
      (*cuts)[i] = at;
      const double us = score(*cuts, best_us);
      if (us < best_us) {
        best = at;
        best_us = us;
      }
      return us <= kFarWorse * best_us;
    };
    if (effort_ == SplitEffort::kThorough) {
      try_everywhere(low, high, best, try_place);
    } else {
      try_around(low, high, best, try_place);
    }
    (*cuts)[i] = best;
    return best != before;
  }

  // Times have steps (tiles), so that places are tried all over the axis; first coarsely. `best`:
  // as `try_place` changes it.
  template <typename TryPlace>  // bool(int64_t place): false if it is far worse than the best
  static void try_everywhere(int64_t low, int64_t high, const int64_t& best,
                             const TryPlace& try_place) {
    const int64_t places = std::min<int64_t>(high - low, 64);
    for (int64_t place = 0; place <= places; ++place) {
      try_place(low + (high - low) * place / places);
    }
    const int64_t step = (high - low + places - 1) / places;
    if (step == 1) return;
    const int64_t end = std::min(high, best + step - 1);
    for (int64_t at = std::max(low, best - step + 1); at <= end; ++at) try_place(at);
  }

  // From the best place in both directions, ever finer. No farther than to where it is far worse:
  // steps aside, a lane takes longer for more, and what is not asked of the costs takes no time.
  template <typename TryPlace>
  static void try_around(int64_t low, int64_t high, const int64_t& best,
                         const TryPlace& try_place) {
    const int64_t places = std::min<int64_t>(high - low, 8);
    const int64_t nearest = (best - low) * places / (high - low);
    for (const int way : {-1, 1}) {
      for (int64_t place = way < 0 ? nearest : nearest + 1; place >= 0 && place <= places;
           place += way) {
        if (!try_place(low + (high - low) * place / places)) break;
      }
    }
    for (int64_t step = (high - low + places - 1) / places; step > 1;) {
      const int64_t reach = step - 1;
      step = std::max<int64_t>(1, step / 4);
      const int64_t centre = best;
      for (const int way : {-1, 1}) {
        for (int64_t away = step; away <= reach; away += step) {
          const int64_t at = centre + way * away;
          if (at < low || at > high || !try_place(at)) break;
        }
      }
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  const OperatorId op_;
  const SplitSurroundings& surroundings_;
  const SplitEffort effort_;
  std::vector<double> whole_us_;  // by lane
};

class Alone : public SplitSurroundings {
 public:
  explicit Alone(const Problem& problem) : problem_(problem) {}

  std::vector<double> starts_us(const std::vector<SplitPart>& parts) const override {
    std::vector<double> starts(parts.size(), 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const LaneTraits& lane = problem_.lanes[parts[i].lane];
      if (!lane.asynchronous) continue;
      const double host_us = start_of(parts[i].lane).host_us;
      for (size_t j = 0; j < parts.size(); ++j) {
        if (parts[j].lane == lane.fed_by) starts[j] += host_us;
      }
      starts[i] += started_us(parts[i].lane) + copies_us(parts[i].lane, inputs_of(parts[i].slice));
    }
    return starts;
  }

  double joining_us(const std::vector<SplitPart>&, const SplitPart& part) const override {
    const LaneTraits& lane = problem_.lanes[part.lane];
    if (!lane.asynchronous) return 0;
    const Graph& graph = *problem_.graph;
    const TensorRegion made{graph.op(part.slice.op).output, output_region(graph, part.slice)};
    return copies_us(part.lane, {made}) + seen_us(part.lane);
  }

 private:
  // Who waits for a queue: whoever feeds it, or else the first lane of the host.
  int host_of(int lane) const {
    if (problem_.lanes[lane].fed_by != kNone) return problem_.lanes[lane].fed_by;
    for (size_t host = 0; host < problem_.lanes.size(); ++host) {
      if (!problem_.lanes[host].asynchronous) return static_cast<int>(host);
    }
    return kNone;
  }

  StartCosts start_of(int lane) const { return problem_.cost->start(lane, host_of(lane)); }

  // What it takes the host to see the end of a queue.
  double seen_us(int lane) const {
    const int host = host_of(lane);
    const double crossing = host == kNone ? 0 : problem_.cost->crossing_us(lane, host);
    return std::min(crossing, start_of(lane).queue_us);
  }

  // What passes until the queue's slice starts.
  double started_us(int lane) const { return start_of(lane).queue_us - seen_us(lane); }

  std::vector<TensorRegion> inputs_of(const Slice& slice) const {
    const Graph& graph = *problem_.graph;
    const Operator& op = graph.op(slice.op);
    std::vector<TensorRegion> inputs;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (graph.tensor(op.inputs[i]).kind == TensorKind::kConstant) continue;
      inputs.push_back({op.inputs[i], input_region(graph, slice.op, static_cast<int>(i),
                                                   output_region(graph, slice))});
    }
    return inputs;
  }

  double copies_us(int lane, const std::vector<TensorRegion>& regions) const {
    if (!problem_.lanes[lane].own_memory) return 0;
    double us = 0;
    for (const TensorRegion& region : regions) {
      us += problem_.cost->copy_us(lane, copy_size(*problem_.graph, region));
    }
    return us;
  }

  const Problem& problem_;
};

}  // namespace

std::vector<double> ends_us(const CostModel& cost, const std::vector<SplitPart>& parts,
                            const std::vector<double>& starts_us) {
  std::vector<double> ends(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) ends[i] = starts_us[i] + parts[i].us;
  if (parts.size() < 2) return ends;
  std::vector<Contention> contention;
  for (const SplitPart& part : parts) contention.push_back(cost.contention(part.lane, part.slice));

  // From one start or end of a part to the next, all rates stay as they are.
  std::vector<double> left;  // of each part, microseconds alone
  for (const SplitPart& part : parts) left.push_back(part.us);
  std::vector<bool> done(parts.size(), false);
  double now = *std::min_element(starts_us.begin(), starts_us.end());
  while (std::find(done.begin(), done.end(), false) != done.end()) {
    double next = std::numeric_limits<double>::infinity();
    std::vector<double> rates(parts.size(), 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (done[i]) continue;
      if (starts_us[i] > now) {
        next = std::min(next, starts_us[i]);
        continue;
      }
      double others = -1;  // the most memory-bound of them
      for (size_t j = 0; j < parts.size(); ++j) {
        if (j != i && !done[j] && starts_us[j] <= now) {
          others = std::max(others, contention[j].memory_share);
        }
      }
      rates[i] = others < 0 ? 1 : 1 / slowdown(contention[i], others);
      next = std::min(next, now + left[i] / rates[i]);
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (rates[i] == 0) continue;
      const double end = now + left[i] / rates[i];
      left[i] -= (next - now) * rates[i];
      if (end <= next) {
        done[i] = true;
        ends[i] = end;
      }
    }
    now = next;
  }
  return ends;
}

Split choose_split(const Problem& problem, OperatorId op, const SplitSurroundings& surroundings,
                   SplitEffort effort) {
  return SplitSearch(problem, op, surroundings, effort).run();
}

Split choose_split(const Problem& problem, OperatorId op) {
  return choose_split(problem, op, Alone(problem));
}

}  // namespace tandem
