// A simulated platform whose predictors have learned from its lanes' clocks, as after
// `tandem profile` and `tandem train`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/temporary_folder.h"
#include "platform/simulated_platform.h"
#include "profile/sampler.h"
#include "runtime/planner.h"
#include "tandem/session.h"

namespace tandem::cli {

// Samples around the operators of these networks of the zoo (docs/profiling.md): the first `count`.
StatusOr<std::vector<Sample>> samples_of(const std::vector<std::string>& networks, int count,
                                         uint64_t seed);
// The zoo's networks but for these and those for tests.
std::vector<std::string> other_networks(const std::vector<std::string>& networks);

class LearnedPlatform {
 public:
  // Measures the samples and trains; always the same for the same arguments.
  static StatusOr<LearnedPlatform> create(sim::PlatformModel model,
                                          const std::vector<Sample>& samples, uint64_t seed);

  const sim::PlatformModel& model() const { return model_; }
  // Measurements that were learned from.
  size_t rows() const { return rows_; }

  // A new one each time, all of them alike.
  std::shared_ptr<SimulatedPlatform> lanes() const {
    return make_simulated_platform(model_, seed_);
  }
  // Costs are what the predictors say.
  SessionOptions session_options() const;

 private:
  LearnedPlatform(sim::PlatformModel model, uint64_t seed, TemporaryFolder folder)
      : model_(std::move(model)), seed_(seed), folder_(std::move(folder)) {}
  std::string predictors() const { return folder_.path() + "/predictors.json"; }
  Status learn(const std::vector<Sample>& samples);

  sim::PlatformModel model_;
  uint64_t seed_ = 1;
  TemporaryFolder folder_;
  size_t rows_ = 0;
};

// Plans for one network on such a platform. Network and platform must outlive it.
class LearnedPlanner {
 public:
  static StatusOr<LearnedPlanner> create(const Model& model, const LearnedPlatform& platform);

  StatusOr<Plan> plan(const std::string& strategy) { return planner_->plan(strategy); }
  // Milliseconds of all searches so far, and of asking the predictors.
  double search_ms() const { return planner_->schedule_ms(); }
  double predict_ms() const { return planner_->calibrate_ms(); }

 private:
  LearnedPlanner(LaneCrew::Lease lease, std::unique_ptr<Planner> planner)
      : lease_(std::move(lease)), planner_(std::move(planner)) {}

  LaneCrew::Lease lease_;
  std::unique_ptr<Planner> planner_;
};

}  // namespace tandem::cli
