#include "report/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "report/perfetto.pb.h"

namespace tandem {
namespace {

// Clocks of devices may be off a little, and time in traces has no sign.
constexpr double kStartUs = 1e6;
constexpr int kMeasured = 1;
constexpr int kPredicted = 2;
constexpr char kAbout[] = "about this run";

uint64_t nanoseconds(double us) {
  return static_cast<uint64_t>(std::llround(std::max(0.0, us + kStartUs) * 1000));
}
double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000 - kStartUs; }

// Of a process, or of one of its lanes.
uint64_t track_id(int process, int lane = kNone) {
  return static_cast<uint64_t>(process) * 1000 + static_cast<uint64_t>(lane + 1);
}
uint64_t flow_id(int process, size_t number) {
  return static_cast<uint64_t>(process) << 32 | (number + 1);
}

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {}

  std::string write() && {
    add_process(kMeasured, "measured");
    add_about();
    add_timeline(kMeasured, trace_.measured);
    if (!trace_.predicted.empty()) {
      add_process(kPredicted, "predicted");
      add_timeline(kPredicted, trace_.predicted);
    }
    return result_.SerializeAsString();
  }

 private:
  perfetto::TracePacket& packet() {
    perfetto::TracePacket& packet = *result_.add_packet();
    packet.set_trusted_packet_sequence_id(1);
    return packet;
  }
  perfetto::TrackEvent& event(double us, uint64_t track, perfetto::TrackEvent::Type type) {
    perfetto::TracePacket& packet = this->packet();
    packet.set_timestamp(nanoseconds(us));
    packet.mutable_track_event()->set_track_uuid(track);
    packet.mutable_track_event()->set_type(type);
    return *packet.mutable_track_event();
  }
  static void annotate(perfetto::TrackEvent& event, const char* name, const std::string& text) {
    perfetto::DebugAnnotation& annotation = *event.add_debug_annotations();
    annotation.set_name(name);
    annotation.set_string_value(text);
  }
  static void annotate(perfetto::TrackEvent& event, const char* name, int value) {
    perfetto::DebugAnnotation& annotation = *event.add_debug_annotations();
    annotation.set_name(name);
    annotation.set_int_value(value);
  }

  void add_process(int process, const char* what) {
    perfetto::TrackDescriptor& descriptor = *packet().mutable_track_descriptor();
    descriptor.set_uuid(track_id(process));
    descriptor.mutable_process()->set_pid(process);
    descriptor.mutable_process()->set_process_name(
        fmt::format("{} {}, {}", trace_.model, trace_.strategy, what));
    for (size_t lane = 0; lane < trace_.lanes.size(); ++lane) {
      perfetto::TrackDescriptor& track = *packet().mutable_track_descriptor();
      track.set_uuid(track_id(process, static_cast<int>(lane)));
      track.set_parent_uuid(track_id(process));
      track.mutable_thread()->set_pid(process);
      // Threads of one process, one of another: none has the id of its process.
      track.mutable_thread()->set_tid(process * 100 + static_cast<int>(lane));
      track.mutable_thread()->set_thread_name(trace_.lanes[lane]);
    }
  }

  void add_about() {
    perfetto::TrackEvent& about = event(0, track_id(kMeasured), perfetto::TrackEvent::TYPE_INSTANT);
    about.set_name(kAbout);
    annotate(about, "model", trace_.model);
    annotate(about, "strategy", trace_.strategy);
    annotate(about, "sync", trace_.sync);
    annotate(about, "conditions", trace_.conditions);
    annotate(about, "times", trace_.times);
  }

  void add_timeline(int process, const TraceTimeline& lanes) {
    // By the slice awaited, the arrows that leave it.
    std::map<std::pair<int, int>, std::vector<uint64_t>> leaving;
    std::map<std::pair<int, int>, std::vector<uint64_t>> arriving;
    size_t flows = 0;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      for (const TraceSpan& span : lanes[lane]) {
        for (const SlicePlace& from : span.after) {
          const uint64_t flow = flow_id(process, flows++);
          leaving[{from.lane, from.index}].push_back(flow);
          arriving[{static_cast<int>(lane), span.slice}].push_back(flow);
        }
      }
    }
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      const uint64_t track = track_id(process, static_cast<int>(lane));
      for (const TraceSpan& span : lanes[lane]) {
        perfetto::TrackEvent& begin =
            event(span.begin_us, track, perfetto::TrackEvent::TYPE_SLICE_BEGIN);
        begin.set_name(span.kind == to_string(SpanKind::kSlice) ? span.name
                                                                : span.kind + " " + span.name);
        begin.add_categories(span.kind);
        annotate(begin, "name", span.name);
        annotate(begin, "operator", span.op);
        annotate(begin, "slice", span.slice);
        if (span.kind == to_string(SpanKind::kSlice)) {
          const std::pair<int, int> place{static_cast<int>(lane), span.slice};
          for (const uint64_t flow : leaving[place]) begin.add_flow_ids(flow);
          for (const uint64_t flow : arriving[place]) begin.add_terminating_flow_ids(flow);
        }
        event(span.end_us, track, perfetto::TrackEvent::TYPE_SLICE_END);
      }
    }
  }

  const Trace& trace_;
  perfetto::Trace result_;
};

