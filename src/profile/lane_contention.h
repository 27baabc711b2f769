// How lanes slow each other down, measured once per platform and not per operator.
#pragma once

#include "profile/calibration_cache.h"
#include "profile/lane_crew.h"
#include "schedule/cost_table.h"

namespace tandem {

// Measures what `data` lack, and puts it there: each lane runs the two loads of OtherLoads, alone
// and while all others run either. Nothing for simulated lanes and for lanes by themselves. The
// caller has the lease.
Status measure_contention(LaneCrew& crew, CalibrationData* data);

// Of a slice that moves `bytes` at least and takes `us` alone: its share of memory is its rate over
// that of the lane's memory load, and between both loads, slowdowns are in proportion to it.
Contention contention_of(const LaneSlowdowns& lane, double bytes, double us);

}  // namespace tandem
