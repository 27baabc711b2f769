// A schedule under construction: operators added one after another, each in one of its modes.
#pragma once

#include <limits>
#include <vector>

#include "schedule/order_evaluator.h"

namespace tandem {

// What is unknown while it grows is left out of its times: sends and copies for readers that are
// not there yet. How many parts lanes will have been fed is taken from elsewhere: `free_from`.
class PartialSchedule {
 public:
  PartialSchedule(const ModeTables& tables, std::vector<double> free_from)
      : tables_(tables),
        free_(std::move(free_from)),
        ends_(static_cast<size_t>(tables.operators) * tables.stride),
        modes_(tables.operators, 0) {}

  // The end of its last part, were it added in that mode. Its producers have been added.
  double end_us(int op, int mode) const;
  // When lanes would then be free (by lane), and its parts end.
  void try_add(int op, int mode, double* free, double* ends) const;
  void add(int op, int mode);
  const std::vector<double>& free_us() const { return free_; }
  OrderedModes solution() const { return {modes_, order_}; }

 private:
  double place(int op, int mode, double* free, double* ends) const;

  const ModeTables& tables_;
  std::vector<double> free_;  // by lane
  std::vector<double> ends_;  // by slot
  std::vector<int> modes_;
  std::vector<int> order_;
};

// Lets `build` (OrderedModes(std::vector<double> free_from)) construct a solution twice: lanes that
// feed others are free later the second time, by what the first one fed.
template <typename Build>
OrderedModes build_twice(const ModeTables& tables, const Build& build) {
  std::vector<double> free(tables.lanes);
  tables.free_from(std::vector<int>(tables.lanes, 0), free.data());
  OrderedModes solution = build(free);
  if (!tables.has_feeders) return solution;
  const ModeSchedule first = schedule_of(tables, solution);
  std::vector<int> counts;
  for (const auto& lane : first.lanes) counts.push_back(static_cast<int>(lane.size()));
  tables.free_from(counts, free.data());
  OrderedModes again = build(free);
  const double before = evaluate(tables, first).makespan_us;
  return evaluate(tables, schedule_of(tables, again)).makespan_us < before ? again : solution;
}

}  // namespace tandem