class Reader {
 public:
  StatusOr<Trace> read(const perfetto::Trace& file) {
    for (const perfetto::TracePacket& packet : file.packet()) {
      if (packet.has_track_descriptor()) read_track(packet.track_descriptor());
      if (packet.has_track_event()) read_event(packet);
      if (problem_) return corrupt(*problem_);
    }
    if (trace_.model.empty()) return corrupt("it does not say what was run");
    for (const auto& [track, open] : open_) {
      if (open) return corrupt("a span of it has no end");
    }
    for (auto& [flow, to] : arriving_) {
      const auto from = leaving_.find(flow);
      if (from == leaving_.end()) return corrupt("an arrow of it comes from nowhere");
      span(to).after.push_back({from->second.lane, slice_of(from->second)});
    }
    return std::move(trace_);
  }

 private:
  // A span: of a process and lane, the index-th.
  struct Place {
    int process = 0;
    int lane = 0;
    size_t index = 0;
  };

  TraceTimeline& timeline(int process) {
    return process == kPredicted ? trace_.predicted : trace_.measured;
  }
  TraceSpan& span(const Place& p) { return timeline(p.process)[p.lane][p.index]; }
  int slice_of(const Place& p) { return span(p).slice; }

  void read_track(const perfetto::TrackDescriptor& descriptor) {
    if (!descriptor.has_thread()) return;
    const int process = descriptor.thread().pid();
    if (process != kMeasured && process != kPredicted) return;
    TraceTimeline& lanes = timeline(process);
    tracks_[descriptor.uuid()] = {process, static_cast<int>(lanes.size()), 0};
    lanes.emplace_back();
    if (process == kMeasured) trace_.lanes.push_back(descriptor.thread().thread_name());
  }

  static const perfetto::DebugAnnotation* find(const perfetto::TrackEvent& event,
                                               std::string_view name) {
    for (const perfetto::DebugAnnotation& a : event.debug_annotations()) {
      if (a.name() == name) return &a;
    }
    return nullptr;
  }
  std::string text(const perfetto::TrackEvent& event, const char* name) {
    const perfetto::DebugAnnotation* found = find(event, name);
    if (!found) problem_ = fmt::format("an event of it has no {}", name);
    return found ? found->string_value() : "";
  }

  void read_event(const perfetto::TracePacket& packet) {
    const perfetto::TrackEvent& event = packet.track_event();
    if (event.name() == kAbout) {
      trace_.model = text(event, "model");
      trace_.strategy = text(event, "strategy");
      trace_.sync = text(event, "sync");
      trace_.conditions = text(event, "conditions");
      trace_.times = text(event, "times");
      return;
    }
    const auto track = tracks_.find(event.track_uuid());
    if (track == tracks_.end()) {
      problem_ = "an event of it belongs to no lane";
      return;
    }
    std::vector<TraceSpan>& lane = timeline(track->second.process)[track->second.lane];
    bool& open = open_[event.track_uuid()];
    const bool begins = event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN;
    if (begins == open) {
      problem_ = "spans of one lane overlap in it";
      return;
    }
    open = begins;
    if (!begins) {
      lane.back().end_us = microseconds(packet.timestamp());
      return;
    }
    TraceSpan& span = lane.emplace_back();
    span.kind = event.categories_size() > 0 ? event.categories(0) : "";
    span.name = text(event, "name");
    span.op = text(event, "operator");
    const perfetto::DebugAnnotation* slice = find(event, "slice");
    span.slice = slice ? static_cast<int>(slice->int_value()) : kNone;
    span.begin_us = microseconds(packet.timestamp());
    const Place place{track->second.process, track->second.lane, lane.size() - 1};
    for (const uint64_t flow : event.flow_ids()) leaving_[flow] = place;
    for (const uint64_t flow : event.terminating_flow_ids()) arriving_[flow] = place;
  }

  Trace trace_;
  std::map<uint64_t, Place> tracks_;
  std::map<uint64_t, bool> open_;  // by track
  std::map<uint64_t, Place> leaving_;
  std::map<uint64_t, Place> arriving_;
  std::optional<std::string> problem_;
};

}  // namespace

TraceTimeline trace_timeline(const Graph& graph, const Schedule& schedule,
                             const std::vector<std::string>& lane_names, const Timeline& timeline) {
  TraceTimeline result;
  for (size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    result.emplace_back();
    for (const Span& span : timeline.lanes[lane]) {
      TraceSpan& named = result.back().emplace_back();
      named.kind = to_string(span.kind);
      named.slice = span.slice;
      named.begin_us = span.begin_us;
      named.end_us = span.end_us;
      if (span.slice == kNone) continue;
      const ScheduledSlice& scheduled = schedule.lanes[lane][span.slice];
      named.name = to_string(graph, scheduled.slice);
      named.op = graph.op(scheduled.slice.op).name;
      if (span.kind == SpanKind::kWait) {
        const Slice& awaited = schedule.lanes[span.wait.lane][span.wait.count - 1].slice;
        named.name = fmt::format("{} on {}", to_string(graph, awaited), lane_names[span.wait.lane]);
      } else if (span.kind == SpanKind::kSlice) {
        for (const Wait& wait : scheduled.waits) named.after.push_back({wait.lane, wait.count - 1});
      }
    }
  }
  return result;
}

std::string to_perfetto(const Trace& trace) { return Writer(trace).write(); }

StatusOr<Trace> from_perfetto(std::string_view bytes, const std::string& label) {
  perfetto::Trace file;
  if (!file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return corrupt(label + " is no trace of 'tandem run --trace', or not all of one");
  }
  StatusOr<Trace> trace = Reader().read(file);
  if (!trace.ok()) {
    return corrupt(fmt::format("{} is no trace of 'tandem run --trace', or not all of one: {}",
                               label, trace.status().message()));
  }
  return trace;
}

}  // namespace tandem
