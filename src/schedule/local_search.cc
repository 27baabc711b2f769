#include "schedule/local_search.h"

#include <algorithm>
#include <cmath>

#include "schedule/dice.h"

namespace tandem {
namespace {

constexpr double kNever = OrderEvaluator::kNever;

// Stages below this are joined with the next, and those above are cut.
constexpr int kTinyStage = 6;
constexpr int kHugeStage = 40;
constexpr int kOverlap = 10;

// A solution has to be better by more than rounding.
double better_than(double us) { return us * (1 - 1e-9); }

Change new_mode(int op, int mode) {
  Change change;
  change.modes[0] = {op, mode};
  change.mode_count = 1;
  return change;
}

Change new_place(int op, int place) {
  Change change;
  change.moved = op;
  change.place = place;
  return change;
}

// Lets a window see only its own operators, and keeps them in it.
class WindowedMoves {
 public:
  WindowedMoves(const ModeTables& tables, const OrderEvaluator& evaluator, const Window& window)
      : tables_(tables), evaluator_(evaluator), window_(window) {}

  int first() const { return window_.first; }
  bool has(int op) const {
    const int place = evaluator_.place_of(op);
    return place >= window_.first && place < window_.last;
  }
  std::pair<int, int> range_of(int op) const {
    auto [first, last] = evaluator_.range_of(op);
    return {std::max(first, window_.first), std::min(last, window_.last - 1)};
  }
  // Right before or right after another, as far as dependencies and the window allow it; nothing if
  // the operator is there already.
  bool move_to(int op, int place, Change* change) const {
    const auto [first, last] = range_of(op);
    place = std::clamp(place, first, last);
    if (place == evaluator_.place_of(op)) return false;
    *change = new_place(op, place);
    return true;
  }
  int modes_of(int op) const { return tables_.mode_count(op); }

 private:
  const ModeTables& tables_;
  const OrderEvaluator& evaluator_;
  const Window window_;
};

// What one operator has on the critical path.
struct Critical {
  int op = 0;
  double us = 0;
  int blocker = kNone;  // the operator that it waits for its lane for
};

std::vector<Critical> critical_operators(OrderEvaluator& evaluator, const WindowedMoves& moves) {
  const auto path = evaluator.critical_path(moves.first());
  std::vector<Critical> result;
  for (size_t i = 0; i < path.size(); ++i) {
    const auto& [part, by_lane] = path[i];
    if (!moves.has(part.op)) continue;
    const double us = evaluator.end_us(part.op, part.part) - evaluator.start_us(part.op, part.part);
    const int blocker = by_lane && i + 1 < path.size() && path[i + 1].part.op != part.op
                            ? path[i + 1].part.op
                            : kNone;
    result.push_back({part.op, us, blocker});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Critical& a, const Critical& b) { return a.us > b.us; });
  return result;
}

// The best change to one critical operator.
class BestChange {
 public:
  BestChange(OrderEvaluator* evaluator, SearchBudget* budget)
      : evaluator_(*evaluator), budget_(*budget), best_us_(better_than(evaluator->makespan_us())) {}

  void consider(const Change& change) {
    if (budget_.is_used_up()) return;
    --budget_.evaluations;
    ++budget_.tried;
    const double us = evaluator_.try_change(change, best_us_);
    if (us >= best_us_) return;
    best_us_ = us;
    best_ = change;
    found_ = true;
  }
  bool keep() {
    if (!found_) return false;
    evaluator_.try_change(best_);
    evaluator_.accept();
    ++budget_.kept;
    return true;
  }

