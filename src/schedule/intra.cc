#include "schedule/intra.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "schedule/dependencies.h"
#include "schedule/single_lane.h"

namespace tandem {
namespace {

struct Share {
  int lane = 0;
  Slice slice;
};

struct Choice {
  std::vector<Share> shares;
  double score = std::numeric_limits<double>::infinity();
};

// When slices would run if operators were committed one after another: a simulation that follows
// the rules of the executor (a slice starts when its lane is free and what it reads is there; a
// crossing is paid for by the lane that waits, unless an earlier one implies it, and so are copies
// between memories, each time that something reads what was copied).
class Simulation {
 public:
  // Lanes are free from `free_from` on.
  Simulation(const Problem& problem, std::vector<double> free_from)
      : problem_(problem),
        free_from_(std::move(free_from)),
        dependencies_(*problem.graph),
        finish_(problem.lanes.size()),
        known_(problem.lanes.size(), std::vector<int>(problem.lanes.size(), 0)),
        known_after_(problem.lanes.size()),
        any_own_memory_(std::any_of(problem.lanes.begin(), problem.lanes.end(),
                                    [](const LaneTraits& lane) { return lane.own_memory; })) {}

  const Placement& placement() const { return dependencies_.placement(); }

  // When the slice could start on that lane.
  double start_us(const Share& share) const {
    const std::vector<int> waits = waits_of(share);
    // A slice has to be enqueued before it can start.
    const auto before = static_cast<double>(finish_[share.lane].size());
    double start =
        std::max(free_at(share.lane), (before + 1) * problem_.cost->enqueue_us(share.lane));
    double crossings = 0;
    for (size_t from = 0; from < waits.size(); ++from) {
      if (waits[from] == 0) continue;
      start = std::max(start, finish_[from][waits[from] - 1]);
      crossings += problem_.cost->crossing_us(static_cast<int>(from), share.lane);
    }
    return start + crossings + copies_us(share);
  }

  // Of what a share makes on memory of its own lane, to the host's.
  double leave_us(const Share& share) const {
    if (!problem_.lanes[share.lane].own_memory) return 0;
    const OperatorId op = share.slice.op;
    const TensorRegion made{problem_.graph->op(op).output,
                            output_region(*problem_.graph, share.slice)};
    return problem_.cost->copy_us(share.lane, copy_size(*problem_.graph, made));
  }

  void commit(const std::vector<Share>& shares) {
    // All of them before any takes its place: slices of one operator do not depend on each other.
    std::vector<double> ends;
    for (const Share& share : shares) {
      ends.push_back(start_us(share) + problem_.cost->slice_us(share.lane, share.slice));
    }
    for (size_t i = 0; i < shares.size(); ++i) {
      const int lane = shares[i].lane;
      const std::vector<int> waits = waits_of(shares[i]);
      for (size_t from = 0; from < waits.size(); ++from) {
        if (waits[from] == 0) continue;
        const std::vector<int>& theirs = known_after_[from][waits[from] - 1];
        for (size_t l = 0; l < theirs.size(); ++l) {
          known_[lane][l] = std::max(known_[lane][l], theirs[l]);
        }
      }
      const auto index = static_cast<int>(finish_[lane].size());
      known_[lane][lane] = index + 1;
      known_after_[lane].push_back(known_[lane]);
      finish_[lane].push_back(ends[i]);
      dependencies_.add({lane, index}, shares[i].slice);
    }
  }

  double makespan_us() const {
    double latest = 0;
    for (size_t lane = 0; lane < finish_.size(); ++lane) {
      latest = std::max(latest, free_at(static_cast<int>(lane)));
    }
    return latest;
  }

 private:
  double free_at(int lane) const {
    return finish_[lane].empty() ? free_from_[lane] : finish_[lane].back();
  }

  // Of what the share reads that is not in its lane's memory, from and to the host's.
  double copies_us(const Share& share) const {
    if (!any_own_memory_) return 0;
    double us = 0;
    for (const Need& need : dependencies_.needs_of(share.slice)) {
      if (problem_.graph->tensor(need.tensor).kind == TensorKind::kConstant) continue;
      if (need.maker.lane == share.lane) continue;
      const CopySize size = copy_size(*problem_.graph, {need.tensor, need.region});
      for (const int lane : {need.maker.lane, share.lane}) {
        if (lane != kNone && problem_.lanes[lane].own_memory) {
          us += problem_.cost->copy_us(lane, size);
        }
      }
    }
    return us;
  }

