// How a session learns of its lanes' speeds.
#pragma once

#include <memory>

#include "report/timeline.h"
#include "runtime/speed_watch.h"

namespace tandem {

// Compares runs with what they were predicted to take, for a SpeedWatch; hands on to another tracer
// what that one wants to know.
class SpeedTracer : public Tracer {
 public:
  // `other` may be null.
  SpeedTracer(size_t lanes, std::shared_ptr<Tracer> other)
      : watch_(lanes), other_(std::move(other)) {}

  bool wants_next() override;
  void recorded(const Schedule& schedule, const Timeline& timeline) override;

  // Of the schedule that runs next. Must stay where it is until the next call.
  void expect(const Timeline* prediction) { prediction_ = prediction; }
  // Whether the last run was to be recorded for the watch alone.
  bool wanted_alone() const { return watched_ && !for_other_; }
  // Lanes cannot tell times: from now on runs are recorded only if the other tracer wants it.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  SpeedWatch& watch() { return watch_; }
  int recorded_runs() const { return recorded_runs_; }

 private:
  SpeedWatch watch_;
  const std::shared_ptr<Tracer> other_;
  const Timeline* prediction_ = nullptr;
  bool watched_ = false;
  bool for_other_ = false;
  bool stopped_ = false;
  int recorded_runs_ = 0;
};

}  // namespace tandem
