#include "schedule/intra_modes.h"

#include <algorithm>

#include "schedule/partial_schedule.h"

namespace tandem {
namespace {

double greatest_latency_us(const ModeTables& tables) {
  return tables.latencies.empty()
             ? 0
             : *std::max_element(tables.latencies.begin(), tables.latencies.end());
}

// Chooses and adds operators in the problem's order.
class Division {
 public:
  Division(const ModeTables& tables, std::vector<double> free_from)
      : tables_(tables),
        join_us_(greatest_latency_us(tables)),
        partial_(tables, std::move(free_from)) {}

  OrderedModes intra() && {
    for (int op = 0; op < tables_.operators; ++op) partial_.add(op, best_mode(partial_, op));
    return partial_.solution();
  }

  OrderedModes chain() && {
    for (int op = 0; op < tables_.operators;) {
      const int end = end_of_run(op);
      if (end == op + 1) {
        partial_.add(op, best_mode(partial_, op));
      } else {
        add_run(op, end);
      }
      op = end;
    }
    return partial_.solution();
  }

 private:
  double joined_us(const PartialSchedule& partial, int op, int mode) const {
    const bool read = tables_.out_begin[op] < tables_.out_begin[op + 1];
    const bool divided = tables_.part_count(op, mode) > 1;
    return partial.end_us(op, mode) + (read && divided ? join_us_ : 0);
  }

  int best_mode(const PartialSchedule& partial, int op) const {
    int best = 0;
    double best_us = OrderEvaluator::kNever;
    for (int mode = 0; mode < tables_.mode_count(op); ++mode) {
      const double us = joined_us(partial, op, mode);
      if (us < best_us) {
        best_us = us;
        best = mode;
      }
    }
    return best;
  }

  // The edge if `op + 1` reads `op` alone, and nothing else reads it.
  const ModeTables::Edge* only_edge(int op) const {
    if (tables_.out_begin[op + 1] - tables_.out_begin[op] != 1) return nullptr;
    const ModeTables::Edge& edge = tables_.edges[tables_.out_edges[tables_.out_begin[op]]];
    const bool alone = tables_.in_begin[edge.to + 1] - tables_.in_begin[edge.to] == 1;
    return edge.to == op + 1 && alone ? &edge : nullptr;
  }

  int end_of_run(int op) const {
    while (op + 1 < tables_.operators && only_edge(op)) ++op;
    return op + 1;
  }

  // The fastest divided mode of `op + 1` that reads nothing from another lane; kNone: there is
  // none.
  int next_mode(const PartialSchedule& partial, int op, int mode) const {
    const ModeTables::Edge& edge = *only_edge(op);
    int best = kNone;
    double best_us = OrderEvaluator::kNever;
    for (int next = 0; next < tables_.mode_count(op + 1); ++next) {
      if (tables_.part_count(op + 1, next) < 2) continue;
      if (tables_.crosses[tables_.cross(edge, mode, next)] != 0) continue;
      const double us = partial.end_us(op + 1, next);
      if (us < best_us) {
        best_us = us;
        best = next;
      }
    }
    return best;
  }

  // Operators [op, run_end), in pieces: from each one on, the way that saves most over one at a
  // time.
  void add_run(int op, int run_end) {
    constexpr int kLongest = 16;
    while (op < run_end) {
      const int end = std::min(run_end, op + kLongest);
      std::vector<int> best;
      double best_saving = 0;
      PartialSchedule one_by_one = partial_;
      std::vector<double> alone_us;
      for (int i = op; i < end; ++i) {
        const int mode = best_mode(one_by_one, i);
        alone_us.push_back(joined_us(one_by_one, i, mode));
        one_by_one.add(i, mode);
      }
      for (int mode = 0; mode < tables_.mode_count(op); ++mode) {
        if (tables_.part_count(op, mode) < 2) continue;
        PartialSchedule partial = partial_;
        std::vector<int> modes;
        for (int i = op, next = mode; next != kNone;) {
          modes.push_back(next);
          const double saving = alone_us[i - op] - joined_us(partial, i, next);
          partial.add(i, next);
          if (saving > best_saving && modes.size() > 1) {
            best_saving = saving;
            best = modes;
          }
          next = i + 1 < end ? next_mode(partial, i, next) : kNone;
          ++i;
        }
      }
      if (best.empty()) best = {best_mode(partial_, op)};
      for (const int mode : best) partial_.add(op++, mode);
    }
  }

  const ModeTables& tables_;
  const double join_us_;
  PartialSchedule partial_;
};

}  // namespace

StatusOr<ModeSchedule> IntraModeScheduler::schedule(const ModeTables& tables, const SearchOptions&,
                                                    SearchReport*) const {
  return schedule_of(tables, build_twice(tables, [&](const std::vector<double>& free) {
                       return Division(tables, free).intra();
                     }));
}

StatusOr<ModeSchedule> ChainModeScheduler::schedule(const ModeTables& tables,
                                                    const SearchOptions& options,
                                                    SearchReport* report) const {
  ModeSchedule chained =
      schedule_of(tables, build_twice(tables, [&](const std::vector<double>& free) {
                    return Division(tables, free).chain();
                  }));
  TANDEM_ASSIGN_OR_RETURN(ModeSchedule intra,
                          IntraModeScheduler().schedule(tables, options, report));
  return predicted_makespan_us(tables, intra) < predicted_makespan_us(tables, chained) ? intra
                                                                                       : chained;
}

}  // namespace tandem
