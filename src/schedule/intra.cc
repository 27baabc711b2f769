#include "schedule/intra.h"

#include <algorithm>

#include "schedule/choose_split.h"
#include "schedule/dependencies.h"
#include "schedule/single_lane.h"

namespace tandem {
namespace {

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
  double start_us(const SplitPart& part) const {
    const std::vector<int> waits = waits_of(part);
    // A slice has to be enqueued before it can start.
    const auto before = static_cast<double>(finish_[part.lane].size());
    double start =
        std::max(free_at(part.lane), (before + 1) * problem_.cost->enqueue_us(part.lane));
    double crossings = 0;
    for (size_t from = 0; from < waits.size(); ++from) {
      if (waits[from] == 0) continue;
      start = std::max(start, finish_[from][waits[from] - 1]);
      crossings += problem_.cost->crossing_us(static_cast<int>(from), part.lane);
    }
    return start + crossings + copies_us(part);
  }

  // Of what a part makes on memory of its own lane, to the host's.
  double leave_us(const SplitPart& part) const {
    if (!problem_.lanes[part.lane].own_memory) return 0;
    const OperatorId op = part.slice.op;
    const TensorRegion made{problem_.graph->op(op).output,
                            output_region(*problem_.graph, part.slice)};
    return problem_.cost->copy_us(part.lane, copy_size(*problem_.graph, made));
  }

  void commit(const std::vector<SplitPart>& parts) {
    // All of them before any takes its place: slices of one operator do not depend on each other.
    std::vector<double> starts;
    for (const SplitPart& part : parts) starts.push_back(start_us(part));
    const std::vector<double> ends = ends_us(*problem_.cost, parts, starts);
    for (size_t i = 0; i < parts.size(); ++i) {
      const int lane = parts[i].lane;
      const std::vector<int> waits = waits_of(parts[i]);
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
      dependencies_.add({lane, index}, parts[i].slice);
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

  // Of what the part reads that is not in its lane's memory, from and to the host's.
  double copies_us(const SplitPart& part) const {
    if (!any_own_memory_) return 0;
    double us = 0;
    for (const Need& need : dependencies_.needs_of(part.slice)) {
      if (problem_.graph->tensor(need.tensor).kind == TensorKind::kConstant) continue;
      if (need.maker.lane == part.lane) continue;
      const CopySize size = copy_size(*problem_.graph, {need.tensor, need.region});
      for (const int lane : {need.maker.lane, part.lane}) {
        if (lane != kNone && problem_.lanes[lane].own_memory) {
          us += problem_.cost->copy_us(lane, size);
        }
      }
    }
    return us;
  }

  // Per lane, how many of its slices the slice has to wait for; 0: none, or known anyway.
  std::vector<int> waits_of(const SplitPart& part) const {
    std::vector<int> count(finish_.size(), 0);
    for (Position p : dependencies_.of(part.slice)) {
      if (p.index + 1 > known_[part.lane][p.lane]) {
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

// An operator behind those that were committed.
class Committed : public SplitSurroundings {
 public:
  Committed(const Problem& problem, const Simulation& simulation)
      : problem_(problem), simulation_(simulation) {
    const auto lanes = static_cast<int>(problem.lanes.size());
    for (int from = 0; from < lanes; ++from) {
      for (int to = 0; to < lanes; ++to) {
        if (from != to) join_us_ = std::max(join_us_, problem.cost->crossing_us(from, to));
      }
    }
  }

  std::vector<double> starts_us(const std::vector<SplitPart>& parts) const override {
    std::vector<double> starts;
    for (const SplitPart& part : parts) starts.push_back(simulation_.start_us(part));
    return starts;
  }

  // What parts of an operator made is read everywhere.
  double joining_us(const std::vector<SplitPart>& parts, const SplitPart& part) const override {
    const bool read = !problem_.graph->output_of(part.slice.op).consumers.empty();
    return parts.size() > 1 && read ? join_us_ + simulation_.leave_us(part) : 0;
  }

 private:
  const Problem& problem_;
  const Simulation& simulation_;
  double join_us_ = 0;
};

class IntraSearch {
 public:
  IntraSearch(const Problem& problem, std::vector<double> free_from)
      : problem_(problem), simulation_(problem, std::move(free_from)) {}

  // Without waits.
  Schedule run() {
    Schedule schedule;
    schedule.strategy = "intra";
    schedule.lanes.resize(problem_.lanes.size());
    const Committed surroundings(problem_, simulation_);
    // Of a few operators, every cut counts.
    constexpr int kFew = 8;
    const std::vector<bool>& launched = simulation_.placement().launched;
    const bool few = std::count(launched.begin(), launched.end(), true) <= kFew;
    const SplitEffort effort = few ? SplitEffort::kThorough : SplitEffort::kQuick;
    for (size_t op = 0; op < problem_.graph->operators().size(); ++op) {
      if (!simulation_.placement().launched[op]) continue;
      const Split split = choose_split(problem_, static_cast<OperatorId>(op), surroundings, effort);
      simulation_.commit(split.parts);
      for (const SplitPart& part : split.parts) {
        schedule.lanes[part.lane].push_back({part.slice, part.threads, part.us});
      }
    }
    return schedule;
  }

  double makespan_us() const { return simulation_.makespan_us(); }

 private:
  const Problem& problem_;
  Simulation simulation_;
};

// When each lane has enqueued the slices of those that it feeds, if every lane that is fed has a
// slice of every operator.
std::vector<double> free_after_feeding(const Problem& problem, const Placement& placement) {
  const auto operators =
      static_cast<double>(std::count(placement.launched.begin(), placement.launched.end(), true));
  std::vector<double> free_from(problem.lanes.size(), 0);
  for (size_t lane = 0; lane < problem.lanes.size(); ++lane) {
    const int feeder = problem.lanes[lane].fed_by;
    if (feeder == kNone) continue;
    free_from[feeder] += operators * problem.cost->enqueue_us(static_cast<int>(lane));
  }
  return free_from;
}

}  // namespace

StatusOr<Schedule> IntraScheduler::divide(const Problem& problem) const {
  if (!problem.cost) return invalid_argument("strategy 'intra' needs measured costs");
  if (problem.lanes.empty()) return invalid_argument("there are no lanes");
  IntraSearch search(problem, free_after_feeding(problem, analyse(*problem.graph)));
  Schedule schedule = search.run();
  int best = 0;
  for (int lane = 1; lane < static_cast<int>(problem.lanes.size()); ++lane) {
    if (single_lane_us(problem, lane) < single_lane_us(problem, best)) best = lane;
  }
  if (single_lane_us(problem, best) <= search.makespan_us()) {
    schedule = single_lane_schedule(problem, best);
    schedule.strategy = "intra";
  }
  return schedule;
}

StatusOr<Schedule> IntraScheduler::schedule(const Problem& problem) const {
  TANDEM_ASSIGN_OR_RETURN(Schedule schedule, divide(problem));
  TANDEM_RETURN_IF_ERROR(derive_waits(*problem.graph, &schedule));
  return schedule;
}

}  // namespace tandem
