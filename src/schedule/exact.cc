#include "schedule/exact.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/joint.h"
#include "schedule/order_evaluator.h"
#include "support/stopwatch.h"

namespace tandem {
namespace {

constexpr double kNever = OrderEvaluator::kNever;

// Nodes, and how many more there may be.
class Limits {
 public:
  explicit Limits(const SearchOptions& options)
      : most_(options.evaluations > 0 ? options.evaluations : ExactScheduler::kMostNodes),
        budget_ms_(options.budget_ms) {}

  // Notes a node. False when there may be no more.
  bool next() {
    constexpr int64_t kNodesPerLookAtTheClock = 1024;
    ++nodes_;
    if (nodes_ >= most_) exceeded_ = true;
    if (budget_ms_ > 0 && nodes_ % kNodesPerLookAtTheClock == 0) {
      exceeded_ = exceeded_ || stopwatch_.milliseconds() > budget_ms_;
    }
    return !exceeded_;
  }
  bool exceeded() const { return exceeded_; }
  int64_t nodes() const { return nodes_; }

 private:
  const int64_t most_;
  const double budget_ms_;
  Stopwatch stopwatch_;
  int64_t nodes_ = 0;
  bool exceeded_ = false;
};

// The best orders of lanes for modes that are all chosen.
class OrderSearch {
 public:
  OrderSearch(const ModeTables& tables, const std::vector<int>& modes, double* best_us,
              ModeSchedule* best, Limits* limits)
      : tables_(tables), modes_(modes), best_us_(*best_us), best_(*best), limits_(*limits) {
    std::vector<int> counts(tables.lanes, 0);
    for (int op = 0; op < tables.operators; ++op) {
      for (int p = 0; p < tables.part_count(op, modes[op]); ++p) {
        const int lane = tables.lane[tables.part(op, modes[op], p)];
        index_.resize(tables.slot(op, p) + 1, kNone);
        index_[tables.slot(op, p)] = static_cast<int>(jobs_.size());
        jobs_.push_back({{op, p}, lane, tables.duration_us(modes, op, p)});
        ++counts[lane];
      }
    }
    free_.resize(tables.lanes);
    tables.free_from(counts, free_.data());
    for (Job& job : jobs_) add_needs(&job);
    for (size_t j = jobs_.size(); j-- > 0;) {
      for (const Need& need : jobs_[j].needs) {
        double& tail = jobs_[need.job].tail_us;
        tail = std::max(tail, need.latency_us + jobs_[j].us + jobs_[j].tail_us);
      }
    }
    schedule_.modes = modes;
    schedule_.lanes.resize(tables.lanes);
    heads_.resize(jobs_.size());
    ends_.assign(jobs_.size(), kNever);
  }

  void run() { extend(0, 0); }

 private:
  struct Need {
    int job = 0;
    double latency_us = 0;
  };
  struct Job {
    PartRef part;
    int lane = 0;
    double us = 0;
    double tail_us = 0;  // from its end to the makespan, at least
    std::vector<Need> needs{};
  };

  void add_needs(Job* job) {
    const int op = job->part.op;
    for (int i = tables_.in_begin[op]; i < tables_.in_begin[op + 1]; ++i) {
      const ModeTables::Edge& edge = tables_.edges[i];
      const size_t at = tables_.entry(edge, modes_[edge.from], modes_[op], job->part.part);
      for (unsigned mask = tables_.entries[at].waits; mask != 0; mask &= mask - 1) {
        const int from = index_[tables_.slot(edge.from, std::countr_zero(mask))];
        const int from_lane = jobs_[from].lane;
        const double us = from_lane == job->lane ? 0 : tables_.latency_us(from_lane, job->lane);
        job->needs.push_back({from, us});
      }
    }
  }

