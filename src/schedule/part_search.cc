#include "schedule/part_search.h"

#include <algorithm>
#include <cmath>

#include "schedule/dice.h"

namespace tandem {
namespace {

constexpr double kNever = OrderEvaluator::kNever;

// One order of all slots, those without a part in the chosen modes among them: when an operator
// changes its mode, its parts stay where they are in the order. Lanes take parts in that order.
struct PartOrder {
  std::vector<int> modes;  // by operator
  std::vector<int> order;  // slots
  std::vector<int> place;  // by slot
  std::vector<double> us;  // by slot: how long its part occupies its lane

  void move(int from, int to) {
    const auto begin = order.begin();
    if (to < from) {
      std::rotate(begin + to, begin + from, begin + from + 1);
    } else {
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    }
    for (int i = std::min(from, to); i <= std::max(from, to); ++i) place[order[i]] = i;
  }
};

class PartEvaluator {
 public:
  explicit PartEvaluator(const ModeTables& tables)
      : tables_(tables),
        times_(static_cast<size_t>(tables.operators) * tables.stride),
        before_(times_.size()),
        free_(tables.lanes),
        counts_(tables.lanes) {}

  PartOrder order_of(const ModeSchedule& schedule) const {
    PartOrder result;
    result.modes = schedule.modes;
    for (const PartRef& ref : sequence_of(tables_, schedule)) {
      result.order.push_back(slot(ref.op, ref.part));
      // Those that do not exist, now, are beside the first one.
      if (ref.part != 0) continue;
      for (int p = tables_.part_count(ref.op, schedule.modes[ref.op]);
           p < tables_.problem.max_parts(ref.op); ++p) {
        result.order.push_back(slot(ref.op, p));
      }
    }
    result.place.assign(times_.size(), kNone);
    for (size_t i = 0; i < result.order.size(); ++i) {
      result.place[result.order[i]] = static_cast<int>(i);
    }
    result.us.assign(times_.size(), 0);
    for (int op = 0; op < tables_.operators; ++op) update_us(op, &result);
    return result;
  }

  ModeSchedule schedule_of(const PartOrder& parts) const {
    Sequence sequence;
    for (const int slot : parts.order) {
      if (exists(parts, slot)) sequence.push_back({op_of(slot), part_of(slot)});
    }
    return tandem::schedule_of(tables_, parts.modes, sequence);
  }

  void set_mode(int op, int mode, PartOrder* parts) const {
    parts->modes[op] = mode;
    update_us(op, parts);
    for (int i = tables_.in_begin[op]; i < tables_.in_begin[op + 1]; ++i) {
      update_us(tables_.edges[i].from, parts);
    }
    for (int i = tables_.out_begin[op]; i < tables_.out_begin[op + 1]; ++i) {
      update_us(tables_.edges[tables_.out_edges[i]].to, parts);
    }
  }

  // The makespan if it is at most `limit`; kNever otherwise, and where a part comes before one that
  // it waits for.
  double evaluate(const PartOrder& parts, double limit) {
    std::fill(counts_.begin(), counts_.end(), 0);
    if (tables_.has_feeders) {
      for (int op = 0; op < tables_.operators; ++op) {
        for (int p = 0; p < tables_.part_count(op, parts.modes[op]); ++p) {
          ++counts_[tables_.lane[tables_.part(op, parts.modes[op], p)]];
        }
      }
    }
    tables_.free_from(counts_, free_.data());
    double latest = 0;
    for (const int slot : parts.order) {
      if (!exists(parts, slot)) continue;
      const int op = op_of(slot);
      const size_t part = tables_.part(op, parts.modes[op], part_of(slot));
      const int lane = tables_.lane[part];
      double start = free_[lane];
      const bool ordered = for_waits(parts, slot, [&](int other, double latency) {
        start = std::max(start, times_[other].end_us + latency);
        return parts.place[other] < parts.place[slot];
      });
      if (!ordered) return kNever;
      const double end = start + parts.us[slot];
      if (end + tables_.tail_us[part] > limit) return kNever;
      times_[slot] = {start, end};
      free_[lane] = end;
      latest = std::max(latest, end);
    }
    return latest;
  }

