// How far measured times are from predicted ones.
#pragma once

#include <string>
#include <vector>

#include "report/timeline.h"

namespace tandem {

struct OperatorDrift {
  OperatorId op = kNone;
  double predicted_us = 0;  // of its slices on the lane
  double measured_us = 0;

  double ratio() const { return measured_us / predicted_us; }
};

// Of the slices of one lane whose times were predicted.
struct LaneDrift {
  double predicted_us = 0;
  double measured_us = 0;
  std::vector<OperatorDrift> operators;  // those that weigh most, furthest off first

  // Measured over predicted; 1 if nothing was predicted.
  double ratio() const { return predicted_us > 0 ? measured_us / predicted_us : 1; }
};

// By lane. Of several runs, the median time of each slice. In the prediction, slices take as long
// as they do while the other lanes do what they are predicted to.
std::vector<LaneDrift> drift(const Schedule& schedule, const Timeline& prediction,
                             const std::vector<Timeline>& runs);

// Of what a lane does, how far off its predicted time is worth a word.
inline constexpr double kDriftThreshold = 0.25;

// What there is to say, a line per lane; empty if no lane is off by more than the threshold.
std::string drift_text(const Graph& graph, const std::vector<std::string>& lane_names,
                       const std::vector<LaneDrift>& lanes, double threshold = kDriftThreshold);

}  // namespace tandem
