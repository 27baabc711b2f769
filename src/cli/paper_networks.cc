#include "cli/paper_networks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cli/flags.h"
#include "cli/learned_platform.h"
#include "cli/paper_offline.h"
#include "cli/paper_throttling.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "schedule/plan.h"
#include "schedule/single_lane.h"
#include "simulate/oracle_costs.h"
#include "simulate/simulated_run.h"
#include "simulate/start_time.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using simulate::OracleCosts;

constexpr const char* kStrategies[] = {"intra", "inter", "joint"};

struct Point {
  std::string what;
  double ms = 0;
  double energy_mj = 0;
  double predicted_ms = 0;  // of plans
  double prepare_ms = 0;    // predicting the usual slices
  double search_ms = 0;     // with predicting others that it asks for
};

json to_json(const Point& point) {
  return {{"what", point.what}, {"ms", point.ms}, {"energy_mj", point.energy_mj}};
}

Point run(const Problem& problem, const sim::PlatformModel& model, const Schedule& schedule,
          std::string what) {
  const simulate::SimulatedRun run = simulate::simulate_run(problem, model, schedule, {});
  return {std::move(what), run.timeline.makespan_us / 1000, run.energy_mj, 0, 0};
}

// Each lane alone.
std::vector<Point> lanes_alone(const Problem& problem, const sim::PlatformModel& model) {
  std::vector<Point> points;
  for (int lane = 0; lane < static_cast<int>(problem.lanes.size()); ++lane) {
    points.push_back(run(problem, model, single_lane_schedule(problem, lane),
                         problem.lanes[lane].name + " alone"));
  }
  return points;
}

const Point& fastest(const std::vector<Point>& points) {
  return *std::min_element(points.begin(), points.end(),
                           [](const Point& a, const Point& b) { return a.ms < b.ms; });
}

// Those that no other beats or equals in latency and in energy, fastest first.
json front_of(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::pair(a.ms, a.energy_mj) < std::pair(b.ms, b.energy_mj);
  });
  json front = json::array();
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : points) {
    if (point.energy_mj >= least) continue;
    least = point.energy_mj;
    front.push_back(to_json(point));
  }
  return front;
}

// "cpu.prime=prime:1", "cpu.big=big:3", ..., "gpu=gpu".
std::vector<std::string> lane_for_each_cluster(const sim::PlatformModel& model) {
  std::vector<std::string> lanes;
  for (const sim::Cluster& cluster : model.clusters) {
    lanes.push_back(fmt::format("cpu.{}={}:{}", cluster.name, cluster.name, cluster.cores));
  }
  lanes.emplace_back("gpu=gpu");
  return lanes;
}

// The fastest lane of the platform's CPU lanes, and the GPU.
StatusOr<sim::PlatformModel> with_two_lanes(const std::string& platform) {
  TANDEM_ASSIGN_OR_RETURN(sim::PlatformModel model, load_platform(platform));
  std::erase_if(model.lanes, [&](const sim::LaneSpec& lane) {
    return !lane.cores.empty() && lane.name != model.lanes.front().name;
  });
  return model;
}

// A platform as it is, with a lane for each cluster, and with other numbers of compute units.
struct Variants {
  LearnedPlatform two;
  LearnedPlatform unseen;  // as `two`; has learned from other networks than those that are planned
  LearnedPlatform clusters;
  std::vector<LearnedPlatform> other_gpus;
};

StatusOr<Variants> learn(const std::string& platform, const std::vector<Sample>& samples,
                         const std::vector<Sample>& of_others, uint64_t seed) {
  TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel model, with_two_lanes(platform));
  PlatformFileOptions options;
  options.lanes = lane_for_each_cluster(model);
  TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel all, load_platform(platform, options));
  TANDEM_ASSIGN_OR_RETURN(LearnedPlatform two, LearnedPlatform::create(model, samples, seed));
  TANDEM_ASSIGN_OR_RETURN(LearnedPlatform unseen, LearnedPlatform::create(model, of_others, seed));
  TANDEM_ASSIGN_OR_RETURN(LearnedPlatform clusters, LearnedPlatform::create(all, samples, seed));
  Variants variants{std::move(two), std::move(unseen), std::move(clusters), {}};
  const int units = model.gpu.compute_units;
  for (const int changed : {units / 2, 2 * units}) {
    if (changed == 0) continue;
    sim::PlatformModel other = model;
    other.gpu.compute_units = changed;
    TANDEM_ASSIGN_OR_RETURN(LearnedPlatform learned, LearnedPlatform::create(other, samples, seed));
    variants.other_gpus.push_back(std::move(learned));
  }
  return variants;
}