  // What the last part waited for, and so on, as that order was evaluated last.
  struct Link {
    int slot = 0;
    int before = kNone;    // slot
    bool by_lane = false;  // waited for its lane
    double us = 0;
  };
  void find_critical(const PartOrder& parts, std::vector<Link>* path) {
    std::vector<int>& last = counts_;
    std::fill(last.begin(), last.end(), kNone);
    int at = kNone;
    for (const int slot : parts.order) {
      if (!exists(parts, slot)) continue;
      const int lane = lane_of(parts, slot);
      before_[slot] = last[lane];
      last[lane] = slot;
      if (at == kNone || times_[slot].end_us > times_[at].end_us) at = slot;
    }
    path->clear();
    while (at != kNone) {
      const double start = times_[at].start_us;
      Link link{at, kNone, false, times_[at].end_us - start};
      for_waits(parts, at, [&](int other, double latency) {
        if (times_[other].end_us + latency >= start) link.before = other;
        return true;
      });
      if (link.before == kNone && before_[at] != kNone && times_[before_[at]].end_us >= start) {
        link.before = before_[at];
        link.by_lane = true;
      }
      path->push_back(link);
      at = link.before;
    }
  }

  int slot(int op, int part) const { return static_cast<int>(tables_.slot(op, part)); }
  int op_of(int slot) const { return slot / static_cast<int>(tables_.stride); }

 private:
  int part_of(int slot) const { return slot % static_cast<int>(tables_.stride); }
  bool exists(const PartOrder& parts, int slot) const {
    const int op = op_of(slot);
    return part_of(slot) < tables_.part_count(op, parts.modes[op]);
  }
  int lane_of(const PartOrder& parts, int slot) const {
    const int op = op_of(slot);
    return tables_.lane[tables_.part(op, parts.modes[op], part_of(slot))];
  }
  void update_us(int op, PartOrder* parts) const {
    for (int p = 0; p < tables_.part_count(op, parts->modes[op]); ++p) {
      parts->us[tables_.slot(op, p)] = tables_.duration_us(parts->modes, op, p);
    }
  }

  // `f`: bool(slot that it waits for, latency), false to stop. Returns whether all were true.
  template <typename F>
  bool for_waits(const PartOrder& parts, int slot, const F& f) const {
    const int op = op_of(slot);
    const int mode = parts.modes[op];
    const int lane = lane_of(parts, slot);
    for (int i = tables_.in_begin[op]; i < tables_.in_begin[op + 1]; ++i) {
      const ModeTables::Edge& edge = tables_.edges[i];
      const int from_mode = parts.modes[edge.from];
      unsigned mask = tables_.entries[tables_.entry(edge, from_mode, mode, part_of(slot))].waits;
      for (; mask != 0; mask &= mask - 1) {
        const int q = std::countr_zero(mask);
        const int from_lane = tables_.lane[tables_.part(edge.from, from_mode, q)];
        const double latency = from_lane == lane ? 0 : tables_.latency_us(from_lane, lane);
        if (!f(static_cast<int>(tables_.slot(edge.from, q)), latency)) return false;
      }
    }
    return true;
  }

  const ModeTables& tables_;
  std::vector<PartTime> times_;  // by slot
  std::vector<int> before_;      // by slot: on its lane
  std::vector<double> free_;     // by lane
  std::vector<int> counts_;      // by lane
};

class PartAnnealing {
 public:
  PartAnnealing(const ModeTables& tables, uint64_t seed, const ModeSchedule& schedule)
      : tables_(tables), evaluator_(tables), dice_(seed), current_(evaluator_.order_of(schedule)) {
    us_ = evaluator_.evaluate(current_, kNever);
    evaluator_.find_critical(current_, &path_);
  }

  // `price`: what an evaluation counts in the budget. Returns how many there were; `schedule`
  // becomes the best one if there is a better one.
  int64_t run(int64_t evaluations, int64_t price, SearchBudget* budget, ModeSchedule* schedule) {
    // Of the time that a part takes, how much worse a change may make things at first.
    constexpr double kHeat = 0.4;
    double sum = 0;
    for (const PartEvaluator::Link& link : path_) sum += link.us;
    const double heat = path_.empty() ? 0 : kHeat * sum / static_cast<double>(path_.size());
    PartOrder best;
    double best_us = us_ * (1 - 1e-9);
    int64_t evaluated = 0;
    for (int64_t i = 0; i < evaluations && !budget->is_used_up(); ++i) {
      budget->evaluations -= price;
      ++budget->tried;
      tried_ = current_;
      if (!change()) continue;
      const double cooled = 1 - static_cast<double>(i) / static_cast<double>(evaluations);
      const double allowed = -std::log(1 - dice_.real()) * heat * cooled * cooled;
      ++evaluated;
      const double us = evaluator_.evaluate(tried_, us_ + allowed);
      if (us == kNever) continue;
      std::swap(current_, tried_);
      us_ = us;
      evaluator_.find_critical(current_, &path_);
      if (us >= best_us) continue;
      ++budget->kept;
      best = current_;
      best_us = us * (1 - 1e-9);
    }
    if (!best.order.empty()) *schedule = evaluator_.schedule_of(best);
    return evaluated;
  }

