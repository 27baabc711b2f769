// What a solution of a mode problem costs: the one definition of makespan (mode_problem.h), with
// and without contention.
#pragma once

#include <vector>

#include "schedule/mode_tables.h"

namespace tandem {

struct PartTime {
  double start_us = 0;
  double end_us = 0;

  bool operator==(const PartTime&) const = default;
};

struct Evaluation {
  double makespan_us = 0;
  std::vector<std::vector<PartTime>> lanes;  // like ModeSchedule::lanes
};

// The schedule must pass check_mode_schedule(). Lanes do not slow each other down.
Evaluation evaluate(const ModeTables& tables, const ModeSchedule& schedule);

// The same with contention: while parts run on other lanes, the time that is left of a part passes
// more slowly, by the factor of cost_table.h; of several others, the most memory-bound counts.
Evaluation evaluate_with_contention(const ModeTables& tables, const ModeSchedule& schedule);

// With contention if the problem knows any: what plans are chosen by.
double predicted_makespan_us(const ModeTables& tables, const ModeSchedule& schedule);

// No solution takes less (without contention): the longest way through the graph with each operator
// at its best, and all work spread over lanes as suits them best. The latter is a bound by
// Lagrange: for any weights of lanes w >= 0 of sum 1, the busiest lane has at least
// sum over operators of the least over modes of sum over parts of w[lane] * us.
double lower_bound_us(const ModeTables& tables);

}  // namespace tandem
