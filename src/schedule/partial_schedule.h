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

inline const ModeSchedule& as_schedule(const ModeTables& /*tables*/, const ModeSchedule& schedule) {
  return schedule;
}
inline ModeSchedule as_schedule(const ModeTables& tables, const OrderedModes& solution) {
  return schedule_of(tables, solution);
}

// Lets `build` construct a solution (OrderedModes or ModeSchedule) from when lanes are free, twice:
// lanes that feed others are free later the second time, by what the first one fed. The better one.
template <typename Build>
auto build_twice(const ModeTables& tables, const Build& build) {
  std::vector<double> free(tables.lanes);
  tables.free_from(std::vector<int>(tables.lanes, 0), free.data());
  auto first = build(free);
  if (!tables.has_feeders) return first;
  const ModeSchedule& first_schedule = as_schedule(tables, first);
  std::vector<int> counts;
  for (const auto& lane : first_schedule.lanes) counts.push_back(static_cast<int>(lane.size()));
  tables.free_from(counts, free.data());
  auto second = build(free);
  const double before = evaluate(tables, first_schedule).makespan_us;
  return evaluate(tables, as_schedule(tables, second)).makespan_us < before ? second : first;
}

}  // namespace tandem
