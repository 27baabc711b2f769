// `tandem bench papers`: tables like those of two papers on co-execution, on simulated phones.
#include <algorithm>
#include <map>

#include "cli/bench.h"
#include "cli/paper_layers.h"
#include "cli/paper_networks.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "platform/platform_file.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// On which cores one, two and three threads run.
const std::map<std::string, std::string>& papers_cores() {
  static const std::map<std::string, std::string> cores = {{"pixel4", "prime:1+big:2"},
                                                           {"pixel5", "prime:1+big:1+little:1"},
                                                           {"moto_edge_2022", "big:2+little:1"},
                                                           {"oneplus11", "prime:1+big:2"}};
  return cores;
}

// Speed-ups over the GPU alone that arXiv 2510.21081 reports of its best layers on a Pixel 5. Of
// arXiv 2609.14213, no figures are at hand.
json published() {
  return {{"source", "arXiv 2510.21081, abstract"},
          {"platform", "pixel5"},
          {"linear", {{"predicted", 1.89}, {"exhaustive", 2.01}}},
          {"conv", {{"predicted", 1.75}, {"exhaustive", 1.87}}}};
}

StatusOr<std::vector<PaperPlatform>> platforms_of(const std::vector<std::string>& names) {
  std::vector<PaperPlatform> platforms;
  for (const std::string& name : names) {
    const auto found = papers_cores().find(name);
    if (found == papers_cores().end()) {
      std::vector<std::string> known;
      for (const auto& [platform, cores] : papers_cores()) known.push_back(platform);
      return not_found(fmt::format("the papers have no platform {}: they have {}", name,
                                   fmt::join(known, ", ")));
    }
    PlatformFileOptions options;
    options.lanes = {"cpu=" + found->second, "gpu=gpu"};
    TANDEM_ASSIGN_OR_RETURN(sim::PlatformModel model, load_platform(name, options));
    platforms.push_back({std::move(model), found->second});
  }
  return platforms;
}

void print_layers(const json& report) {
  fmt::print(
      "SIMULATED: speed-ups of single layers over the better lane alone, mean (best)\n"
      "platform         threads  layers   bound        exhaustive   predicted    no kernels   "
      "events\n");
  for (const json& row : report["layers"]) {
    const auto cell = [](const json& value) {
      return fmt::format("{:.2f} ({:.2f})", value["mean"].get<double>(),
                         value["best"].get<double>());
    };
    const json& best = row["speed_up"]["best"];
    const json& event = row["speed_up"]["event"];
    fmt::print("{:16} {:>7}  {:7}  {}  {}  {}  {}  {}\n", row["platform"].get<std::string>(),
               row["threads"].get<int>(), row["family"].get<std::string>(), cell(row["bound"]),
               cell(best["exhaustive"]["over_better_lane"]),
               cell(best["predicted"]["over_better_lane"]),
               cell(best["predicted_without_kernels"]["over_better_lane"]),
               cell(event["exhaustive"]["over_better_lane"]));
  }
}

double number(const json& row, const char* key) { return row[key].get<double>(); }
std::string place(const json& row) {
  return fmt::format("{:16} {:16}", row["platform"].get<std::string>(),
                     row["network"].get<std::string>());
}

void print_networks(const json& report) {
  fmt::print(
      "\nSIMULATED: networks planned by predictors, speed-ups over the better lane alone; own: "
      "joint "
      "by the simulator's own times, as offline\n");
  for (const json& row : report["networks"]) {
    fmt::print("{}", place(row));
    for (const auto& [strategy, result] : row["strategies"].items()) {
      fmt::print("  {} {:.3f}", strategy, number(result, "speed_up"));
    }
    if (row.contains("offline")) {
      const json& offline = row["offline"];
      fmt::print(
          "  offline {:.3f} ({})", number(offline, "speed_up"),
          offline["proven"].get<bool>()
              ? "optimal"
              : fmt::format("at most {:.1f}% above the optimum",
                            100 * (number(offline, "best_us") / number(offline, "bound_us") - 1)));
    }
    const json& joint = row["strategies"]["joint"];
    fmt::print(
        "  own {:.3f}; joint predicted {:.2f} ms, ran {:.2f} ms; search {:.0f} ms of a start of "
        "{:.0f} ms\n",
        number(row["own_costs"], "speed_up"), number(joint, "predicted_ms"), number(joint, "ms"),
        number(joint, "search_ms"), number(row["start"], "warm_ms"));
  }
}

void print_beyond(const json& report) {
  fmt::print("\nSIMULATED: a lane for each cluster and the GPU, beside the best with two lanes\n");
  for (const json& row : report["clusters"]) {
    fmt::print("{}  {} lanes: {:.2f} ms, {:.0f} mJ; two: {:.2f} ms, {:.0f} mJ\n", place(row),
               row["lanes"].get<int>(), number(row["all"], "ms"), number(row["all"], "energy_mj"),
               number(row["two_lanes"], "ms"), number(row["two_lanes"], "energy_mj"));
  }
  fmt::print("\nSIMULATED: schedules that no other beats in both latency and energy\n");
  for (const json& row : report["fronts"]) {
    std::vector<std::string> points;
    for (const json& point : row["front"]) {
      points.push_back(fmt::format("{} {:.2f} ms, {:.0f} mJ", point["what"].get<std::string>(),
                                   number(point, "ms"), number(point, "energy_mj")));
    }
    fmt::print("{}  {}\n", place(row), fmt::join(points, "; "));
  }
  fmt::print("\nSIMULATED: clocks that fall to half in mid-run: before, after, with --adapt\n");
  for (const json& row : report["throttling"]) {
    fmt::print("{}  {}: {:.2f}, {:.2f}, {:.2f} ms\n", place(row),
               row["throttled"].get<std::string>(), number(row, "before_ms"),
               number(row, "throttled_ms"), number(row, "adapted_ms"));
  }
  fmt::print("\nSIMULATED: other numbers of compute units, joint over the better lane alone\n");
  for (const json& row : report["what_if"]) {
    fmt::print("{}  {:>2}{}: {:.2f} ms, {:.3f}\n", place(row), row["compute_units"].get<int>(),
               row["as_it_is"].get<bool>() ? " (as it is)" : "", number(row, "joint_ms"),
               number(row, "speed_up"));
  }
}

}  // namespace

Status bench_papers(const BenchPapersFlags& flags) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<PaperPlatform> platforms,
                          platforms_of(flags.platforms));
  json report = {{"simulated", true}, {"published", published()}};
  // First, since it tells at once if something that it needs is not there.
  NetworkStudyOptions networks;
  networks.networks = flags.networks;
  networks.platforms = flags.platforms;
  networks.samples = flags.network_samples;
  networks.seed = flags.seed;
  networks.offline_seconds = flags.offline_seconds;
  networks.python = flags.python;
  TANDEM_ASSIGN_OR_RETURN(const json of_networks, study_networks(networks));
  report.update(of_networks);
  LayerStudyOptions layers;
  layers.samples = flags.samples;
  layers.layers = flags.layers;
  layers.seed = flags.seed;
  TANDEM_ASSIGN_OR_RETURN(const json of_layers, study_layers(platforms, layers));
  report.update(of_layers);
  if (flags.json) {
    fmt::print("{}\n", report.dump(1));
    return {};
  }
  print_layers(report);
  print_networks(report);
  print_beyond(report);
  return {};
}

}  // namespace tandem::cli
