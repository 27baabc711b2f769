// A recorded run, self-contained: what `tandem run --trace` writes, for Perfetto (ui.perfetto.dev)
// and for `tandem report`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "report/timeline.h"

namespace tandem {

// A slice of a lane: the index-th.
struct SlicePlace {
  int lane = 0;
  int index = 0;

  bool operator==(const SlicePlace&) const = default;
};

// A Span with its name instead of the schedule.
struct TraceSpan {
  std::string kind;  // to_string(SpanKind)
  std::string name;  // "conv1[c 0:32]"; of a wait, what is waited for
  std::string op;    // the operator's name; empty for kFeed
  int slice = kNone;
  double begin_us = 0;
  double end_us = 0;
  std::vector<SlicePlace> after{};  // of a slice: those on other lanes that it waits for

  double us() const { return end_us - begin_us; }
  bool operator==(const TraceSpan&) const = default;
};

using TraceTimeline = std::vector<std::vector<TraceSpan>>;  // by lane

struct Trace {
  std::string model;
  std::string strategy;
  std::string sync;
  std::string conditions;  // JSON, as commands print it
  std::string times;       // JSON: of the timed runs, in milliseconds
  std::vector<std::string> lanes;
  TraceTimeline measured;
  TraceTimeline predicted;  // no lanes if there is no prediction

  bool operator==(const Trace&) const = default;
};

TraceTimeline trace_timeline(const Graph& graph, const Schedule& schedule,
                             const std::vector<std::string>& lane_names, const Timeline& timeline);

// In Perfetto's format: a process for what was measured, one for what was predicted, a track per
// lane, an arrow per crossing.
std::string to_perfetto(const Trace& trace);
// kCorrupt for what to_perfetto() cannot have made. `label` names it in errors.
StatusOr<Trace> from_perfetto(std::string_view bytes, const std::string& label);

}  // namespace tandem
