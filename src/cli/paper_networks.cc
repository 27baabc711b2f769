#include "cli/paper_networks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cli/flags.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "schedule/plan.h"
#include "schedule/single_lane.h"
#include "simulate/oracle_costs.h"
#include "simulate/simulated_run.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using simulate::OracleCosts;

constexpr const char* kStrategies[] = {"intra", "inter", "joint"};

struct Point {
  std::string what;
  double ms = 0;
  double energy_mj = 0;
  double search_ms = 0;
};

json to_json(const Point& point) {
  return {{"what", point.what}, {"ms", point.ms}, {"energy_mj", point.energy_mj}};
}

Point run(const Problem& problem, const sim::PlatformModel& model, const Schedule& schedule,
          std::string what) {
  const simulate::SimulatedRun run = simulate::simulate_run(problem, model, schedule, {});
  return {std::move(what), run.timeline.makespan_us / 1000, run.energy_mj, 0};
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

StatusOr<Point> run_strategy(const Problem& problem, const sim::PlatformModel& model,
                             const std::string& strategy, const std::string& label) {
  PlanOptions options;
  options.strategy = strategy;
  const Stopwatch stopwatch;
  TANDEM_ASSIGN_OR_RETURN(const PlannedSchedule planned, plan(problem, options));
  const double search_ms = stopwatch.milliseconds();
  Point point = run(problem, model, planned.schedule, label);
  point.search_ms = search_ms;
  return point;
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
  PlatformFileOptions options;
  TANDEM_ASSIGN_OR_RETURN(sim::PlatformModel model, load_platform(platform, options));
  std::erase_if(model.lanes, [&](const sim::LaneSpec& lane) {
    return !lane.cores.empty() && lane.name != model.lanes.front().name;
  });
  return model;
}

class NetworkStudy {
 public:
  NetworkStudy(const Graph& graph, std::string network)
      : graph_(graph), network_(std::move(network)) {}

  Status add(const std::string& platform, json& report) {
    TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel two, with_two_lanes(platform));
    PlatformFileOptions options;
    options.lanes = lane_for_each_cluster(two);
    TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel all, load_platform(platform, options));
    json row = {{"network", network_}, {"platform", platform}};

    TANDEM_ASSIGN_OR_RETURN(std::vector<Point> points, strategies(two, row));
    report["networks"].push_back(row);

    TANDEM_RETURN_IF_ERROR(clusters(all, fastest(points), points, report));
    report["fronts"].push_back(
        {{"network", network_}, {"platform", platform}, {"front", front_of(points)}});
    return what_if(platform, report);
  }

 private:
  StatusOr<std::vector<Point>> strategies(const sim::PlatformModel& model, json& row) {
    const OracleCosts costs(graph_, model, simulate::best_mechanism(model));
    const Problem problem = simulate::problem_of(graph_, model, &costs);
    std::vector<Point> points = lanes_alone(problem, model);
    const double alone_ms = fastest(points).ms;
    for (const Point& point : points) row["alone_ms"][point.what] = point.ms;
    row["sync"] = to_string(simulate::best_mechanism(model));
    row["operators"] = graph_.operators().size();
    for (const char* strategy : kStrategies) {
      TANDEM_ASSIGN_OR_RETURN(Point point, run_strategy(problem, model, strategy, strategy));
      row["strategies"][strategy] = {{"ms", point.ms},
                                     {"speed_up", alone_ms / point.ms},
                                     {"energy_mj", point.energy_mj},
                                     {"search_ms", point.search_ms}};
      points.push_back(std::move(point));
    }
    return points;
  }

  // A lane for each cluster and the GPU. `two`: the best with two lanes. Adds to `points`.
  Status clusters(const sim::PlatformModel& model, const Point& two, std::vector<Point>& points,
                  json& report) {
    const OracleCosts costs(graph_, model, simulate::best_mechanism(model));
    const Problem problem = simulate::problem_of(graph_, model, &costs);
    const Point best_two = two;
    for (Point& alone : lanes_alone(problem, model)) {
      if (alone.what != "gpu alone") points.push_back(std::move(alone));
    }
    TANDEM_ASSIGN_OR_RETURN(Point joint,
                            run_strategy(problem, model, "joint", "joint, all clusters"));
    report["clusters"].push_back({{"network", network_},
                                  {"platform", model.name},
                                  {"lanes", model.lanes.size()},
                                  {"two_lanes", to_json(best_two)},
                                  {"all", to_json(joint)},
                                  {"search_ms", joint.search_ms},
                                  {"speed_up", best_two.ms / joint.ms}});
    points.push_back(std::move(joint));
    return {};
  }

  // The GPU with half and with twice its compute units.
  Status what_if(const std::string& platform, json& report) {
    TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel as_is, with_two_lanes(platform));
    const int units = as_is.gpu.compute_units;
    for (const int changed : {units / 2, units, 2 * units}) {
      if (changed == 0) continue;
      sim::PlatformModel model = as_is;
      model.gpu.compute_units = changed;
      const OracleCosts costs(graph_, model, simulate::best_mechanism(model));
      const Problem problem = simulate::problem_of(graph_, model, &costs);
      const std::vector<Point> alone = lanes_alone(problem, model);
      TANDEM_ASSIGN_OR_RETURN(const Point joint, run_strategy(problem, model, "joint", "joint"));
      report["what_if"].push_back({{"network", network_},
                                   {"platform", platform},
                                   {"compute_units", changed},
                                   {"as_it_is", changed == units},
                                   {"cpu_ms", alone.front().ms},
                                   {"gpu_ms", alone.back().ms},
                                   {"joint_ms", joint.ms},
                                   {"speed_up", fastest(alone).ms / joint.ms}});
    }
    return {};
  }

  const Graph& graph_;
  const std::string network_;
};

}  // namespace

StatusOr<json> study_networks(const NetworkStudyOptions& options) {
  json report = {{"networks", json::array()},
                 {"clusters", json::array()},
                 {"fronts", json::array()},
                 {"what_if", json::array()}};
  Progress progress("networks",
                    static_cast<int>(options.networks.size() * options.platforms.size()));
  for (const std::string& network : options.networks) {
    TANDEM_ASSIGN_OR_RETURN(const Model model, LoadFlags().load("zoo:" + network));
    NetworkStudy study(model.graph(), network);
    for (const std::string& platform : options.platforms) {
      TANDEM_RETURN_IF_ERROR(study.add(platform, report));
      progress.step();
    }
  }
  return report;
}

}  // namespace tandem::cli
