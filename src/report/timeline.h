// What the lanes did in one run, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace tandem {

enum class SpanKind : uint8_t {
  kSlice,     // computing
  kWait,      // for another lane
  kSignal,    // of a queue lane: telling the others
  kUpload,    // of a lane with memory of its own: what a slice reads
  kDownload,  // ... and what others read of what it made
  kFeed,      // of a host lane: enqueueing the slices of a queue lane before its own first slice
};
const char* to_string(SpanKind kind);  // "slice", "wait", ...

// Microseconds from when all inputs were in place.
struct Span {
  SpanKind kind = SpanKind::kSlice;
  // The slice of the schedule's lane that is computed, is waited or uploaded for, or is signalled
  // or downloaded after; kNone for kFeed.
  int slice = kNone;
  Wait wait{};  // of kWait: what for
  double begin_us = 0;
  double end_us = 0;

  double us() const { return end_us - begin_us; }
  bool operator==(const Span&) const = default;
};

// By lane, in the order in which they began. Waits that found what they were for are there too, if
// the lane had to look; a queue that needed no command for it has no span.
struct Timeline {
  std::vector<std::vector<Span>> lanes;
  double makespan_us = 0;
};

// A slice of one lane that a slice of another waits for.
struct Crossing {
  int from_lane = 0;
  int from_slice = 0;
  int to_lane = 0;
  int to_slice = 0;

  bool operator==(const Crossing&) const = default;
};
std::vector<Crossing> crossings(const Schedule& schedule);

// What a run is recorded for. Injected where schedules are run; without one nothing is recorded,
// and devices' clocks are not asked.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // Asked before each run: whether it is to be recorded, which makes it a little slower.
  virtual bool wants_next() = 0;
  // After a run that was recorded and succeeded, on the thread that called run().
  virtual void recorded(const Schedule& schedule, const Timeline& timeline) = 0;
};

}  // namespace tandem
