#include "schedule/partial_schedule.h"

#include <algorithm>

namespace tandem {

double PartialSchedule::place(int op, int mode, double* free, double* ends) const {
  double latest = 0;
  for (int p = 0; p < tables_.part_count(op, mode); ++p) {
    const int lane = tables_.lane[tables_.part(op, mode, p)];
    const auto [arrived, duration] = tables_.arrival_of(modes_, ends_, op, mode, p);
    free[lane] = std::max(free[lane], arrived) + duration;
    ends[p] = free[lane];
    latest = std::max(latest, free[lane]);
  }
  return latest;
}

double PartialSchedule::end_us(int op, int mode) const {
  double free[kMaxModeLanes];
  double ends[kMaxParts];
  std::copy(free_.begin(), free_.end(), free);
  return place(op, mode, free, ends);
}

void PartialSchedule::try_add(int op, int mode, double* free, double* ends) const {
  std::copy(free_.begin(), free_.end(), free);
  place(op, mode, free, ends);
}

void PartialSchedule::add(int op, int mode) {
  place(op, mode, free_.data(), ends_.data() + tables_.slot(op, 0));
  modes_[op] = mode;
  order_.push_back(op);
}

}  // namespace tandem
