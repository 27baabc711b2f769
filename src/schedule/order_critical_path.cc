// What the makespan of an evaluator's current solution is made of.
#include <algorithm>

#include "schedule/order_evaluator.h"

namespace tandem {

// What comes before that part on its lane; no operator if nothing does.
PartRef OrderEvaluator::before_on_lane(const PartRef& ref) const {
  const int lane = tables_.lane[tables_.part(ref.op, solution_.modes[ref.op], ref.part)];
  int part = ref.part;
  for (int place = places_[ref.op]; place >= 0; --place) {
    const int op = solution_.order[place];
    if (place != places_[ref.op]) part = tables_.part_count(op, solution_.modes[op]);
    while (--part >= 0) {
      if (tables_.lane[tables_.part(op, solution_.modes[op], part)] == lane) return {op, part};
    }
  }
  return {kNone, 0};
}

// Of several, the first in the order.
PartRef OrderEvaluator::last_to_end() const {
  if (tables_.operators == 0) return {kNone, 0};
  const auto reached = std::lower_bound(prefix_.begin() + 1, prefix_.end(), makespan_us_);
  const int op = solution_.order[reached - prefix_.begin() - 1];
  int part = 0;
  while (end_us(op, part) != makespan_us_) ++part;
  return {op, part};
}

std::vector<OrderEvaluator::Link> OrderEvaluator::critical_path(int first) const {
  PartRef at = last_to_end();
  std::vector<Link> path;
  while (at.op != kNone && places_[at.op] >= first) {
    const int mode = solution_.modes[at.op];
    const int lane = tables_.lane[tables_.part(at.op, mode, at.part)];
    const double start = start_us(at.op, at.part);
    PartRef next{kNone, 0};
    for (int i = tables_.in_begin[at.op]; i < tables_.in_begin[at.op + 1]; ++i) {
      const ModeTables::Edge& edge = tables_.edges[i];
      const int from_mode = solution_.modes[edge.from];
      for (unsigned mask = tables_.entries[tables_.entry(edge, from_mode, mode, at.part)].waits;
           mask != 0; mask &= mask - 1) {
        const int q = std::countr_zero(mask);
        const int from_lane = tables_.lane[tables_.part(edge.from, from_mode, q)];
        const double latency = from_lane == lane ? 0 : tables_.latency_us(from_lane, lane);
        if (end_us(edge.from, q) + latency >= start) next = {edge.from, q};
      }
    }
    const bool by_lane = next.op == kNone;
    if (by_lane) next = before_on_lane(at);
    if (by_lane && next.op != kNone && end_us(next.op, next.part) < start) next.op = kNone;
    path.push_back({at, by_lane});
    at = next;
  }
  return path;
}

}  // namespace tandem