 private:
  OrderEvaluator& evaluator_;
  SearchBudget& budget_;
  double best_us_;
  Change best_;
  bool found_ = false;
};

bool improve(OrderEvaluator* evaluator, const WindowedMoves& moves, const Critical& critical,
             SearchBudget* budget) {
  BestChange best(evaluator, budget);
  const auto consider_modes = [&](int op) {
    for (int mode = 0; mode < moves.modes_of(op); ++mode) {
      if (mode != evaluator->mode_of(op)) best.consider(new_mode(op, mode));
    }
  };
  consider_modes(critical.op);
  if (critical.blocker != kNone && moves.has(critical.blocker)) {
    consider_modes(critical.blocker);
    Change change;
    if (moves.move_to(critical.op, evaluator->place_of(critical.blocker), &change)) {
      best.consider(change);
    }
    if (moves.move_to(critical.blocker, evaluator->place_of(critical.op), &change)) {
      best.consider(change);
    }
  }
  return best.keep();
}

// How far operators' ancestors reach: for each, the greatest k such that all operators below k come
// before it.
std::vector<int> covered_prefixes(const ModeTables& tables) {
  const size_t words = (static_cast<size_t>(tables.operators) + 63) / 64;
  std::vector<uint64_t> ancestors(words * tables.operators, 0);
  std::vector<int> prefixes(tables.operators, 0);
  for (int op = 0; op < tables.operators; ++op) {
    uint64_t* mine = &ancestors[words * op];
    for (int i = tables.in_begin[op]; i < tables.in_begin[op + 1]; ++i) {
      const int from = tables.edges[i].from;
      const uint64_t* theirs = &ancestors[words * from];
      for (size_t w = 0; w < words; ++w) mine[w] |= theirs[w];
      mine[from / 64] |= uint64_t{1} << (from % 64);
    }
    size_t w = 0;
    while (w < words && mine[w] == ~uint64_t{0}) ++w;
    prefixes[op] = static_cast<int>(w * 64) + (w < words ? std::countr_one(mine[w]) : 0);
  }
  return prefixes;
}

}  // namespace

std::vector<Window> stages_of(const ModeTables& tables) {
  const std::vector<int> prefixes = covered_prefixes(tables);
  std::vector<bool> is_cut(tables.operators + 1, false);
  int least = tables.operators;
  for (int op = tables.operators - 1; op > 0; --op) {
    least = std::min(least, prefixes[op]);
    is_cut[op] = least >= op;
  }
  is_cut[tables.operators] = true;
  std::vector<Window> windows;
  for (int first = 0, end = 1; end <= tables.operators; ++end) {
    if (!is_cut[end] || (end - first < kTinyStage && end != tables.operators)) continue;
    if (end == tables.operators && end - first < kTinyStage && !windows.empty()) {
      windows.back().last = end;
      break;
    }
    while (end - first > kHugeStage) {
      windows.push_back({first, first + kHugeStage});
      first += kHugeStage - kOverlap;
    }
    windows.push_back({first, end});
    first = end;
  }
  return windows;
}

bool descend(const ModeTables& tables, OrderEvaluator* evaluator, const Window& window,
             SearchBudget* budget) {
  const WindowedMoves moves(tables, *evaluator, window);
  bool found = false;
  // Each operator once a pass, although the path changes with every improvement: what was looked
  // at in vain before it seldom has become worth another look.
  std::vector<bool> seen(tables.operators);
  for (bool improved = true; improved && !budget->is_used_up();) {
    improved = false;
    std::fill(seen.begin(), seen.end(), false);
    std::vector<Critical> path = critical_operators(*evaluator, moves);
    for (size_t i = 0; i < path.size() && !budget->is_used_up(); ++i) {
      if (seen[path[i].op]) continue;
      seen[path[i].op] = true;
      if (!improve(evaluator, moves, path[i], budget)) continue;
      improved = found = true;
      path = critical_operators(*evaluator, moves);
      i = static_cast<size_t>(-1);
    }
  }
  return found;
}

namespace {

// Proposes changes to what is critical in a window.
class Proposals {
 public:
  Proposals(const ModeTables& tables, OrderEvaluator& evaluator, const Window& window, Dice* dice)
      : tables_(tables),
        evaluator_(evaluator),
        window_(window),
        moves_(tables, evaluator, window),
        dice_(*dice) {}

  // After the current solution has changed. Returns the mean time of a critical operator.
  double look() {
    path_.clear();
    double sum = 0;
    const auto path = evaluator_.critical_path(window_.first);
    for (size_t i = 0; i < path.size(); ++i) {
      const PartRef& part = path[i].part;
      if (!moves_.has(part.op)) continue;
      const int before = i + 1 < path.size() ? path[i + 1].part.op : kNone;
      path_.push_back({part.op, before, path[i].by_lane});
      sum += evaluator_.end_us(part.op, part.part) - evaluator_.start_us(part.op, part.part);
    }
    return path_.empty() ? 0 : sum / static_cast<double>(path_.size());
  }

