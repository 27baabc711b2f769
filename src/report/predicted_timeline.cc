#include "report/predicted_timeline.h"

#include <algorithm>
#include <set>

#include "schedule/dependencies.h"
#include "schedule/transfers.h"

namespace tandem {
namespace {

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
    if (wait->us() > 0) return {wait->wait.lane, wait->wait.count - 1};
  }
  return p.index > 0 ? Position{p.lane, p.index - 1} : Position{kNone, 0};
}

double copies_us(const Problem& problem, int lane, const std::vector<TensorRegion>& regions) {
  double us = 0;
  for (const TensorRegion& region : regions) {
    us += problem.cost->copy_us(lane, copy_size(*problem.graph, region));
  }
  return us;
}

// Of one slice: what its lane is occupied by beside it (mode_problem.h), microseconds.
struct Commands {
  double receive_us = 0;
  double send_us = 0;
};

// By lane and slice.
std::vector<std::vector<Commands>> commands_of(const Problem& problem, const Schedule& schedule) {
  const Dependencies dependencies(*problem.graph, schedule);
  std::vector<std::vector<Commands>> commands;
  for (const auto& lane : schedule.lanes) commands.emplace_back(lane.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      std::set<int> others;
      for (const Position maker : dependencies.of(schedule.lanes[lane][i].slice)) {
        if (maker.lane == static_cast<int>(lane)) continue;
        others.insert(maker.lane);
        commands[maker.lane][maker.index].send_us = problem.cost->command_us(maker.lane);
      }
      commands[lane][i].receive_us =
          static_cast<double>(others.size()) * problem.cost->command_us(static_cast<int>(lane));
    }
  }
  return commands;
}

// The spans of one lane, one after another.
class LaneSpans {
 public:
  LaneSpans(const Problem& problem, const Schedule& schedule, const Evaluation& evaluation,
            int lane)
      : problem_(problem), schedule_(schedule), evaluation_(evaluation), lane_(lane) {}

  void feed(double us) {
    if (us > 0) add(SpanKind::kFeed, kNone, us);
  }
  void slice(size_t index, const Transfers::Around& around, const Commands& commands) {
    const PartTime& time = evaluation_.lanes[lane_][index];
    const auto slice = static_cast<int>(index);
    const std::vector<Wait>& waits = schedule_.lanes[lane_][index].waits;
    for (size_t w = 0; w < waits.size(); ++w) {
      const PartTime& awaited = evaluation_.lanes[waits[w].lane][waits[w].count - 1];
      double there = awaited.end_us + problem_.cost->crossing_us(waits[w].lane, lane_);
      // A dependency that this wait implies may have a longer way to come.
      if (w + 1 == waits.size()) there = time.start_us;
      add(SpanKind::kWait, slice, std::clamp(there, now_, std::max(now_, time.start_us)), waits[w]);
    }
    // Looking for what is long done is no wait: nothing started right after it.
    now_ = time.start_us + commands.receive_us;
    const double before = copies_us(problem_, lane_, around.before);
    const double after = copies_us(problem_, lane_, around.after);
    if (before > 0) add(SpanKind::kUpload, slice, std::min(now_ + before, time.end_us));
    const double made = time.end_us - commands.send_us;
    const double computed = after > 0 ? std::max(now_, made - after) : made;
    add(SpanKind::kSlice, slice, computed);
    if (after > 0) add(SpanKind::kDownload, slice, made);
    if (commands.send_us > 0) add(SpanKind::kSignal, slice, time.end_us);
  }
  std::vector<Span> take() && { return std::move(spans_); }

 private:
  void add(SpanKind kind, int slice, double end, const Wait& wait = {}) {
    spans_.push_back({kind, slice, wait, now_, end});
    now_ = end;
  }

  const Problem& problem_;
  const Schedule& schedule_;
  const Evaluation& evaluation_;
  const int lane_;
  double now_ = 0;
  std::vector<Span> spans_;
};

}  // namespace

Timeline predicted_timeline(const Problem& problem, const Schedule& schedule,
                            const Evaluation& evaluation) {
  std::vector<bool> own_memory;
  std::vector<double> feeding(problem.lanes.size(), 0);
  for (size_t lane = 0; lane < problem.lanes.size(); ++lane) {
    own_memory.push_back(problem.lanes[lane].own_memory);
    if (problem.lanes[lane].fed_by == kNone) continue;
    feeding[problem.lanes[lane].fed_by] += problem.cost->enqueue_us(static_cast<int>(lane)) *
                                           static_cast<double>(schedule.lanes[lane].size());
  }
  const Transfers transfers = plan_transfers(*problem.graph, schedule, own_memory);
  const std::vector<std::vector<Commands>> commands = commands_of(problem, schedule);
  Timeline timeline;
  timeline.makespan_us = evaluation.makespan_us;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    LaneSpans spans(problem, schedule, evaluation, static_cast<int>(lane));
    spans.feed(feeding[lane]);
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      const bool copies = !transfers.lanes[lane].empty();
      spans.slice(i, copies ? transfers.lanes[lane][i] : Transfers::Around{}, commands[lane][i]);
    }
    timeline.lanes.push_back(std::move(spans).take());
  }
  return timeline;
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