  // Earliest starts of what is left, given what has been placed; and what the makespan is at least.
  double bound(double latest) {
    double bound = latest;
    std::vector<double> first(free_.size(), kNever);
    std::vector<double> work(free_.size(), 0);
    std::vector<double> shortest_tail(free_.size(), kNever);
    for (size_t j = 0; j < jobs_.size(); ++j) {
      const Job& job = jobs_[j];
      if (ends_[j] != kNever) {
        heads_[j] = ends_[j] - job.us;
        continue;
      }
      double head = free_[job.lane];
      for (const Need& need : job.needs) {
        head = std::max(head, heads_[need.job] + jobs_[need.job].us + need.latency_us);
      }
      heads_[j] = head;
      bound = std::max(bound, head + job.us + job.tail_us);
      first[job.lane] = std::min(first[job.lane], head);
      work[job.lane] += job.us;
      shortest_tail[job.lane] = std::min(shortest_tail[job.lane], job.tail_us);
    }
    for (size_t lane = 0; lane < free_.size(); ++lane) {
      if (work[lane] > 0) bound = std::max(bound, first[lane] + work[lane] + shortest_tail[lane]);
    }
    return bound;
  }

  bool is_ready(const Job& job) const {
    return std::all_of(job.needs.begin(), job.needs.end(),
                       [&](const Need& need) { return ends_[need.job] != kNever; });
  }

  void extend(size_t placed, double latest) {
    if (!limits_.next()) return;
    if (placed == jobs_.size()) {
      if (latest < best_us_ * (1 - 1e-12)) {
        best_us_ = latest;
        best_ = schedule_;
      }
      return;
    }
    if (bound(latest) >= best_us_ * (1 - 1e-12)) return;
    // Of what could be next, the first to end: on its lane, something starts before that.
    size_t first = jobs_.size();
    for (size_t j = 0; j < jobs_.size(); ++j) {
      if (ends_[j] != kNever || !is_ready(jobs_[j])) continue;
      if (first == jobs_.size() || heads_[j] + jobs_[j].us < heads_[first] + jobs_[first].us) {
        first = j;
      }
    }
    const int lane = jobs_[first].lane;
    const double before = heads_[first] + jobs_[first].us;
    std::vector<std::pair<double, size_t>> next;  // by start, and the longest way on
    for (size_t j = 0; j < jobs_.size(); ++j) {
      if (ends_[j] != kNever || jobs_[j].lane != lane || !is_ready(jobs_[j])) continue;
      if (j == first || heads_[j] < before) next.emplace_back(-jobs_[j].tail_us, j);
    }
    std::sort(next.begin(), next.end());
    const double free = free_[lane];
    std::vector<double> starts;
    for (const auto& [tail, j] : next) starts.push_back(heads_[j]);
    for (size_t i = 0; i < next.size(); ++i) {
      const size_t j = next[i].second;
      ends_[j] = free_[lane] = starts[i] + jobs_[j].us;
      schedule_.lanes[lane].push_back(jobs_[j].part);
      extend(placed + 1, std::max(latest, ends_[j]));
      schedule_.lanes[lane].pop_back();
      ends_[j] = kNever;
      free_[lane] = free;
    }
  }

  const ModeTables& tables_;
  const std::vector<int>& modes_;
  double& best_us_;
  ModeSchedule& best_;
  Limits& limits_;
  std::vector<Job> jobs_;   // in a topological order
  std::vector<int> index_;  // by slot: into jobs_
  std::vector<double> free_;
  std::vector<double> heads_;
  std::vector<double> ends_;  // kNever: not placed yet
  ModeSchedule schedule_;
};

// Chooses modes, in the problem's order.
class ModeSearch {
 public:
  ModeSearch(const ModeTables& tables, ModeSchedule start, Limits* limits)
      : tables_(tables),
        limits_(*limits),
        best_(std::move(start)),
        best_us_(evaluate(tables, best_).makespan_us),
        modes_(tables.operators, 0),
        ends_(static_cast<size_t>(tables.operators) * tables.stride),
        work_(tables.lanes, 0),
        least_left_(tables.operators + 1, 0) {
    for (int op = tables.operators - 1; op >= 0; --op) {
      double least = kNever;
      for (int mode = 0; mode < tables.mode_count(op); ++mode) {
        double sum = 0;
        for (int p = 0; p < tables.part_count(op, mode); ++p) {
          sum += tables.us[tables.part(op, mode, p)];
        }
        least = std::min(least, sum);
      }
      least_left_[op] = least_left_[op + 1] + least;
    }
  }

  ModeSchedule run() && {
    choose(0, 0);
    return std::move(best_);
  }

