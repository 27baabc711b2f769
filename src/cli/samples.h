// Repeated measurements on a machine that others use, too.
#pragma once

#include <vector>

#include "support/statistics.h"

namespace tandem::cli {

// Says whether the kernel took a processor away from a thread of this process since construction:
// then something else ran there, and the time taken is not ours.
class PreemptionWatch {
 public:
  PreemptionWatch();
  bool preempted() const;

 private:
  long switches_;
};

class Samples {
 public:
  // Disturbed samples are left out if there are some undisturbed ones, and these are at least this
  // share of all.
  explicit Samples(double least_clean_share = 0) : least_clean_share_(least_clean_share) {}

  void add(double value, bool disturbed);
  // Of the undisturbed ones if there are enough to speak of, of all otherwise.
  Summary summary() const;
  int count() const { return static_cast<int>(clean_.size() + disturbed_.size()); }
  int disturbed() const { return static_cast<int>(disturbed_.size()); }
  // Left out by summary().
  int dropped() const;

 private:
  bool enough() const;

  double least_clean_share_;
  std::vector<double> clean_;
  std::vector<double> disturbed_;
};

}  // namespace tandem::cli
