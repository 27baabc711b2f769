// How an executor records a run.
#pragma once

#include <vector>

#include "profile/lane_crew.h"
#include "report/timeline.h"
#include "support/clock.h"

namespace tandem {

// Of one run, while the lease on the lanes is held. Calls for one lane come from one thread at a
// time.
class Recording {
 public:
  // The lanes are idle. Starts recordings of those queues that have slices.
  static StatusOr<std::unique_ptr<Recording>> start(LaneCrew& crew, const Schedule& schedule);
  // The lanes are idle.
  ~Recording();

  // Of a host lane.
  void add(int lane, SpanKind kind, int slice, const Wait& wait, Clock::time_point begin,
           Clock::time_point end);
  // Of a queue lane: what has been enqueued since the last call was for that.
  void add_enqueued(int lane, SpanKind kind, int slice, const Wait& wait = {});
  // ... was for no slice.
  void skip_enqueued(int lane) { lanes_[lane].seen = lanes_[lane].queue->recorded(); }

  // Once the lanes are idle again. `held_back`: by lane, see Synchronization.
  StatusOr<Timeline> finish(const std::vector<bool>& held_back, Clock::time_point started,
                            Clock::time_point finished);

 private:
  struct HostSpan {
    SpanKind kind;
    int slice;
    Wait wait;
    Clock::time_point begin;
    Clock::time_point end;
  };
  struct Commands {
    SpanKind kind;
    int slice;
    Wait wait;
    size_t first;
    size_t end;
    Clock::time_point enqueued;
  };
  struct LaneRecord {
    QueueLane* queue = nullptr;
    std::vector<HostSpan> spans;
    std::vector<Commands> commands;
    size_t seen = 0;  // of the commands that the queue has recorded
  };

  explicit Recording(const Schedule& schedule) : schedule_(schedule) {}
  Status add_spans_of_queue(int lane, bool held_back, Clock::time_point started);

  const Schedule& schedule_;
  std::vector<LaneRecord> lanes_;
};

// Records how long it lives, on a host lane. Does nothing without a recording.
class RecordedSpan {
 public:
  RecordedSpan(Recording* recording, int lane, SpanKind kind, int slice, const Wait& wait = {})
      : recording_(recording), lane_(lane), kind_(kind), slice_(slice), wait_(wait) {
    if (recording_) begin_ = Clock::now();
  }
  ~RecordedSpan() {
    if (recording_) recording_->add(lane_, kind_, slice_, wait_, begin_, Clock::now());
  }
  RecordedSpan(const RecordedSpan&) = delete;
  RecordedSpan& operator=(const RecordedSpan&) = delete;

 private:
  Recording* recording_;
  int lane_;
  SpanKind kind_;
  int slice_;
  Wait wait_;
  Clock::time_point begin_;
};

}  // namespace tandem
