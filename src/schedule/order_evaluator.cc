#include "schedule/order_evaluator.h"

#include <algorithm>

namespace tandem {
namespace {

// Places between two checkpoints.
constexpr int kCheckpointDistance = 6;

}  // namespace

OrderEvaluator::OrderEvaluator(const ModeTables& tables)
    : tables_(tables),
      places_(tables.operators),
      times_(static_cast<size_t>(tables.operators) * tables.stride),
      free_(static_cast<size_t>(tables.operators + 1) * tables.lanes),
      prefix_(tables.operators + 1),
      suffix_(tables.operators + 1),
      checkpoints_(tables.operators / kCheckpointDistance),
      new_times_(times_),
      new_free_(free_) {}

void OrderEvaluator::reset(OrderedModes solution) {
  solution_ = std::move(solution);
  counts_.assign(tables_.lanes, 0);
  for (int place = 0; place < tables_.operators; ++place) {
    const int op = solution_.order[place];
    places_[op] = place;
    for (int p = 0; p < tables_.part_count(op, solution_.modes[op]); ++p) {
      ++counts_[tables_.lane[tables_.part(op, solution_.modes[op], p)]];
    }
  }
  forget_tried();
  change_ = {};
  run(0, tables_.operators, kNever);
  accept();
  place_checkpoints();
}

double OrderEvaluator::try_change(const Change& change, double limit) {
  forget_tried();
  change_ = change;
  Change inverse = change;
  for (int i = 0; i < change.mode_count; ++i) {
    inverse.modes[change.mode_count - 1 - i] = {change.modes[i].op,
                                                solution_.modes[change.modes[i].op]};
  }
  if (change.moved != kNone) inverse.place = places_[change.moved];
  const int from = first_touched(change);
  const int until = touched_until(change);
  double most_earlier = 0;
  const bool feeders_move = feeders_shift(change, &most_earlier);
  apply(change);
  double result = 0;
  if (!feeders_move) {
    result = run(from, until, limit);
  } else {
    // All would have to be computed. What ends when is a function of when lanes are free at first
    // that is monotone, and moves by no more than they do: without their move, the change itself
    // tells in most cases that it is too bad.
    result = from == 0 ? 0 : run(from, until, limit + most_earlier);
    if (result != kNever) {
      evaluations_ -= from == 0 ? 0 : 1;
      forget_tried();
      result = run(0, until, limit);
    }
  }
  apply(inverse);
  return result;
}

void OrderEvaluator::accept() {
  apply(change_);
  if (rest_shifts_) run(until_, tables_.operators, kNever);
  for (const int op : computed_) {
    std::copy_n(new_times_.begin() + static_cast<ptrdiff_t>(tables_.slot(op, 0)), tables_.stride,
                times_.begin() + static_cast<ptrdiff_t>(tables_.slot(op, 0)));
  }
  computed_.clear();
  const auto lanes = static_cast<ptrdiff_t>(tables_.lanes);
  std::copy(new_free_.begin() + from_ * lanes, new_free_.begin() + (until_ + 1) * lanes,
            free_.begin() + from_ * lanes);
  summarise();
  if (change_.moved != kNone) place_checkpoints();
  change_ = {};
}

// Restores the new_ arrays.
void OrderEvaluator::forget_tried() {
  for (const int op : computed_) {
    std::copy_n(times_.begin() + static_cast<ptrdiff_t>(tables_.slot(op, 0)), tables_.stride,
                new_times_.begin() + static_cast<ptrdiff_t>(tables_.slot(op, 0)));
  }
  computed_.clear();
  rest_shifts_ = false;
}

void OrderEvaluator::apply(const Change& change) {
  for (int i = 0; i < change.mode_count; ++i) set_mode(change.modes[i].op, change.modes[i].mode);
  if (change.moved != kNone) move(change.moved, change.place);
}

void OrderEvaluator::set_mode(int op, int mode) {
  const int before = solution_.modes[op];
  for (int p = 0; p < tables_.part_count(op, before); ++p) {
    --counts_[tables_.lane[tables_.part(op, before, p)]];
  }
  for (int p = 0; p < tables_.part_count(op, mode); ++p) {
    ++counts_[tables_.lane[tables_.part(op, mode, p)]];
  }
  solution_.modes[op] = mode;
}

void OrderEvaluator::move(int op, int place) {
  const auto begin = solution_.order.begin();
  const int before = places_[op];
  if (place < before) {
    std::rotate(begin + place, begin + before, begin + before + 1);
  } else {
    std::rotate(begin + before, begin + before + 1, begin + place + 1);
  }
  for (int i = std::min(place, before); i <= std::max(place, before); ++i) {
    places_[solution_.order[i]] = i;
  }
}

// Whether feeders are free at another time, as the number of parts on the lanes that they feed
// decides it; and by how much one of them is free earlier at most.
bool OrderEvaluator::feeders_shift(const Change& change, double* most_earlier) const {
  if (!tables_.has_feeders) return false;
  int difference[kMaxModeLanes] = {};
  for (int i = 0; i < change.mode_count; ++i) {
    const auto [op, mode] = change.modes[i];
    for (int p = 0; p < tables_.part_count(op, mode); ++p) {
      ++difference[tables_.lane[tables_.part(op, mode, p)]];
    }
    const int before = solution_.modes[op];
    for (int p = 0; p < tables_.part_count(op, before); ++p) {
      --difference[tables_.lane[tables_.part(op, before, p)]];
    }
  }
  bool shift = false;
  *most_earlier = 0;
  for (int lane = 0; lane < tables_.lanes; ++lane) {
    const ModeLane& l = tables_.problem.lanes[lane];
    if (difference[lane] == 0 || l.fed_by == kNone || l.enqueue_us <= 0) continue;
    shift = true;
    *most_earlier += std::max(0, -difference[lane]) * l.enqueue_us;
  }
  return shift;
}

// The first place where something may be computed differently, feeders apart.
int OrderEvaluator::first_touched(const Change& change) const {
  int first = tables_.operators;
  for (int i = 0; i < change.mode_count; ++i) {
    const int op = change.modes[i].op;
    first = std::min(first, places_[op]);
    if (!tables_.has_out_us) continue;
    // Whether other lanes wait for what it reads.
    for (int e = tables_.in_begin[op]; e < tables_.in_begin[op + 1]; ++e) {
      first = std::min(first, places_[tables_.edges[e].from]);
    }
  }
  if (change.moved != kNone) {
    first = std::min({first, places_[change.moved], change.place});
  }
  return first;
}

int OrderEvaluator::touched_until(const Change& change) const {
  int until = 0;
  for (int i = 0; i < change.mode_count; ++i) {
    until = std::max(until, places_[change.modes[i].op] + 1);
  }
  if (change.moved != kNone) {
    until = std::max({until, places_[change.moved] + 1, change.place + 1});
  }
  // A mode's operator may be among those that the moved one passes.
  return change.mode_count > 0 && change.moved != kNone ? std::min(until + 1, tables_.operators)
                                                        : until;
}

// The parts of the operator at that place; `free` is updated.
void OrderEvaluator::compute(int place, double* free) {
  const int op = solution_.order[place];
  const std::vector<int>& modes = solution_.modes;
  const int mode = modes[op];
  const int parts = tables_.part_count(op, mode);
  const int in_end = tables_.in_begin[op + 1];
  for (int p = 0; p < parts; ++p) {
    const size_t which = tables_.part(op, mode, p);
    const int lane = tables_.lane[which];
    double start = free[lane];
    double duration = tables_.us[which];
    unsigned others = 0;
    for (int i = tables_.in_begin[op]; i < in_end; ++i) {
      const ModeTables::Edge& edge = tables_.edges[i];
      const int from_mode = modes[edge.from];
      const size_t at = tables_.entry(edge, from_mode, mode, p);
      const ModeTables::Entry& entry = tables_.entries[at];
      others |= entry.lanes;
      if (!tables_.fetch_us.empty()) duration += tables_.fetch_us[at];
      const size_t from = tables_.part(edge.from, from_mode, 0);
      const size_t slot = tables_.slot(edge.from, 0);
      for (unsigned mask = entry.waits; mask != 0; mask &= mask - 1) {
        const int q = std::countr_zero(mask);
        const int from_lane = tables_.lane[from + q];
        double ready = new_times_[slot + q].end_us;
        if (from_lane != lane) ready += tables_.latency_us(from_lane, lane);
        start = std::max(start, ready);
      }
    }
    if (others != 0) {
      duration += std::popcount(others) * tables_.problem.lanes[lane].receive_us;
    }
    if (tables_.out_us[which] != 0) {
      for (int i = tables_.out_begin[op]; i < tables_.out_begin[op + 1]; ++i) {
        const ModeTables::Edge& edge = tables_.edges[tables_.out_edges[i]];
        if (tables_.crosses[tables_.cross(edge, mode, modes[edge.to])] >> p & 1) {
          duration += tables_.out_us[which];
          break;
        }
      }
    }
    const double end = start + duration;
    new_times_[tables_.slot(op, p)] = {start, end};
    free[lane] = end;
  }
  computed_.push_back(op);
}

// Computes from that place on. Nothing but times is different from `touched_until` on.
double OrderEvaluator::run(int from, int touched_until, double limit) {
  const bool goes_on = rest_shifts_;  // with what an earlier call began
  rest_shifts_ = false;
  evaluations_ += goes_on ? 0 : 1;
  const int lanes = tables_.lanes;
  double* free = new_free_.data() + static_cast<ptrdiff_t>(from) * lanes;
  double latest = 0;
  if (goes_on) {
    touched_until = tables_.operators;
  } else {
    from_ = from;
    latest = prefix_[from];
    if (from == 0) {
      tables_.free_from(counts_, free);
    } else {
      std::copy_n(free_.data() + static_cast<ptrdiff_t>(from) * lanes, lanes, free);
    }
  }
  auto checkpoint =
      std::lower_bound(checkpoints_.begin(), checkpoints_.end(), std::max(touched_until, from + 1),
                       [](const Checkpoint& c, int p) { return c.place < p; });
  for (int place = from; place < tables_.operators; ++place) {
    if (checkpoint != checkpoints_.end() && checkpoint->place == place) {
      double result = 0;
      if (may_stop(*checkpoint, free, latest, limit, &result)) {
        until_ = place;
        return result;
      }
      ++checkpoint;
    }
    std::copy_n(free, lanes, free + lanes);
    free += lanes;
    compute(place, free);
    ++steps_;
    const int op = solution_.order[place];
    const int mode = solution_.modes[op];
    double bound = 0;
    for (int p = 0; p < tables_.part_count(op, mode); ++p) {
      const double end = new_times_[tables_.slot(op, p)].end_us;
      latest = std::max(latest, end);
      bound = std::max(bound, end + tables_.tail_us[tables_.part(op, mode, p)]);
    }
    if (bound > limit) return kNever;
  }
  until_ = tables_.operators;
  return latest;
}

// All that comes later is a function of when lanes are free and of the live operators' ends. It is
// monotone, and if all of them come later by the same time, so does everything.
bool OrderEvaluator::may_stop(const Checkpoint& checkpoint, const double* free, double latest,
                              double limit, double* result) {
  double least = kNever;
  double most = -kNever;
  const double rest = suffix_[checkpoint.place];
  if (latest > limit) {
    *result = kNever;
    return true;
  }
  // Differences that say neither that all is lost nor that all moves alike: whatever comes next.
  const auto is_open = [&] { return least != most && rest + least <= limit; };
  const double* before = free_.data() + static_cast<ptrdiff_t>(checkpoint.place) * tables_.lanes;
  const auto note = [&](double difference) {
    least = std::min(least, difference);
    most = std::max(most, difference);
  };
  for (int lane = 0; lane < tables_.lanes; ++lane) note(free[lane] - before[lane]);
  if (is_open()) return false;
  for (const int op : checkpoint.live) {
    for (int i = 0; i < change_.mode_count; ++i) {
      if (change_.modes[i].op == op) return false;
    }
    const size_t slot = tables_.slot(op, 0);
    for (int p = 0; p < tables_.part_count(op, solution_.modes[op]); ++p) {
      note(new_times_[slot + p].end_us - times_[slot + p].end_us);
    }
    if (is_open()) return false;
  }
  if (rest + least > limit) {
    *result = kNever;
    return true;
  }
  if (least != most) return false;
  *result = std::max(latest, rest + least);
  rest_shifts_ = least != 0;
  return true;
}

// What is kept of the current solution, beside times.
void OrderEvaluator::summarise() {
  const int operators = tables_.operators;
  for (int place = 0; place < operators; ++place) {
    const int op = solution_.order[place];
    double latest = 0;
    for (int p = 0; p < tables_.part_count(op, solution_.modes[op]); ++p) {
      latest = std::max(latest, times_[tables_.slot(op, p)].end_us);
    }
    suffix_[place] = latest;
    prefix_[place + 1] = std::max(prefix_[place], latest);
  }
  makespan_us_ = prefix_[operators];
  for (int place = operators - 2; place >= 0; --place) {
    suffix_[place] = std::max(suffix_[place], suffix_[place + 1]);
  }
}

// Which operators' ends are read from checkpoints on follows from the order alone.
void OrderEvaluator::place_checkpoints() {
  const int operators = tables_.operators;
  for (size_t c = 0; c < checkpoints_.size(); ++c) {
    checkpoints_[c].place = static_cast<int>(c + 1) * kCheckpointDistance;
    checkpoints_[c].live.clear();
  }
  for (int place = 0; place < operators; ++place) {
    const int op = solution_.order[place];
    int last = place;
    for (int i = tables_.out_begin[op]; i < tables_.out_begin[op + 1]; ++i) {
      last = std::max(last, places_[tables_.edges[tables_.out_edges[i]].to]);
    }
    // The checkpoints at places in (place, last].
    for (int c = place / kCheckpointDistance; c < static_cast<int>(checkpoints_.size()); ++c) {
      if (checkpoints_[c].place > last) break;
      checkpoints_[c].live.push_back(op);
    }
  }
}

std::pair<int, int> OrderEvaluator::range_of(int op) const {
  std::pair<int, int> range{0, tables_.operators - 1};
  for (int i = tables_.in_begin[op]; i < tables_.in_begin[op + 1]; ++i) {
    range.first = std::max(range.first, places_[tables_.edges[i].from] + 1);
  }
  for (int i = tables_.out_begin[op]; i < tables_.out_begin[op + 1]; ++i) {
    range.second = std::min(range.second, places_[tables_.edges[tables_.out_edges[i]].to] - 1);
  }
  return range;
}

}  // namespace tandem