 private:
  // Of `tried_`. False if this throw came to nothing.
  bool change() {
    if (dice_.below(8) == 0) {
      // What is not critical leaves room for what is.
      const int op = dice_.below(tables_.operators);
      return dice_.below(2) == 0 ? change_modes_along(op) : shift(evaluator_.slot(op, 0));
    }
    const PartEvaluator::Link& link = path_[dice_.below(static_cast<int>(path_.size()))];
    const int kind = dice_.below(10);
    const bool of_other = link.before != kNone && dice_.below(3) == 0;
    const int op = evaluator_.op_of(of_other ? link.before : link.slot);
    if (kind < 5) {
      const bool changed = change_mode(op);
      if (kind < 2) return changed;
      // Elsewhere, too.
      return shift(of_other ? link.before : link.slot) || changed;
    }
    if (link.by_lane && kind < 9) {
      const int here = tried_.place[link.slot];
      const int there = tried_.place[link.before];
      if (dice_.below(2) == 0) {
        tried_.move(here, there);
      } else {
        tried_.move(there, here);
      }
      return true;
    }
    return kind < 8 ? change_modes_along(op) : shift(link.slot);
  }

  bool change_mode(int op) {
    if (tables_.mode_count(op) < 2) return false;
    const int mode = dice_.below(tables_.mode_count(op) - 1);
    evaluator_.set_mode(op, mode + (mode >= tried_.modes[op] ? 1 : 0), &tried_);
    return true;
  }

  // Of an operator and of some that it reads or that read it, one after another, such that nothing
  // crosses from one to the next: what pays together and not alone.
  bool change_modes_along(int op) {
    constexpr int kMost = 5;
    if (!change_mode(op)) return false;
    for (int step = 1; step < kMost; ++step) {
      const int in = tables_.in_begin[op + 1] - tables_.in_begin[op];
      const int out = tables_.out_begin[op + 1] - tables_.out_begin[op];
      if (in + out == 0) break;
      const int which = dice_.below(in + out);
      const bool to_reader = which >= in;
      const ModeTables::Edge& edge =
          tables_.edges[to_reader ? tables_.out_edges[tables_.out_begin[op] + which - in]
                                  : tables_.in_begin[op] + which];
      const int other = to_reader ? edge.to : edge.from;
      fitting_.clear();
      for (int mode = 0; mode < tables_.mode_count(other); ++mode) {
        const size_t at = to_reader ? tables_.cross(edge, tried_.modes[op], mode)
                                    : tables_.cross(edge, mode, tried_.modes[op]);
        if (tables_.crosses[at] == 0) fitting_.push_back(mode);
      }
      if (fitting_.empty()) break;
      evaluator_.set_mode(other, fitting_[dice_.below(static_cast<int>(fitting_.size()))], &tried_);
      if (dice_.below(3) == 0) break;
      op = other;
    }
    return true;
  }

  bool shift(int slot) {
    constexpr int kFarthest = 12;
    const int from = tried_.place[slot];
    const int to = std::clamp(from + dice_.below(2 * kFarthest + 1) - kFarthest, 0,
                              static_cast<int>(tried_.order.size()) - 1);
    if (to == from) return false;
    tried_.move(from, to);
    return true;
  }

  const ModeTables& tables_;
  PartEvaluator evaluator_;
  Dice dice_;
  PartOrder current_;
  double us_ = 0;
  std::vector<PartEvaluator::Link> path_;
  PartOrder tried_;
  std::vector<int> fitting_;  // modes
};

}  // namespace

int64_t anneal_parts(const ModeTables& tables, int64_t evaluations, uint64_t seed,
                     SearchBudget* budget, ModeSchedule* schedule) {
  constexpr int kOperatorsForOne = 24;
  if (tables.operators == 0 || budget->is_used_up()) return 0;
  const int64_t price = 1 + tables.operators / kOperatorsForOne;
  return PartAnnealing(tables, seed, *schedule).run(evaluations / price, price, budget, schedule);
}

}  // namespace tandem
