#include "report/predicted_timeline.h"

#include <algorithm>

#include "schedule/dependencies.h"
#include "schedule/transfers.h"

namespace tandem {
namespace {

Predecessors waits_of(const Schedule& schedule) {
  Predecessors waits(schedule.lanes.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane)
    waits[lane].resize(schedule.lanes[lane].size());
  for (const Crossing& c : crossings(schedule)) {
    waits[c.to_lane][c.to_slice].push_back({c.from_lane, c.from_slice});
  }
  return waits;
}

// By lane and slice, what the lane does for it from the end of the slice before it on: waits, the
// slice itself.
struct Step {
  std::vector<Span> waits;
  Span slice;
};
std::vector<std::vector<Step>> steps_of(const Schedule& schedule, const Timeline& timeline) {
  std::vector<std::vector<Step>> steps;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    steps.emplace_back(schedule.lanes[lane].size());
    for (const Span& span : timeline.lanes[lane]) {
      if (span.kind == SpanKind::kSlice) steps[lane][span.slice].slice = span;
      if (span.kind == SpanKind::kWait) steps[lane][span.slice].waits.push_back(span);
    }
  }
  return steps;
}

// What the slice started right after; lane kNone: nothing.
Position reason_of(const std::vector<std::vector<Step>>& steps, Position p) {
  const std::vector<Span>& waits = steps[p.lane][p.index].waits;
  for (auto wait = waits.rbegin(); wait != waits.rend(); ++wait) {
    const Position awaited{wait->wait.lane, wait->wait.count - 1};
    if (steps[awaited.lane][awaited.index].slice.end_us > wait->begin_us) return awaited;
  }
  return p.index > 0 ? Position{p.lane, p.index - 1} : Position{kNone, 0};
}

class Simulation {
 public:
  Simulation(const Problem& problem, const Schedule& schedule)
      : problem_(problem), schedule_(schedule), ends_(schedule.lanes.size()) {
    std::vector<bool> own_memory;
    for (const LaneTraits& lane : problem.lanes) own_memory.push_back(lane.own_memory);
    transfers_ = plan_transfers(*problem.graph, schedule, own_memory);
    timeline_.lanes.resize(schedule.lanes.size());
    free_.assign(schedule.lanes.size(), 0);
    for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
      ends_[lane].resize(schedule.lanes[lane].size());
      const double feeding = problem.cost->enqueue_us(static_cast<int>(lane)) *
                             static_cast<double>(schedule.lanes[lane].size());
      const int feeder = problem.lanes[lane].fed_by;
      if (feeder != kNone && feeding > 0) {
        add(feeder, SpanKind::kFeed, kNone, free_[feeder], free_[feeder] + feeding);
      }
    }
  }

  Timeline run() && {
    for (const Position p : order_slices(waits_of(schedule_)).order) step(p);
    for (const std::vector<double>& ends : ends_) {
      if (!ends.empty()) timeline_.makespan_us = std::max(timeline_.makespan_us, ends.back());
    }
    return std::move(timeline_);
  }

 private:
  void add(int lane, SpanKind kind, int slice, double begin, double end, const Wait& wait = {}) {
    timeline_.lanes[lane].push_back({kind, slice, wait, begin, end});
    free_[lane] = end;
  }

  double copies_us(int lane, const std::vector<TensorRegion>& regions) const {
    double us = 0;
    for (const TensorRegion& region : regions) {
      us += problem_.cost->copy_us(lane, copy_size(*problem_.graph, region));
    }
    return us;
  }

  void step(Position p) {
    const ScheduledSlice& slice = schedule_.lanes[p.lane][p.index];
    const double enqueued = (p.index + 1) * problem_.cost->enqueue_us(p.lane);
    for (const Wait& wait : slice.waits) {
      const double there = std::max(free_[p.lane], ends_[wait.lane][wait.count - 1]);
      add(p.lane, SpanKind::kWait, p.index, free_[p.lane],
          there + problem_.cost->crossing_us(wait.lane, p.lane), wait);
    }
    free_[p.lane] = std::max(free_[p.lane], enqueued);
    Transfers::Around around;
    if (!transfers_.lanes[p.lane].empty()) around = transfers_.lanes[p.lane][p.index];
    copy(p, SpanKind::kUpload, around.before);
    add(p.lane, SpanKind::kSlice, p.index, free_[p.lane], free_[p.lane] + slice.predicted_us);
    copy(p, SpanKind::kDownload, around.after);
    ends_[p.lane][p.index] = free_[p.lane];
  }

  void copy(Position p, SpanKind kind, const std::vector<TensorRegion>& regions) {
    const double us = copies_us(p.lane, regions);
    if (us > 0) add(p.lane, kind, p.index, free_[p.lane], free_[p.lane] + us);
  }

  const Problem& problem_;
  const Schedule& schedule_;
  Transfers transfers_;
  Timeline timeline_;
  std::vector<double> free_;               // by lane
  std::vector<std::vector<double>> ends_;  // by lane and slice, with what is copied afterwards
};

}  // namespace

Timeline predicted_timeline(const Problem& problem, const Schedule& schedule) {
  return Simulation(problem, schedule).run();
}

std::vector<std::vector<bool>> critical_slices(const Schedule& schedule, const Timeline& timeline) {
  const std::vector<std::vector<Step>> steps = steps_of(schedule, timeline);
  std::vector<std::vector<bool>> critical;
  Position at{kNone, 0};
  for (size_t lane = 0; lane < steps.size(); ++lane) {
    critical.emplace_back(steps[lane].size(), false);
    if (steps[lane].empty()) continue;
    if (at.lane == kNone ||
        steps[lane].back().slice.end_us > steps[at.lane][at.index].slice.end_us) {
      at = {static_cast<int>(lane), static_cast<int>(steps[lane].size()) - 1};
    }
  }
  for (; at.lane != kNone; at = reason_of(steps, at)) critical[at.lane][at.index] = true;
  return critical;
}

}  // namespace tandem
