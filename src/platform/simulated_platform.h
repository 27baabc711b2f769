// A platform file as lanes on a simulated clock: profile, train, plan and run work on them as on
// real ones.
#pragma once

#include <memory>
#include <string>

#include "lane/sim/world.h"
#include "platform/platform_file.h"
#include "tandem/platform.h"

namespace tandem {

class SimulatedPlatform : public Platform {
 public:
  virtual sim::World& world() const = 0;
};

std::shared_ptr<SimulatedPlatform> make_simulated_platform(sim::PlatformModel model,
                                                           uint64_t seed = 1);

}  // namespace tandem
