// Which mechanism of synchronisation a platform uses.
#pragma once

#include <string>
#include <vector>

#include "profile/lane_crew.h"
#include "tandem/session.h"

namespace tandem {

struct ConsideredMechanism {
  SyncMechanism mechanism = SyncMechanism::kSvm;
  double round_trip_us = 0;  // on average over pairs of a CPU lane and a queue; if usable
  std::string why_not;       // why it was not chosen; empty for the one that was
};

struct MechanismChoice {
  SyncMechanism mechanism = SyncMechanism::kSvm;
  std::string why;  // for people
  std::vector<ConsideredMechanism> considered;
};

struct MechanismChoiceOptions {
  SyncMechanism asked = SyncMechanism::kAuto;
  // Where measured costs are kept: see CalibrationCache.
  std::string calibration_dir;
  std::string fingerprint;  // of the platform
};

// kAuto: the one with which round trips take least, of those that OpenCL promises (all but pinned)
// and that pass their self-test. Measured once per platform, in a few milliseconds. A mechanism
// that was asked for and does not work is kUnsupported. The caller has the lease.
StatusOr<MechanismChoice> choose_mechanism(LaneCrew& crew, const MechanismChoiceOptions& options);

}  // namespace tandem
