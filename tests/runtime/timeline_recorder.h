// Keeps the timeline of every run, and judges them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
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

// Every slice is there once, slices of a lane follow each other in its order, and each starts after
// the end of every slice whose result it reads: by the region rules, not by the waits.
// `clocks_us`: by how much the clocks of lanes may differ.
inline void expect_obeyed(const Graph& graph, const Schedule& schedule, const Timeline& timeline,
                          double clocks_us = 0) {
  ASSERT_EQ(timeline.lanes.size(), schedule.lanes.size());
  std::vector<std::vector<std::optional<Span>>> slices;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    slices.emplace_back(schedule.lanes[lane].size());
    for (const Span& span : timeline.lanes[lane]) {
      ASSERT_LE(span.begin_us, span.end_us) << to_string(span.kind) << " of slice " << span.slice;
      if (span.kind != SpanKind::kSlice) continue;
      ASSERT_LT(static_cast<size_t>(span.slice), slices[lane].size());
      ASSERT_FALSE(slices[lane][span.slice]) << "twice: slice " << span.slice;
      slices[lane][span.slice] = span;
    }
    for (size_t i = 0; i < slices[lane].size(); ++i) {
      ASSERT_TRUE(slices[lane][i]) << "lane " << lane << " slice " << i << " is missing";
      ASSERT_GE(slices[lane][i]->begin_us, i == 0 ? -clocks_us : slices[lane][i - 1]->end_us);
      ASSERT_LE(slices[lane][i]->end_us, timeline.makespan_us + clocks_us);
    }
  }
  const Dependencies dependencies(graph, schedule);
  for (size_t lane = 0; lane < slices.size(); ++lane) {
    for (size_t i = 0; i < slices[lane].size(); ++i) {
      for (const Position maker : dependencies.of(schedule.lanes[lane][i].slice)) {
        ASSERT_LE(
            slices[maker.lane][maker.index]->end_us,
            slices[lane][i]->begin_us + (maker.lane == static_cast<int>(lane) ? 0 : clocks_us))
            << "lane " << lane << " slice " << i << " reads of lane " << maker.lane << " slice "
            << maker.index;
      }
    }
  }
}

}  // namespace tandem::testing
