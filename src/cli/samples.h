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
  void add(double value, bool disturbed);
  // Of the undisturbed ones if there are enough to speak of, of all otherwise.
  Summary summary() const;
  // Left out by summary().
  int dropped() const;

 private:
  bool enough() const;

  std::vector<double> clean_;
  std::vector<double> disturbed_;
};

}  // namespace tandem::cli