  // False if this throw of the dice came to nothing.
  bool next(Change* change) {
    const bool anywhere = path_.empty() || dice_.below(12) == 0;
    const Step step =
        anywhere ? Step{evaluator_.solution().order[window_.first + dice_.below(window_.size())],
                        kNone, false}
                 : path_[dice_.below(static_cast<int>(path_.size()))];
    const bool has_before =
        step.before != kNone && step.before != step.op && moves_.has(step.before);
    const int kind = dice_.below(10);
    if (kind < 4 || (!has_before && kind < 7)) return propose_mode(step.op, change);
    if (has_before && kind < 6) return propose_mode(step.before, change);
    if (has_before && kind < 8 && !step.by_lane) {
      *change = {};
      change->mode_count = 2;
      change->modes[0] = {step.before, dice_.below(tables_.mode_count(step.before))};
      change->modes[1] = {step.op, dice_.below(tables_.mode_count(step.op))};
      return true;
    }
    if (has_before && step.by_lane) {
      const bool ok = dice_.below(2) == 0
                          ? moves_.move_to(step.op, evaluator_.place_of(step.before), change)
                          : moves_.move_to(step.before, evaluator_.place_of(step.op), change);
      if (ok && dice_.below(3) == 0) add_mode(change->moved, change);
      return ok;
    }
    const auto [first, last] = moves_.range_of(step.op);
    if (last <= first) return propose_mode(step.op, change);
    const bool ok = moves_.move_to(step.op, first + dice_.below(last - first + 1), change);
    if (ok && dice_.below(2) == 0) add_mode(step.op, change);
    return ok;
  }

 private:
  struct Step {
    int op = 0;
    int before = kNone;  // what it waits for
    bool by_lane = false;
  };

  int other_mode(int op) {
    const int mode = dice_.below(tables_.mode_count(op) - 1);
    return mode + (mode >= evaluator_.mode_of(op) ? 1 : 0);
  }
  bool propose_mode(int op, Change* change) {
    if (tables_.mode_count(op) < 2) return false;
    *change = new_mode(op, other_mode(op));
    return true;
  }
  void add_mode(int op, Change* change) {
    if (tables_.mode_count(op) < 2) return;
    change->modes[0] = {op, other_mode(op)};
    change->mode_count = 1;
  }

  const ModeTables& tables_;
  OrderEvaluator& evaluator_;
  const Window window_;
  const WindowedMoves moves_;
  Dice& dice_;
  std::vector<Step> path_;
};

}  // namespace

void anneal(const ModeTables& tables, OrderEvaluator* evaluator, const Window& window,
            int64_t evaluations, uint64_t seed, SearchBudget* budget) {
  // Of the time that an operator takes, how much worse a change may make things at first.
  constexpr double kHeat = 0.25;
  evaluations = std::min(evaluations, budget->evaluations);
  if (evaluations <= 0 || window.size() == 0) return;
  Dice dice(seed);
  Proposals proposals(tables, *evaluator, window, &dice);
  const double heat = kHeat * proposals.look();
  OrderedModes best = evaluator->solution();
  double best_us = evaluator->makespan_us();
  for (int64_t i = 0; i < evaluations && !budget->is_used_up(); ++i) {
    // A throw without a change counts, too, or else a window without any would never end.
    --budget->evaluations;
    Change change;
    if (!proposals.next(&change)) continue;
    const double cooled = 1 - static_cast<double>(i) / static_cast<double>(evaluations);
    const double allowed = -std::log(1 - dice.real()) * heat * cooled * cooled;
    ++budget->tried;
    const double us = evaluator->try_change(change, evaluator->makespan_us() + allowed);
    if (us == kNever) continue;
    evaluator->accept();
    proposals.look();
    if (us >= better_than(best_us)) continue;
    ++budget->kept;
    best_us = us;
    best = evaluator->solution();
  }
  if (evaluator->makespan_us() > best_us) evaluator->reset(std::move(best));
}

}  // namespace tandem
