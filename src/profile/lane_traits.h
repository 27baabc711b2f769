// The lanes of a crew as schedulers see them.
#pragma once

#include <vector>

#include "profile/lane_crew.h"
#include "schedule/scheduler.h"

namespace tandem {

std::vector<LaneTraits> traits_of(const LaneCrew& crew);

}  // namespace tandem