// One network on one platform: what runs there, and what plans there are for it.
class OnPlatform {
 public:
  // Both must outlive it.
  OnPlatform(const Model& model, const LearnedPlatform& platform)
      : network_(model),
        platform_(platform),
        costs_(model.graph(), platform.model(), simulate::best_mechanism(platform.model())) {}

  const sim::PlatformModel& model() const { return platform_.model(); }
  std::vector<Point> alone() const { return lanes_alone(truth(), model()); }
  // By predictors that nobody has asked before, so that searches pay for their questions.
  StatusOr<Point> plan(const std::string& strategy, const std::string& label) const {
    TANDEM_ASSIGN_OR_RETURN(LearnedPlanner planner, LearnedPlanner::create(network_, platform_));
    TANDEM_ASSIGN_OR_RETURN(const Plan plan, planner.plan(strategy));
    Point point = run(truth(), model(), plan.schedule, label);
    point.predicted_ms = plan.prediction.makespan_us / 1000;
    point.prepare_ms = planner.predict_ms();
    point.search_ms = planner.search_ms();
    return point;
  }
  StatusOr<Point> plan_by_own_costs() const {
    TANDEM_ASSIGN_OR_RETURN(const PlannedSchedule planned, tandem::plan(truth(), {}));
    Point point = run(truth(), model(), planned.schedule, "own costs");
    point.predicted_ms = planned.evaluation.makespan_us / 1000;
    return point;
  }
  // By the simulator's own costs, too.
  StatusOr<json> offline(Referee& referee) const {
    const std::string name = fmt::format("{}@{}", network_.name(), model().name);
    TANDEM_ASSIGN_OR_RETURN(const OfflineResult result, solve_offline(truth(), name, referee));
    json row = to_json(result);
    row["ms"] = run(truth(), model(), result.schedule, "offline").ms;
    return row;
  }

 private:
  Problem truth() const {
    return simulate::problem_of(network_.graph(), platform_.model(), &costs_);
  }

  const Model& network_;
  const LearnedPlatform& platform_;
  const OracleCosts costs_;
};

class NetworkStudy {
 public:
  // `referee` may be null.
  NetworkStudy(const Model& model, std::string network, Referee* referee)
      : model_(model), network_(std::move(network)), referee_(referee) {}

  Status add(const std::string& platform, const Variants& variants, json& report) {
    json row = {{"network", network_}, {"platform", platform}};
    const OnPlatform two(model_, variants.two);
    TANDEM_ASSIGN_OR_RETURN(std::vector<Point> points, strategies(two, row));
    row["rows_learned_from"] = variants.two.rows();
    const OnPlatform unseen(model_, variants.unseen);
    TANDEM_ASSIGN_OR_RETURN(const Point stranger, unseen.plan("joint", "joint"));
    row["unseen"] = {{"ms", stranger.ms},
                     {"predicted_ms", stranger.predicted_ms},
                     {"speed_up", fastest(unseen.alone()).ms / stranger.ms}};
    const Point joint = points.back();
    const std::vector<Point> alone = two.alone();
    report["networks"].push_back(std::move(row));

    TANDEM_RETURN_IF_ERROR(clusters(variants.clusters, fastest(points), points, report));
    report["fronts"].push_back(
        {{"network", network_}, {"platform", platform}, {"front", front_of(points)}});

    add_what_if(two.model(), alone, joint, true, report);
    for (const LearnedPlatform& other : variants.other_gpus) {
      const OnPlatform changed(model_, other);
      TANDEM_ASSIGN_OR_RETURN(const Point best, changed.plan("joint", "joint"));
      add_what_if(changed.model(), changed.alone(), best, false, report);
    }

    TANDEM_ASSIGN_OR_RETURN(const json throttled, study_throttling(model_, variants.two));
    report["throttling"].insert(report["throttling"].end(), throttled.begin(), throttled.end());
    return {};
  }

