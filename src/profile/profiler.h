// Measures samples on all lanes, and puts them into a store.
#pragma once

#include <functional>
#include <vector>

#include "platform/topology.h"
#include "profile/lane_crew.h"
#include "profile/sampler.h"
#include "profile/store.h"

namespace tandem {

struct ProfilerOptions {
  double seconds = 0;          // that it may take, about, compilers aside; 0: until all is measured
  std::vector<int> lanes;      // indices in the crew; empty: all
  uint64_t seed = 1;           // of the order within rounds
  std::function<bool()> stop;  // asked now and then; null: never
  std::function<void(double share)> on_progress;  // of the time, or of the samples; may be null
};

struct ProfilerOutcome {
  int64_t rows = 0;            // measured, those measured again counted once
  int64_t disturbed = 0;       // of them, those that cannot be trusted
  int64_t measured_again = 0;  // rows that took more than one attempt
  int64_t skipped = 0;         // samples that take more memory than there is
  double seconds = 0;
  double compile_seconds = 0;
  bool complete = false;  // nothing is left to be measured
  bool stopped = false;   // since options.stop said so
};

// What is in the store is not measured again, unless it was disturbed and has attempts left. The
// policy is in docs/profiling.md. The caller has the lease.
StatusOr<ProfilerOutcome> profile(const std::vector<Sample>& samples, LaneCrew& crew,
                                  const Topology& topology, MeasurementStore& store,
                                  const ProfilerOptions& options);

// Facts of the lanes as JSON, for StoreIdentity.
std::string lane_facts_json(const LaneCrew& crew, const Topology& topology);

}  // namespace tandem
