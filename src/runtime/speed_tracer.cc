#include "runtime/speed_tracer.h"

#include "report/drift.h"

namespace tandem {

bool SpeedTracer::wants_next() {
  for_other_ = other_ && other_->wants_next();
  watched_ = !stopped_ && watch_.wants_next();
  return for_other_ || watched_;
}

void SpeedTracer::recorded(const Schedule& schedule, const Timeline& timeline) {
  if (for_other_) other_->recorded(schedule, timeline);
  if (stopped_ || !prediction_) return;
  ++recorded_runs_;
  std::vector<double> ratios;
  for (const LaneDrift& lane : drift(schedule, *prediction_, {timeline})) {
    ratios.push_back(lane.predicted_us > 0 ? lane.ratio() : 0);
  }
  watch_.observe(ratios);
}

}  // namespace tandem
