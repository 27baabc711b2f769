#include "cli/learned_platform.h"

#include <algorithm>
#include <utility>

#include "platform/engine.h"
#include "profile/profiler.h"
#include "profile/training.h"
#include "tandem/model.h"
#include "zoo/zoo.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

StatusOr<std::vector<Sample>> samples_of(const std::vector<std::string>& networks, int count,
                                         uint64_t seed) {
  Sampler sampler({.seed = seed, .families = {}});
  for (const std::string& network : networks) {
    TANDEM_ASSIGN_OR_RETURN(const Model model, Model::load("zoo:" + network));
    sampler.add_network(network, model.graph());
  }
  std::vector<Sample> samples = sampler.samples();
  if (static_cast<size_t>(count) < samples.size()) samples.resize(count);
  return samples;
}

std::vector<std::string> other_networks(const std::vector<std::string>& networks) {
  std::vector<std::string> others;
  for (const zoo::Entry& entry : zoo::list()) {
    const bool listed = std::find(networks.begin(), networks.end(), entry.name) != networks.end();
    if (!listed && !entry.name.starts_with("tiny_")) others.push_back(entry.name);
  }
  return others;
}

StatusOr<LearnedPlatform> LearnedPlatform::create(sim::PlatformModel model,
                                                  const std::vector<Sample>& samples,
                                                  uint64_t seed) {
  TANDEM_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
  LearnedPlatform platform(std::move(model), seed, std::move(folder));
  TANDEM_RETURN_IF_ERROR(platform.learn(samples));
  return platform;
}

Status LearnedPlatform::learn(const std::vector<Sample>& samples) {
  const std::shared_ptr<Platform> platform = lanes();
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  const StoreIdentity identity{platform->fingerprint(), engine_fingerprint(),
                               lane_facts_json(*crew, Topology{})};
  TANDEM_ASSIGN_OR_RETURN(
      MeasurementStore store,
      MeasurementStore::open(folder_.path() + "/measurements.sqlite", identity));
  {
    TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                            LaneCrew::acquire(crew, Clock::now() + kPatience));
    ProfilerOptions options;
    options.seed = seed_;
    TANDEM_RETURN_IF_ERROR(profile(samples, *crew, Topology{}, store, options).status());
  }
  TANDEM_ASSIGN_OR_RETURN(const TrainingData data, read_training_data(store));
  rows_ = data.samples.size();
  TANDEM_ASSIGN_OR_RETURN(
      const predict::PredictorFile file,
      train_predictors(data, predict::shape_groups(data.samples), std::vector<bool>(rows_, true),
                       predict::BoostingOptions{}, [] {}));
  return file.save(predictors());
}

SessionOptions LearnedPlatform::session_options() const {
  SessionOptions options;
  options.costs = CostSource::kPredicted;
  options.predictors = predictors();
  options.calibration_dir = "none";
  return options;
}

StatusOr<LearnedPlanner> LearnedPlanner::create(const Model& model,
                                                const LearnedPlatform& platform) {
  const std::shared_ptr<Platform> lanes = platform.lanes();
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(lanes));
  TANDEM_ASSIGN_OR_RETURN(LaneCrew::Lease lease, LaneCrew::acquire(crew, Clock::now() + kPatience));
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<Planner> planner,
      Planner::create(model.shared_graph(), lanes, crew, platform.session_options()));
  TANDEM_RETURN_IF_ERROR(planner->prepare_costs());
  return LearnedPlanner(std::move(lease), std::move(planner));
}

}  // namespace tandem::cli