 private:
  // Joint comes last.
  StatusOr<std::vector<Point>> strategies(const OnPlatform& two, json& row) {
    std::vector<Point> points = two.alone();
    const double alone_ms = fastest(points).ms;
    for (const Point& point : points) row["alone_ms"][point.what] = point.ms;
    row["sync"] = to_string(simulate::best_mechanism(two.model()));
    row["operators"] = model_.graph().operators().size();
    for (const char* strategy : kStrategies) {
      TANDEM_ASSIGN_OR_RETURN(Point point, two.plan(strategy, strategy));
      row["strategies"][strategy] = {{"ms", point.ms},
                                     {"predicted_ms", point.predicted_ms},
                                     {"speed_up", alone_ms / point.ms},
                                     {"energy_mj", point.energy_mj},
                                     {"prepare_ms", point.prepare_ms},
                                     {"search_ms", point.search_ms}};
      points.push_back(std::move(point));
    }
    TANDEM_ASSIGN_OR_RETURN(const Point own, two.plan_by_own_costs());
    row["own_costs"] = {
        {"ms", own.ms}, {"predicted_ms", own.predicted_ms}, {"speed_up", alone_ms / own.ms}};
    if (referee_) {
      TANDEM_ASSIGN_OR_RETURN(json offline, two.offline(*referee_));
      offline["speed_up"] = alone_ms / offline["ms"].get<double>();
      row["offline"] = std::move(offline);
    }
    const simulate::StartTime start = simulate::start_time(model_.graph(), two.model());
    row["start"] = {{"programs", start.programs},
                    {"weights_ms", start.weights_ms},
                    {"cold_ms", start.cold_ms()},
                    {"warm_ms", start.warm_ms()}};
    return points;
  }

  // A lane for each cluster and the GPU. `two`: the best with two lanes. Adds to `points`.
  Status clusters(const LearnedPlatform& platform, Point two, std::vector<Point>& points,
                  json& report) {
    const OnPlatform all(model_, platform);
    for (Point& alone : all.alone()) {
      if (alone.what != "gpu alone") points.push_back(std::move(alone));
    }
    TANDEM_ASSIGN_OR_RETURN(Point joint, all.plan("joint", "joint, all clusters"));
    report["clusters"].push_back({{"network", network_},
                                  {"platform", platform.model().name},
                                  {"lanes", platform.model().lanes.size()},
                                  {"two_lanes", to_json(two)},
                                  {"all", to_json(joint)},
                                  {"search_ms", joint.search_ms},
                                  {"speed_up", two.ms / joint.ms}});
    points.push_back(std::move(joint));
    return {};
  }

  void add_what_if(const sim::PlatformModel& model, const std::vector<Point>& alone,
                   const Point& joint, bool as_it_is, json& report) const {
    report["what_if"].push_back({{"network", network_},
                                 {"platform", model.name},
                                 {"compute_units", model.gpu.compute_units},
                                 {"as_it_is", as_it_is},
                                 {"cpu_ms", alone.front().ms},
                                 {"gpu_ms", alone.back().ms},
                                 {"joint_ms", joint.ms},
                                 {"speed_up", fastest(alone).ms / joint.ms}});
  }

  const Model& model_;
  const std::string network_;
  Referee* const referee_;
};

}  // namespace

StatusOr<json> study_networks(const NetworkStudyOptions& options) {
  json report;
  for (const char* table : {"networks", "clusters", "fronts", "what_if", "throttling"}) {
    report[table] = json::array();
  }
  std::optional<Referee> referee;
  if (options.offline_seconds > 0) {
    StatusOr<Referee> started = Referee::start({options.python, options.offline_seconds, 2});
    if (started.status().code() == StatusCode::kNotFound) {
      return not_found(started.status().message() + "; or leave CP-SAT out with --offline 0");
    }
    TANDEM_RETURN_IF_ERROR(started.status());
    referee.emplace(*std::move(started));
  }
  std::map<std::string, Variants> variants;
  {
    Progress progress("learning platforms", static_cast<int>(options.platforms.size()));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<Sample> samples,
                            samples_of(options.networks, options.samples, options.seed));
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<Sample> of_others,
        samples_of(other_networks(options.networks), options.samples, options.seed));
    for (const std::string& platform : options.platforms) {
      TANDEM_ASSIGN_OR_RETURN(Variants learned, learn(platform, samples, of_others, options.seed));
      variants.emplace(platform, std::move(learned));
      progress.step();
    }
  }
  Progress progress("networks",
                    static_cast<int>(options.networks.size() * options.platforms.size()));
  for (const std::string& network : options.networks) {
    TANDEM_ASSIGN_OR_RETURN(const Model model, LoadFlags().load("zoo:" + network));
    NetworkStudy study(model, network, referee ? &*referee : nullptr);
    for (const std::string& platform : options.platforms) {
      TANDEM_RETURN_IF_ERROR(study.add(platform, variants.at(platform), report));
      progress.step();
    }
  }
  return report;
}

}  // namespace tandem::cli
