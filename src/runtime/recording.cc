#include "runtime/recording.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {

StatusOr<std::unique_ptr<Recording>> Recording::start(LaneCrew& crew, const Schedule& schedule) {
  std::unique_ptr<Recording> recording(new Recording(schedule));
  recording->lanes_ = std::vector<LaneRecord>(schedule.lanes.size());
  for (size_t l = 0; l < schedule.lanes.size(); ++l) {
    // So that nothing is allocated while times are taken, on lanes of the host.
    size_t most = 1 + schedule.lanes[l].size();
    for (const ScheduledSlice& slice : schedule.lanes[l]) most += slice.waits.size();
    recording->lanes_[l].spans.reserve(most);
  }
  for (size_t l = 0; l < schedule.lanes.size(); ++l) {
    QueueLane* queue = crew.queue_lane(static_cast<int>(l));
    if (!queue || schedule.lanes[l].empty()) continue;
    TANDEM_RETURN_IF_ERROR(queue->start_recording().with_context("recording the run"));
    recording->lanes_[l].queue = queue;
  }
  return recording;
}

Recording::~Recording() {
  for (LaneRecord& lane : lanes_) {
    if (lane.queue) [[maybe_unused]]
      const auto ended = lane.queue->stop_recording();
  }
}

void Recording::add(int lane, SpanKind kind, int slice, const Wait& wait, Clock::time_point begin,
                    Clock::time_point end) {
  lanes_[lane].spans.push_back({kind, slice, wait, begin, end});
}

void Recording::add_enqueued(int lane, SpanKind kind, int slice, const Wait& wait) {
  LaneRecord& record = lanes_[lane];
  const size_t end = record.queue->recorded();
  // A slice may have nothing to enqueue: all of it lies where it belongs.
  if (end > record.seen || kind == SpanKind::kSlice)
    record.commands.push_back({kind, slice, wait, record.seen, end, Clock::now()});
  record.seen = end;
}

// A wait on a queue lasts from when the queue got to it: events say only when it ended. A queue
// that is held back waits for each next slice until somebody enqueues it.
Status Recording::add_spans_of_queue(int lane, bool held_back, Clock::time_point started) {
  LaneRecord& record = lanes_[lane];
  QueueLane* queue = record.queue;
  record.queue = nullptr;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<CommandTimes> times, queue->stop_recording());
  Clock::time_point free = started;
  int last = kNone;
  for (const Commands& commands : record.commands) {
    if (commands.end > times.size()) {
      return internal_error(fmt::format("lane {} has recorded {} commands of {}",
                                        queue->info().name, times.size(), commands.end));
    }
    if (commands.first == commands.end) {
      free = held_back ? std::max(free, commands.enqueued) : free;
      record.spans.push_back({commands.kind, commands.slice, commands.wait, free, free});
      continue;
    }
    const CommandTimes& first = times[commands.first];
    const Clock::time_point end = times[commands.end - 1].end;
    Clock::time_point begin = first.begin;
    if (held_back && commands.slice != last && first.queued > free) {
      for (const Wait& wait : schedule_.lanes[lane][commands.slice].waits) {
        record.spans.push_back({SpanKind::kWait, commands.slice, wait, free, first.queued});
      }
    }
    if (commands.kind == SpanKind::kWait) begin = std::min(begin, std::max(free, first.queued));
    record.spans.push_back({commands.kind, commands.slice, commands.wait, begin, end});
    free = std::max(free, end);
    last = commands.slice;
  }
  return {};
}

StatusOr<Timeline> Recording::finish(const std::vector<bool>& held_back, Clock::time_point started,
                                     Clock::time_point finished) {
  Timeline timeline;
  timeline.makespan_us = microseconds(finished - started);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].queue) {
      TANDEM_RETURN_IF_ERROR(add_spans_of_queue(static_cast<int>(lane), held_back[lane], started));
    }
    std::vector<Span>& spans = timeline.lanes.emplace_back();
    for (const HostSpan& span : lanes_[lane].spans) {
      spans.push_back({span.kind, span.slice, span.wait, microseconds(span.begin - started),
                       microseconds(span.end - started)});
    }
  }
  return timeline;
}

}  // namespace tandem