  // Per lane, how many of its slices the slice has to wait for; 0: none, or known anyway.
  std::vector<int> waits_of(const Share& share) const {
    std::vector<int> count(finish_.size(), 0);
    for (Position p : dependencies_.of(share.slice)) {
      if (p.index + 1 > known_[share.lane][p.lane]) {
        count[p.lane] = std::max(count[p.lane], p.index + 1);
      }
    }
    return count;
  }

  const Problem& problem_;
  const std::vector<double> free_from_;
  Dependencies dependencies_;
  std::vector<std::vector<double>> finish_;                 // by lane and index
  std::vector<std::vector<int>> known_;                     // by lane: what it knows now
  std::vector<std::vector<std::vector<int>>> known_after_;  // by lane and index
  const bool any_own_memory_;
};

class IntraSearch {
 public:
  IntraSearch(const Problem& problem, std::vector<double> free_from)
      : problem_(problem), graph_(*problem.graph), simulation_(problem, std::move(free_from)) {
    for (int from = 0; from < lane_count(); ++from) {
      for (int to = 0; to < lane_count(); ++to) {
        if (from != to) join_us_ = std::max(join_us_, problem.cost->crossing_us(from, to));
      }
    }
  }

  // Without waits.
  Schedule run() {
    Schedule schedule;
    schedule.strategy = "intra";
    schedule.lanes.resize(problem_.lanes.size());
    for (size_t op = 0; op < graph_.operators().size(); ++op) {
      if (!simulation_.placement().launched[op]) continue;
      const Choice choice = choose(static_cast<OperatorId>(op));
      simulation_.commit(choice.shares);
      for (const Share& share : choice.shares) {
        ScheduledSlice scheduled;
        scheduled.slice = share.slice;
        scheduled.predicted_us = problem_.cost->slice_us(share.lane, share.slice);
        schedule.lanes[share.lane].push_back(std::move(scheduled));
      }
    }
    return schedule;
  }

  double makespan_us() const { return simulation_.makespan_us(); }

 private:
  int lane_count() const { return static_cast<int>(problem_.lanes.size()); }

  Choice choose(OperatorId op) const {
    Choice best;
    const auto consider = [&](std::vector<Share> shares) {
      const double score = score_of(shares);
      if (score < best.score) best = {std::move(shares), score};
    };
    for (int lane = 0; lane < lane_count(); ++lane) consider({{lane, Slice{.op = op}}});
    for (const PartitionAxis& axis : partition_axes(graph_, op)) {
      const int64_t extent = graph_.output_of(op).dims[axis.axis];
      if (lane_count() < 2 || extent <= axis.granularity) continue;
      consider(cut(op, axis, extent));
    }
    return best;
  }

  double score_of(const std::vector<Share>& shares) const {
    double end = 0;
    for (const Share& share : shares) {
      end = std::max(
          end, simulation_.start_us(share) + problem_.cost->slice_us(share.lane, share.slice));
    }
    const OperatorId op = shares.front().slice.op;
    // What parts of an operator made is read everywhere.
    const bool joined = shares.size() > 1 && !graph_.output_of(op).consumers.empty();
    if (!joined) return end;
    double leave_us = 0;
    for (const Share& share : shares) leave_us = std::max(leave_us, simulation_.leave_us(share));
    return end + join_us_ + leave_us;
  }

