// A tracer that keeps what it is told of the latest schedule.
#pragma once

#include <vector>

#include "report/timeline.h"

namespace tandem {

class Recorder : public Tracer {
 public:
  bool wants_next() override { return wanted_; }
  void recorded(const Schedule& schedule, const Timeline& timeline) override {
    if (schedule_ != &schedule) timelines_.clear();
    schedule_ = &schedule;
    timelines_.push_back(timeline);
  }

  // Whether runs are recorded from now on.
  void want(bool wanted) { wanted_ = wanted; }
  void clear() { timelines_.clear(); }
  const std::vector<Timeline>& timelines() const { return timelines_; }
  // The one whose makespan is the median; null if there is none.
  const Timeline* typical() const;

 private:
  bool wanted_ = false;
  const Schedule* schedule_ = nullptr;  // of timelines_; compared only
  std::vector<Timeline> timelines_;
};

}  // namespace tandem
