#include "schedule/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<int> counts_of(const ModeSchedule& schedule) {
  std::vector<int> counts;
  for (const auto& lane : schedule.lanes) counts.push_back(static_cast<int>(lane.size()));
  return counts;
}

// When everything has ended that the part waits for; kNever if something has not, yet.
double ready_us(const ModeTables& tables, const std::vector<int>& modes, const PartRef& ref,
                const std::vector<double>& ends) {
  double ready = 0;
  const int mode = modes[ref.op];
  const int lane = tables.lane[tables.part(ref.op, mode, ref.part)];
  for (int i = tables.in_begin[ref.op]; i < tables.in_begin[ref.op + 1]; ++i) {
    const ModeTables::Edge& edge = tables.edges[i];
    const int from_mode = modes[edge.from];
    for (unsigned mask = tables.entries[tables.entry(edge, from_mode, mode, ref.part)].waits;
         mask != 0; mask &= mask - 1) {
      const int q = std::countr_zero(mask);
      const int from_lane = tables.lane[tables.part(edge.from, from_mode, q)];
      const double latency = from_lane == lane ? 0 : tables.latency_us(from_lane, lane);
      ready = std::max(ready, ends[tables.slot(edge.from, q)] + latency);
    }
  }
  return ready;
}

// An event simulation of lanes that slow each other down.
class ContendedLanes {
 public:
  ContendedLanes(const ModeTables& tables, const ModeSchedule& schedule)
      : tables_(tables),
        schedule_(schedule),
        ends_(static_cast<size_t>(tables.operators) * tables.stride, kNever),
        lanes_(tables.lanes) {
    result_.lanes.resize(lanes_.size());
    std::vector<double> free(lanes_.size());
    tables.free_from(counts_of(schedule), free.data());
    for (size_t l = 0; l < lanes_.size(); ++l) {
      lanes_[l].free_us = free[l];
      result_.lanes[l].resize(schedule.lanes[l].size());
    }
  }

  Evaluation run() && {
    while (true) {
      start_parts();
      const double next = next_event();
      if (next == kNever) break;
      advance(next);
    }
    return std::move(result_);
  }

 private:
  struct LaneState {
    size_t next = 0;  // part, or the one that runs
    bool running = false;
    double free_us = 0;
    double left_us = 0;         // of the running part, were it alone
    double starts_us = kNever;  // when the next part may start, if that is known
    const Contention* contention = nullptr;
  };

  // Until no lane that is idle can start its part now.
  void start_parts() {
    for (size_t l = 0; l < lanes_.size(); ++l) {
      LaneState& lane = lanes_[l];
      if (lane.running || lane.next == schedule_.lanes[l].size()) continue;
      const PartRef& ref = schedule_.lanes[l][lane.next];
      if (lane.starts_us == kNever) {
        const double ready = ready_us(tables_, schedule_.modes, ref, ends_);
        if (ready == kNever) continue;
        lane.starts_us = std::max(ready, lane.free_us);
      }
      if (lane.starts_us > now_) continue;
      lane.running = true;
      lane.left_us = tables_.duration_us(schedule_.modes, ref.op, ref.part);
      lane.contention = &tables_.problem.operators[ref.op]
                             .modes[schedule_.modes[ref.op]]
                             .parts[ref.part]
                             .contention;
      result_.lanes[l][lane.next].start_us = lane.starts_us;
    }
  }

  double slowdown(size_t of) const {
    double share = -1;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      if (l == of || !lanes_[l].running) continue;
      share = std::max(share, lanes_[l].contention->memory_share);
    }
    if (share < 0) return 1;
    const Contention& c = *lanes_[of].contention;
    return 1 + (c.slowdown_compute - 1) * (1 - share) + (c.slowdown_memory - 1) * share;
  }

  double next_event() const {
    double next = kNever;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      const LaneState& lane = lanes_[l];
      if (lane.running) {
        next = std::min(next, now_ + lane.left_us * slowdown(l));
      } else if (lane.starts_us != kNever) {
        next = std::min(next, lane.starts_us);
      }
    }
    return next;
  }

  void advance(double to) {
    std::vector<double>& slowdowns = scratch_;
    slowdowns.resize(lanes_.size());
    for (size_t l = 0; l < lanes_.size(); ++l) slowdowns[l] = lanes_[l].running ? slowdown(l) : 1;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      LaneState& lane = lanes_[l];
      if (!lane.running) continue;
      // The same expression as in next_event(), so that the event that comes does come.
      if (now_ + lane.left_us * slowdowns[l] > to) {
        lane.left_us -= (to - now_) / slowdowns[l];
        continue;
      }
      const PartRef& ref = schedule_.lanes[l][lane.next];
      ends_[tables_.slot(ref.op, ref.part)] = to;
      result_.lanes[l][lane.next].end_us = to;
      result_.makespan_us = std::max(result_.makespan_us, to);
      lane.running = false;
      lane.free_us = to;
      lane.starts_us = kNever;
      ++lane.next;
    }
    now_ = to;
  }

  const ModeTables& tables_;
  const ModeSchedule& schedule_;
  std::vector<double> ends_;  // by slot
  std::vector<LaneState> lanes_;
  std::vector<double> scratch_;
  double now_ = 0;
  Evaluation result_;
};

}  // namespace

Evaluation evaluate(const ModeTables& tables, const ModeSchedule& schedule) {
  Evaluation result;
  result.lanes.resize(tables.lanes);
  std::vector<double> ends(static_cast<size_t>(tables.operators) * tables.stride, kNever);
  std::vector<double> free(tables.lanes);
  tables.free_from(counts_of(schedule), free.data());
  for (const PartRef& ref : sequence_of(tables, schedule)) {
    const int lane = tables.lane[tables.part(ref.op, schedule.modes[ref.op], ref.part)];
    const double start = std::max(free[lane], ready_us(tables, schedule.modes, ref, ends));
    const double end = start + tables.duration_us(schedule.modes, ref.op, ref.part);
    free[lane] = end;
    ends[tables.slot(ref.op, ref.part)] = end;
    result.lanes[lane].push_back({start, end});
    result.makespan_us = std::max(result.makespan_us, end);
  }
  return result;
}

Evaluation evaluate_with_contention(const ModeTables& tables, const ModeSchedule& schedule) {
  return ContendedLanes(tables, schedule).run();
}

double predicted_makespan_us(const ModeTables& tables, const ModeSchedule& schedule) {
  return tables.has_contention ? evaluate_with_contention(tables, schedule).makespan_us
                               : evaluate(tables, schedule).makespan_us;
}

}  // namespace tandem