  // One share per lane in the order of lanes, so that neighbouring operators cut along one axis
  // keep their parts on their lanes. Shares that come out empty are left out.
  std::vector<Share> cut(OperatorId op, const PartitionAxis& axis, int64_t extent) const {
    const int64_t units = (extent + axis.granularity - 1) / axis.granularity;
    const auto slice_of = [&](int64_t begin, int64_t end) {
      if (end - begin == units) return Slice{.op = op};
      return Slice{op, axis.axis, begin * axis.granularity,
                   std::min(end * axis.granularity, extent)};
    };
    std::vector<int64_t> cuts = proportional_cuts(op, units);
    // When a lane can start depends, slightly, on its share: what it reads may be there or not.
    for (int round = 0; round < 2; ++round) {
      std::vector<double> start(lane_count());
      for (int lane = 0; lane < lane_count(); ++lane) {
        const bool empty = cuts[lane] == cuts[lane + 1];
        start[lane] = simulation_.start_us(
            {lane, empty ? Slice{.op = op} : slice_of(cuts[lane], cuts[lane + 1])});
      }
      const auto end_us = [&](int lane, int64_t begin, int64_t end) {
        if (begin == end) return 0.0;
        return start[lane] + problem_.cost->slice_us(lane, slice_of(begin, end));
      };
      for (bool better = true; better;) {
        better = false;
        for (int i = 1; i < lane_count(); ++i) better |= move_cut(&cuts, i, end_us);
      }
    }
    std::vector<Share> shares;
    for (int lane = 0; lane < lane_count(); ++lane) {
      if (cuts[lane] < cuts[lane + 1]) {
        shares.push_back({lane, slice_of(cuts[lane], cuts[lane + 1])});
      }
    }
    return shares;
  }

  // By the lanes' speeds on the whole operator: lane l gets units [result[l], result[l + 1]).
  std::vector<int64_t> proportional_cuts(OperatorId op, int64_t units) const {
    std::vector<double> speed;
    for (int lane = 0; lane < lane_count(); ++lane) {
      speed.push_back(1 / std::max(problem_.cost->slice_us(lane, Slice{.op = op}), 1e-3));
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

  // Moves the cut between lanes i - 1 and i to where the later of the two ends is earliest. False
  // if it is there already.
  template <typename EndUs>  // double(int lane, int64_t begin, int64_t end)
  static bool move_cut(std::vector<int64_t>* cuts, int i, const EndUs& end_us) {
    const int64_t low = (*cuts)[i - 1];
    const int64_t high = (*cuts)[i + 1];
    const auto later_end = [&](int64_t at) {
      return std::max(end_us(i - 1, low, at), end_us(i, at, high));
    };
    const int64_t before = (*cuts)[i];
    int64_t best = before;
    double best_us = later_end(before);
    const auto try_range = [&](int64_t begin, int64_t end, int64_t step) {
      for (int64_t at = begin; at <= end; at += step) {
        const double us = later_end(at);
        if (us < best_us) {
          best = at;
          best_us = us;
        }
      }
    };
    // Times have steps (tiles), so that every place is tried; where there are many, first coarsely.
    constexpr int64_t kPlaces = 64;
    const int64_t step = std::max<int64_t>(1, (high - low) / kPlaces);
    try_range(low, high, step);
    if (step > 1) try_range(std::max(low, best - step), std::min(high, best + step), 1);
    (*cuts)[i] = best;
    return best != before;
  }

  const Problem& problem_;
  const Graph& graph_;
  Simulation simulation_;
  double join_us_ = 0;
};

// When each lane has enqueued the slices of those that it feeds.
std::vector<double> free_after_feeding(const Problem& problem, const Schedule& schedule) {
  std::vector<double> free_from(problem.lanes.size(), 0);
  for (size_t lane = 0; lane < problem.lanes.size(); ++lane) {
    const int feeder = problem.lanes[lane].fed_by;
    if (feeder == kNone) continue;
    free_from[feeder] += static_cast<double>(schedule.lanes[lane].size()) *
                         problem.cost->enqueue_us(static_cast<int>(lane));
  }
  return free_from;
}

}  // namespace

StatusOr<Schedule> IntraScheduler::schedule(const Problem& problem) const {
  if (!problem.cost) return invalid_argument("strategy 'intra' needs measured costs");
  if (problem.lanes.empty()) return invalid_argument("there are no lanes");
  const std::vector<double> at_once(problem.lanes.size(), 0);
  Schedule schedule = IntraSearch(problem, at_once).run();
  IntraSearch search(problem, free_after_feeding(problem, schedule));
  schedule = search.run();
  int best = 0;
  for (int lane = 1; lane < static_cast<int>(problem.lanes.size()); ++lane) {
    if (single_lane_us(problem, lane) < single_lane_us(problem, best)) best = lane;
  }
  if (single_lane_us(problem, best) <= search.makespan_us()) {
    schedule = single_lane_schedule(problem, best);
    schedule.strategy = "intra";
  }
  TANDEM_RETURN_IF_ERROR(derive_waits(*problem.graph, &schedule));
  return schedule;
}

}  // namespace tandem
