// Keeps the timeline of every run, and judges them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "report/timeline.h"
#include "schedule/dependencies.h"

namespace tandem::testing {

class TimelineRecorder : public Tracer {
 public:
  bool wants_next() override { return wanted; }
  void recorded(const Schedule& /*schedule*/, const Timeline& timeline) override {
    timelines.push_back(timeline);
  }

  bool wanted = true;
  std::vector<Timeline> timelines;
};

// Whether a timeline is one of the schedule's, by the region rules, not by the waits.
class TimelineJudge {
 public:
  // `clocks_us`: by how much the clocks of lanes may differ.
  TimelineJudge(const Graph& graph, const Schedule& schedule, double clocks_us)
      : schedule_(schedule), dependencies_(graph, schedule), clocks_us_(clocks_us) {}

  // The first thing that is wrong, or nothing:
  // - every slice is there once, and a lane does one thing at a time, in its order;
  // - a slice starts after the end of every slice whose result it reads;
  // - a wait is one of the schedule's, for a slice that has ended when the wait ends, which is
  //   before the slice that waits starts;
  // - nothing lies before the start of the run, and no slice after its end.
  std::string violation(const Timeline& timeline) {
    slices_.clear();
    if (timeline.lanes.size() != schedule_.lanes.size()) return "not its lanes";
    for (int lane = 0; lane < static_cast<int>(schedule_.lanes.size()); ++lane) {
      const std::string wrong = take_lane(lane, timeline);
      if (!wrong.empty()) return fmt::format("lane {}: {}", lane, wrong);
    }
    for (int lane = 0; lane < static_cast<int>(schedule_.lanes.size()); ++lane) {
      std::string wrong = violation_of_dependencies(lane);
      if (wrong.empty()) wrong = violation_of_waits(lane, timeline);
      if (!wrong.empty()) return fmt::format("lane {}: {}", lane, wrong);
    }
    return "";
  }

 private:
  std::string take_lane(int lane, const Timeline& timeline) {
    std::vector<std::optional<Span>> slices(schedule_.lanes[lane].size());
    double free = -clocks_us_;
    int next = 0;
    for (const Span& span : timeline.lanes[lane]) {
      const std::string name = fmt::format("{} of slice {}", to_string(span.kind), span.slice);
      if (span.begin_us > span.end_us) return name + " ends before it begins";
      if (span.kind == SpanKind::kWait) continue;
      if (span.begin_us < free) return name + " begins before what came before has ended";
      free = span.end_us;
      if (span.kind != SpanKind::kSlice) continue;
      if (span.end_us > timeline.makespan_us + clocks_us_) return name + " ends after the run";
      if (span.slice != next++) return name + " is not the next one";
      if (next > static_cast<int>(slices.size())) return name + " is not the schedule's";
      slices[span.slice] = span;
    }
    if (next != static_cast<int>(slices.size())) return fmt::format("slice {} is missing", next);
    slices_.push_back(std::move(slices));
    return "";
  }

  std::string violation_of_dependencies(int lane) const {
    for (size_t i = 0; i < slices_[lane].size(); ++i) {
      for (const Position maker : dependencies_.of(schedule_.lanes[lane][i].slice)) {
        const double tolerance = maker.lane == lane ? 0 : clocks_us_;
        if (slices_[maker.lane][maker.index]->end_us > slices_[lane][i]->begin_us + tolerance) {
          return fmt::format(
              "slice {} begins before slice {} of lane {}, which it reads, has ended", i,
              maker.index, maker.lane);
        }
      }
    }
    return "";
  }

  std::string violation_of_waits(int lane, const Timeline& timeline) const {
    for (const Span& span : timeline.lanes[lane]) {
      if (span.kind != SpanKind::kWait) continue;
      const std::string name = fmt::format("a wait of slice {} for {} slices of lane {}",
                                           span.slice, span.wait.count, span.wait.lane);
      const std::vector<Wait>& waits = schedule_.lanes[lane][span.slice].waits;
      if (std::find(waits.begin(), waits.end(), span.wait) == waits.end()) {
        return name + " is not the schedule's";
      }
      if (slices_[span.wait.lane][span.wait.count - 1]->end_us > span.end_us + clocks_us_) {
        return name + " ends before them";
      }
      if (span.end_us > slices_[lane][span.slice]->begin_us) return name + " ends after its begin";
    }
    return "";
  }

  const Schedule& schedule_;
  const Dependencies dependencies_;
  const double clocks_us_;
  std::vector<std::vector<std::optional<Span>>> slices_;
};

// See TimelineJudge::violation().
inline std::string violation_of(const Graph& graph, const Schedule& schedule,
                                const Timeline& timeline, double clocks_us = 0) {
  return TimelineJudge(graph, schedule, clocks_us).violation(timeline);
}

}  // namespace tandem::testing
