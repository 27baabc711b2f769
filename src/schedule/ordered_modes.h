// Solutions as one mode per operator and one order of the operators: what searches change.
#pragma once

#include <vector>

#include "schedule/mode_tables.h"

namespace tandem {

// One mode per operator, and operators in an order in which producers come first. Each lane takes
// its parts in that order, those of one operator in the mode's order. (Orders of lanes exist that
// no order of operators has: two operators that share two lanes, each first on one.)
struct OrderedModes {
  std::vector<int> modes;  // by operator
  std::vector<int> order;  // operators

  bool operator==(const OrderedModes&) const = default;
};

ModeSchedule schedule_of(const ModeTables& tables, const OrderedModes& solution);
// The operators by the start of their first part. Not always as good as the schedule.
OrderedModes ordered(const ModeTables& tables, const ModeSchedule& schedule);

}  // namespace tandem
