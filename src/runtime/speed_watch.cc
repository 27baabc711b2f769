#include "runtime/speed_watch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tandem {

SpeedWatch::SpeedWatch(size_t lanes, const SpeedWatchOptions& options)
    : options_(options), threshold_(std::log1p(options.threshold)), lanes_(lanes) {
  for (Lane& lane : lanes_) lane.forget_after = options.forget_after;
}

bool SpeedWatch::wants_next() {
  const bool alert =
      std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.streak != 0; });
  const bool early = recorded_ < options_.patience && (runs_ > 0 || recorded_ > 0);
  return ++runs_ >= options_.period || early || alert;
}

void SpeedWatch::observe(const std::vector<double>& ratios) {
  runs_ = 0;
  recorded_ = std::min(recorded_ + 1, options_.patience);
  for (size_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    if (ratios[l] <= 0) {
      if (std::abs(lane.assumed) < threshold_ || ++lane.unseen < lane.forget_after) continue;
      lane.unseen = 0;
      lane.forget_after *= 2;
      lane.estimate /= 2;
      forgotten_ = true;
      continue;
    }
    const double off = std::log(ratios[l]);
    const int direction = off > threshold_ ? 1 : off < -threshold_ ? -1 : 0;
    if (direction * lane.streak <= 0) lane.streak = 0;
    lane.streak += direction;
    lane.estimate += options_.weight * (lane.assumed + off - lane.estimate);
    if (lane.unseen == 0 && direction <= 0) lane.forget_after = options_.forget_after;
    lane.unseen = 0;
  }
}

bool SpeedWatch::has_drifted() const {
  return forgotten_ || std::any_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) {
           return std::abs(lane.streak) >= options_.patience;
         });
}

std::vector<double> SpeedWatch::factors() const {
  std::vector<double> factors;
  for (const Lane& lane : lanes_) factors.push_back(std::exp(lane.estimate));
  return factors;
}

void SpeedWatch::settle() {
  for (Lane& lane : lanes_) lane.assumed = lane.estimate;
  calm_down();
}

void SpeedWatch::calm_down() {
  for (Lane& lane : lanes_) lane.streak = 0;
  forgotten_ = false;
}

}  // namespace tandem
