#include "schedule/inter.h"

#include <algorithm>
#include <numeric>

#include "schedule/partial_schedule.h"

namespace tandem {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// By operator and lane: the fastest mode that is one part there; kNone if there is none.
std::vector<std::vector<int>> whole_modes(const ModeTables& tables) {
  std::vector<std::vector<int>> whole(tables.operators, std::vector<int>(tables.lanes, kNone));
  for (int op = 0; op < tables.operators; ++op) {
    for (int mode = 0; mode < tables.mode_count(op); ++mode) {
      if (tables.part_count(op, mode) != 1) continue;
      const size_t part = tables.part(op, mode, 0);
      int& best = whole[op][tables.lane[part]];
      if (best == kNone || tables.us[part] < tables.us[tables.part(op, best, 0)]) best = mode;
    }
  }
  return whole;
}

// Modes that may be chosen: whole ones, or all if a pin leaves none.
std::vector<std::vector<int>> candidates_of(const ModeTables& tables) {
  std::vector<std::vector<int>> result = whole_modes(tables);
  for (int op = 0; op < tables.operators; ++op) {
    std::erase(result[op], kNone);
    if (!result[op].empty()) continue;
    result[op].resize(tables.mode_count(op));
    std::iota(result[op].begin(), result[op].end(), 0);
  }
  return result;
}

double longest_us(const ModeTables& tables, int op, int mode) {
  double us = 0;
  for (int p = 0; p < tables.part_count(op, mode); ++p) {
    us = std::max(us, tables.us[tables.part(op, mode, p)]);
  }
  return us;
}

// Of all pairs of different lanes.
double mean_latency_us(const ModeTables& tables) {
  if (tables.lanes < 2) return 0;
  double sum = 0;
  for (int from = 0; from < tables.lanes; ++from) {
    for (int to = 0; to < tables.lanes; ++to) {
      if (from != to) sum += tables.latency_us(from, to);
    }
  }
  return sum / (tables.lanes * (tables.lanes - 1));
}

// Lanes with gaps.
class Timeline {
 public:
  Timeline(const ModeTables& tables, const std::vector<double>& free_from)
      : tables_(tables),
        free_from_(free_from),
        busy_(tables.lanes),
        ends_(static_cast<size_t>(tables.operators) * tables.stride),
        modes_(tables.operators, 0) {}

  // The end of the last part. Parts that share a lane come one after another.
  double end_us(int op, int mode) { return place(op, mode, false); }
  void add(int op, int mode) { place(op, mode, true); }

  ModeSchedule schedule() const {
    ModeSchedule schedule;
    schedule.modes = modes_;
    for (const std::vector<Busy>& lane : busy_) {
      auto& order = schedule.lanes.emplace_back();
      for (const Busy& busy : lane) order.push_back(busy.part);
    }
    return schedule;
  }

 private:
  struct Busy {
    double start = 0;
    double end = 0;
    PartRef part;
  };

  double place(int op, int mode, bool keep) {
    double latest = 0;
    double after[kMaxModeLanes] = {};  // parts of this operator on the same lane
    for (int p = 0; p < tables_.part_count(op, mode); ++p) {
      const int lane = tables_.lane[tables_.part(op, mode, p)];
      const auto [arrived, duration] = tables_.arrival_of(modes_, ends_, op, mode, p);
      const double ready = std::max({free_from_[lane], after[lane], arrived});
      const auto gap = gap_for(lane, ready, duration);
      const double start = std::max(ready, gap == busy_[lane].begin() ? 0 : std::prev(gap)->end);
      after[lane] = start + duration;
      latest = std::max(latest, start + duration);
      if (!keep) continue;
      busy_[lane].insert(gap, {start, start + duration, {op, p}});
      ends_[tables_.slot(op, p)] = start + duration;
      modes_[op] = mode;
    }
    return latest;
  }

  // Before which entry there is room from `ready` on.
  std::vector<Busy>::iterator gap_for(int lane, double ready, double duration) {
    std::vector<Busy>& busy = busy_[lane];
    auto next = busy.end();
    while (next != busy.begin() && std::prev(next)->start >= ready) --next;
    // What begins before `ready` may end after it.
    for (; next != busy.end(); ++next) {
      const double start = std::max(ready, next == busy.begin() ? 0 : std::prev(next)->end);
      if (start + duration <= next->start) break;
    }
    return next;
  }

  const ModeTables& tables_;
  const std::vector<double>& free_from_;
  std::vector<std::vector<Busy>> busy_;  // by lane, in order
  std::vector<double> ends_;             // by slot
  std::vector<int> modes_;
};

}  // namespace