 private:
  void choose(int op, double path) {
    if (limits_.exceeded()) return;
    if (op == tables_.operators) {
      OrderSearch(tables_, modes_, &best_us_, &best_, &limits_).run();
      return;
    }
    if (!limits_.next()) return;
    std::vector<std::pair<double, int>> promising;
    for (int mode = 0; mode < tables_.mode_count(op); ++mode) {
      promising.emplace_back(place(op, mode), mode);
    }
    std::sort(promising.begin(), promising.end());
    for (const auto& [us, mode] : promising) {
      modes_[op] = mode;
      const double now = std::max(path, place(op, mode));
      const int parts = tables_.part_count(op, mode);
      for (int p = 0; p < parts; ++p) work_at(op, mode, p) += tables_.us[tables_.part(op, mode, p)];
      if (std::max(now, work_bound(op + 1)) < best_us_ * (1 - 1e-12)) choose(op + 1, now);
      for (int p = 0; p < parts; ++p) work_at(op, mode, p) -= tables_.us[tables_.part(op, mode, p)];
    }
  }

  double& work_at(int op, int mode, int p) {
    return work_[tables_.lane[tables_.part(op, mode, p)]];
  }

  // What lanes have to do at least, what is left spread over them as suits best.
  double work_bound(int next) const {
    double sum = least_left_[next];
    double most = 0;
    for (const double work : work_) {
      sum += work;
      most = std::max(most, work);
    }
    return std::max(most, sum / tables_.lanes);
  }

  // The ends of its parts if lanes were never busy; and the way on from there.
  double place(int op, int mode) {
    double bound = 0;
    for (int p = 0; p < tables_.part_count(op, mode); ++p) {
      const size_t which = tables_.part(op, mode, p);
      const int lane = tables_.lane[which];
      double start = tables_.problem.lanes[lane].enqueue_us;
      for (int i = tables_.in_begin[op]; i < tables_.in_begin[op + 1]; ++i) {
        const ModeTables::Edge& edge = tables_.edges[i];
        const int from_mode = modes_[edge.from];
        for (unsigned mask = tables_.entries[tables_.entry(edge, from_mode, mode, p)].waits;
             mask != 0; mask &= mask - 1) {
          const int q = std::countr_zero(mask);
          const int from_lane = tables_.lane[tables_.part(edge.from, from_mode, q)];
          const double latency = from_lane == lane ? 0 : tables_.latency_us(from_lane, lane);
          start = std::max(start, ends_[tables_.slot(edge.from, q)] + latency);
        }
      }
      const double end = start + tables_.us[which];
      ends_[tables_.slot(op, p)] = end;
      bound = std::max(bound, end + tables_.tail_us[which]);
    }
    return bound;
  }

  const ModeTables& tables_;
  Limits& limits_;
  ModeSchedule best_;
  double best_us_;
  std::vector<int> modes_;
  std::vector<double> ends_;        // by slot
  std::vector<double> work_;        // by lane
  std::vector<double> least_left_;  // by operator: of it and those after it
};

}  // namespace

int64_t branch_and_bound(const ModeTables& tables, int64_t nodes, double budget_ms,
                         ModeSchedule* schedule) {
  SearchOptions options;
  options.evaluations = nodes;
  options.budget_ms = budget_ms;
  Limits limits(options);
  *schedule = ModeSearch(tables, std::move(*schedule), &limits).run();
  return limits.nodes();
}

StatusOr<ModeSchedule> ExactScheduler::schedule(const ModeTables& tables,
                                                const SearchOptions& options,
                                                SearchReport* report) const {
  if (tables.operators > kMostOperators) {
    return resource_exhausted(fmt::format(
        "strategy 'exact' is for at most {} operators, and there are {}; tools/offline.py proves "
        "more, 'joint' comes close",
        kMostOperators, tables.operators));
  }
  const Stopwatch stopwatch;
  SearchOptions first = options;
  first.evaluations = 0;
  TANDEM_ASSIGN_OR_RETURN(ModeSchedule start, JointScheduler().schedule(tables, first, nullptr));
  Limits limits(options);
  ModeSchedule best = ModeSearch(tables, std::move(start), &limits).run();
  if (report) {
    report->evaluations = limits.nodes();
    report->ms = stopwatch.milliseconds();
  }
  if (!limits.exceeded()) return best;
  return resource_exhausted(
      fmt::format("strategy 'exact' has looked at {} nodes without a proof; give it more "
                  "evaluations or time, or let tools/offline.py or 'joint' do it",
                  limits.nodes()));
}

}  // namespace tandem
