#include "schedule/ordered_modes.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedule/evaluator.h"

namespace tandem {

ModeSchedule schedule_of(const ModeTables& tables, const OrderedModes& solution) {
  Sequence sequence;
  for (const int op : solution.order) {
    for (int p = 0; p < tables.part_count(op, solution.modes[op]); ++p) sequence.push_back({op, p});
  }
  return schedule_of(tables, solution.modes, sequence);
}

OrderedModes ordered(const ModeTables& tables, const ModeSchedule& schedule) {
  const Evaluation evaluation = evaluate(tables, schedule);
  std::vector<double> starts(tables.operators, std::numeric_limits<double>::infinity());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      double& start = starts[schedule.lanes[lane][i].op];
      start = std::min(start, evaluation.lanes[lane][i].start_us);
    }
  }
  // No consumer before its producers, even where it need not wait for them.
  for (int op = 0; op < tables.operators; ++op) {
    for (int i = tables.in_begin[op]; i < tables.in_begin[op + 1]; ++i) {
      starts[op] = std::max(starts[op], starts[tables.edges[i].from]);
    }
  }
  OrderedModes result{schedule.modes, std::vector<int>(tables.operators)};
  std::iota(result.order.begin(), result.order.end(), 0);
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](int a, int b) { return starts[a] < starts[b]; });
  return result;
}

}  // namespace tandem
