#include "platform/simulated_platform.h"

#include <fmt/format.h>

namespace tandem {
namespace {

class SimulatedPlatformImpl final : public SimulatedPlatform {
 public:
  SimulatedPlatformImpl(sim::PlatformModel model, uint64_t seed)
      : world_(std::make_shared<sim::World>(std::move(model), seed)) {
    for (int lane = 0; lane < static_cast<int>(world_->model().lanes.size()); ++lane) {
      lanes_.push_back(sim::make_simulated_lane(world_, lane));
    }
    warnings_.push_back(
        fmt::format("SIMULATED: times are those of a model of {}", world_->model().description));
  }

  const std::vector<std::unique_ptr<Lane>>& lanes() const override { return lanes_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string fingerprint() const override {
    std::string text = "simulated " + world_->model().name;
    for (const auto& lane : lanes_) text += "; " + lane->info().fingerprint;
    return text;
  }
  sim::World& world() const override { return *world_; }

 private:
  const std::shared_ptr<sim::World> world_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::shared_ptr<SimulatedPlatform> make_simulated_platform(sim::PlatformModel model,
                                                           uint64_t seed) {
  return std::make_shared<SimulatedPlatformImpl>(std::move(model), seed);
}

}  // namespace tandem
