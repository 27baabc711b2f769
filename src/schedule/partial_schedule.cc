#include "schedule/partial_schedule.h"

#include <algorithm>

namespace tandem {

double PartialSchedule::place(int op, int mode, double* free, double* ends) const {
  double latest = 0;
  for (int p = 0; p < tables_.part_count(op, mode); ++p) {
    const size_t which = tables_.part(op, mode, p);
    const int lane = tables_.lane[which];
    double start = free[lane];
    double duration = tables_.us[which];
    unsigned others = 0;
    for (int i = tables_.in_begin[op]; i < tables_.in_begin[op + 1]; ++i) {
      const ModeTables::Edge& edge = tables_.edges[i];
      const int from_mode = modes_[edge.from];
      const size_t at = tables_.entry(edge, from_mode, mode, p);
      others |= tables_.entries[at].lanes;
      if (!tables_.fetch_us.empty()) duration += tables_.fetch_us[at];
      for (unsigned mask = tables_.entries[at].waits; mask != 0; mask &= mask - 1) {
        const int q = std::countr_zero(mask);
        const int from_lane = tables_.lane[tables_.part(edge.from, from_mode, q)];
        const double latency = from_lane == lane ? 0 : tables_.latency_us(from_lane, lane);
        start = std::max(start, ends_[tables_.slot(edge.from, q)] + latency);
      }
    }
    free[lane] = start + duration + std::popcount(others) * tables_.problem.lanes[lane].receive_us;
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
