#include "schedule/beam.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "schedule/partial_schedule.h"

namespace tandem {
namespace {

// How fast lanes are on this problem, and how long all lanes together would take for what is left.
class Outlook {
 public:
  Outlook(const ModeTables& tables, const std::vector<int>& order) : left_(order.size() + 1, 0) {
    // Work in the time that it takes on all lanes at once, if it could be divided as one likes:
    // each lane by its whole mode, or where there is none, by the parts that there are.
    std::vector<double> speed_sum(tables.lanes, 0);
    std::vector<double> together(tables.operators, 0);
    for (int op = 0; op < tables.operators; ++op) {
      std::vector<double> whole(tables.lanes, 0);
      double shortest = OrderEvaluator::kNever;
      for (int mode = 0; mode < tables.mode_count(op); ++mode) {
        double longest = 0;
        for (int p = 0; p < tables.part_count(op, mode); ++p) {
          longest = std::max(longest, tables.us[tables.part(op, mode, p)]);
        }
        shortest = std::min(shortest, longest);
        if (tables.part_count(op, mode) == 1) {
          const size_t part = tables.part(op, mode, 0);
          whole[tables.lane[part]] = std::max(tables.us[part], 1e-9);
        }
      }
      double speed = 0;
      for (const double us : whole) speed += us > 0 ? 1 / us : 0;
      together[op] = speed > 0 ? std::min(1 / speed, shortest) : shortest;
      for (int lane = 0; lane < tables.lanes; ++lane) {
        // Weighted by time: what takes long says more of a lane.
        if (whole[lane] > 0) speed_sum[lane] += together[op] * (together[op] / whole[lane]);
      }
    }
    double total = 0;
    for (const double speed : speed_sum) total += speed;
    for (const double speed : speed_sum) {
      weights_.push_back(total > 0 ? speed / total : 1.0 / tables.lanes);
    }
    for (size_t place = order.size(); place-- > 0;) {
      left_[place] = left_[place + 1] + together[order[place]];
    }
  }

  // When all would end if what is left from `place` on kept every lane busy.
  double end_us(const double* free, size_t place) const {
    double end = left_[place];
    for (size_t lane = 0; lane < weights_.size(); ++lane) end += weights_[lane] * free[lane];
    return end;
  }

 private:
  std::vector<double> weights_;  // by lane
  std::vector<double> left_;     // by place
};

struct State {
  PartialSchedule partial;
  double latest_bound_us = 0;  // the ways on from parts that have been placed
};

struct Extension {
  int state = 0;
  int mode = 0;
  double score = 0;
  double bound_us = 0;
  double sum_free_us = 0;
};

class Beam {
 public:
  Beam(const ModeTables& tables, const std::vector<int>& order, int width,
       const std::vector<double>& free_from, int64_t* tried)
      : tables_(tables), order_(order), width_(width), outlook_(tables, order), tried_(tried) {
    states_.push_back({PartialSchedule(tables, free_from), 0});
  }

  OrderedModes run() && {
    for (size_t place = 0; place < order_.size(); ++place) step(place);
    const auto best = std::min_element(
        states_.begin(), states_.end(),
        [](const State& a, const State& b) { return a.latest_bound_us < b.latest_bound_us; });
    return best->partial.solution();
  }

 private:
  void step(size_t place) {
    const int op = order_[place];
    extensions_.clear();
    for (size_t s = 0; s < states_.size(); ++s) {
      for (int mode = 0; mode < tables_.mode_count(op); ++mode) {
        extensions_.push_back(look_at(static_cast<int>(s), op, mode, place));
      }
    }
    *tried_ += static_cast<int64_t>(extensions_.size());
    std::vector<State> next;
    const std::vector<const Extension*> chosen = best_extensions();
    // A state's last extension takes it over, so that most need not be copied.
    std::vector<int> uses(states_.size(), 0);
    for (const Extension* e : chosen) ++uses[e->state];
    for (const Extension* e : chosen) {
      State& from = states_[e->state];
      if (--uses[e->state] == 0) {
        next.push_back(std::move(from));
      } else {
        next.push_back(from);
      }
      next.back().partial.add(op, e->mode);
      next.back().latest_bound_us = e->bound_us;
    }
    states_ = std::move(next);
  }

  // In order, of equals those first that were looked at first. A heap, as few of them are taken.
  std::vector<const Extension*> best_extensions() {
    heap_.clear();
    for (const Extension& e : extensions_) heap_.push_back(&e);
    const auto is_worse = [](const Extension* a, const Extension* b) {
      if (a->score != b->score) return a->score > b->score;
      return a->sum_free_us != b->sum_free_us ? a->sum_free_us > b->sum_free_us : a > b;
    };
    std::make_heap(heap_.begin(), heap_.end(), is_worse);
    std::vector<const Extension*> chosen;
    while (!heap_.empty() && static_cast<int>(chosen.size()) < width_) {
      std::pop_heap(heap_.begin(), heap_.end(), is_worse);
      const Extension& e = *heap_.back();
      heap_.pop_back();
      // The same in all that counts comes from modes that only differ in their past.
      const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const Extension* other) {
        return other->mode == e.mode && std::abs(other->score - e.score) < 1e-9 &&
               std::abs(other->sum_free_us - e.sum_free_us) < 1e-9;
      });
      if (!known) chosen.push_back(&e);
    }
    return chosen;
  }

  Extension look_at(int s, int op, int mode, size_t place) {
    const State& state = states_[s];
    double free[kMaxModeLanes];
    double ends[kMaxParts];
    state.partial.try_add(op, mode, free, ends);
    Extension extension{s, mode, 0, state.latest_bound_us, 0};
    for (int p = 0; p < tables_.part_count(op, mode); ++p) {
      extension.bound_us =
          std::max(extension.bound_us, ends[p] + tables_.tail_us[tables_.part(op, mode, p)]);
    }
    for (int lane = 0; lane < tables_.lanes; ++lane) extension.sum_free_us += free[lane];
    extension.score = std::max(extension.bound_us, outlook_.end_us(free, place + 1));
    return extension;
  }

  const ModeTables& tables_;
  const std::vector<int>& order_;
  const int width_;
  const Outlook outlook_;
  int64_t* tried_;
  std::vector<State> states_;
  std::vector<Extension> extensions_;
  std::vector<const Extension*> heap_;
};

}  // namespace

OrderedModes beam_search(const ModeTables& tables, const std::vector<int>& order, int width,
                         int64_t* tried) {
  return build_twice(tables, [&](const std::vector<double>& free) {
    return Beam(tables, order, width, free, tried).run();
  });
}

}  // namespace tandem
