#include "cli/samples.h"

#include <sys/resource.h>

#include <cstddef>
#include <utility>

namespace tandem::cli {
namespace {

constexpr size_t kLeastClean = 3;

// Involuntary context switches of all threads so far.
long involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

PreemptionWatch::PreemptionWatch() : switches_(involuntary_switches()) {}

bool PreemptionWatch::preempted() const { return involuntary_switches() != switches_; }

void Samples::add(double value, bool disturbed) {
  (disturbed ? disturbed_ : clean_).push_back(value);
}

bool Samples::enough() const {
  const auto all = static_cast<double>(clean_.size() + disturbed_.size());
  return clean_.size() >= kLeastClean &&
         static_cast<double>(clean_.size()) >= least_clean_share_ * all;
}

Summary Samples::summary() const {
  if (enough()) return summarize(clean_);
  std::vector<double> all = clean_;
  all.insert(all.end(), disturbed_.begin(), disturbed_.end());
  return summarize(std::move(all));
}

int Samples::dropped() const { return enough() ? disturbed() : 0; }

}  // namespace tandem::cli