std::vector<double> upward_ranks(const ModeTables& tables) {
  const auto candidates = candidates_of(tables);
  const double latency = mean_latency_us(tables);
  std::vector<double> ranks(tables.operators, 0);
  for (int op = tables.operators - 1; op >= 0; --op) {
    for (int i = tables.out_begin[op]; i < tables.out_begin[op + 1]; ++i) {
      const int to = tables.edges[tables.out_edges[i]].to;
      ranks[op] = std::max(ranks[op], latency + ranks[to]);
    }
    double sum = 0;
    for (const int mode : candidates[op]) sum += longest_us(tables, op, mode);
    ranks[op] += sum / static_cast<double>(candidates[op].size());
  }
  return ranks;
}

std::vector<std::vector<double>> optimistic_costs(const ModeTables& tables) {
  const auto whole = whole_modes(tables);
  const double latency = mean_latency_us(tables);
  std::vector<std::vector<double>> costs(tables.operators, std::vector<double>(tables.lanes, 0));
  for (int op = tables.operators - 1; op >= 0; --op) {
    for (int lane = 0; lane < tables.lanes; ++lane) {
      for (int i = tables.out_begin[op]; i < tables.out_begin[op + 1]; ++i) {
        const int to = tables.edges[tables.out_edges[i]].to;
        double best = kNever;
        for (int other = 0; other < tables.lanes; ++other) {
          if (whole[to][other] == kNone) continue;
          best = std::min(best, costs[to][other] + longest_us(tables, to, whole[to][other]) +
                                    (other == lane ? 0 : latency));
        }
        if (best != kNever) costs[op][lane] = std::max(costs[op][lane], best);
      }
    }
  }
  return costs;
}

StatusOr<ModeSchedule> HeftScheduler::schedule(const ModeTables& tables, const SearchOptions&,
                                               SearchReport*) const {
  const auto candidates = candidates_of(tables);
  const std::vector<double> ranks = upward_ranks(tables);
  std::vector<int> order(tables.operators);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ranks[a] > ranks[b]; });
  return build_twice(tables, [&](const std::vector<double>& free) {
    Timeline timeline(tables, free);
    for (const int op : order) {
      int best = kNone;
      double best_us = kNever;
      for (const int mode : candidates[op]) {
        const double us = timeline.end_us(op, mode);
        if (us < best_us) {
          best_us = us;
          best = mode;
        }
      }
      timeline.add(op, best);
    }
    return timeline.schedule();
  });
}

StatusOr<ModeSchedule> PeftScheduler::schedule(const ModeTables& tables, const SearchOptions&,
                                               SearchReport*) const {
  const auto candidates = candidates_of(tables);
  const auto costs = optimistic_costs(tables);
  std::vector<double> ranks;
  for (const std::vector<double>& row : costs) {
    ranks.push_back(std::accumulate(row.begin(), row.end(), 0.0) / tables.lanes);
  }
  return build_twice(tables, [&](const std::vector<double>& free) {
    Timeline timeline(tables, free);
    std::vector<int> missing(tables.operators);
    std::vector<int> ready;
    for (int op = 0; op < tables.operators; ++op) {
      missing[op] = tables.in_begin[op + 1] - tables.in_begin[op];
      if (missing[op] == 0) ready.push_back(op);
    }
    while (!ready.empty()) {
      const auto next = std::max_element(ready.begin(), ready.end(), [&](int a, int b) {
        return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : a > b;
      });
      const int op = *next;
      ready.erase(next);
      int best = kNone;
      double best_us = kNever;
      for (const int mode : candidates[op]) {
        double ahead = 0;
        for (int p = 0; p < tables.part_count(op, mode); ++p) {
          ahead = std::max(ahead, costs[op][tables.lane[tables.part(op, mode, p)]]);
        }
        const double us = timeline.end_us(op, mode) + ahead;
        if (us < best_us) {
          best_us = us;
          best = mode;
        }
      }
      timeline.add(op, best);
      for (int i = tables.out_begin[op]; i < tables.out_begin[op + 1]; ++i) {
        const int to = tables.edges[tables.out_edges[i]].to;
        if (--missing[to] == 0) ready.push_back(to);
      }
    }
    return timeline.schedule();
  });
}

StatusOr<ModeSchedule> InterScheduler::schedule(const ModeTables& tables,
                                                const SearchOptions& options,
                                                SearchReport* report) const {
  TANDEM_ASSIGN_OR_RETURN(ModeSchedule heft, HeftScheduler().schedule(tables, options, report));
  TANDEM_ASSIGN_OR_RETURN(ModeSchedule peft, PeftScheduler().schedule(tables, options, report));
  return predicted_makespan_us(tables, peft) < predicted_makespan_us(tables, heft) ? peft : heft;
}

}  // namespace tandem
