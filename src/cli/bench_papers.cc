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

void print_networks(const json& report) {
  fmt::print("\nSIMULATED: networks, speed-ups over the better lane alone\n");
  for (const json& row : report["networks"]) {
    fmt::print("{:16} {:16}", row["platform"].get<std::string>(),
               row["network"].get<std::string>());
    for (const auto& [strategy, result] : row["strategies"].items()) {
      fmt::print("  {} {:.3f}", strategy, result["speed_up"].get<double>());
    }
    fmt::print("\n");
  }
}

}  // namespace

Status bench_papers(const BenchPapersFlags& flags) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<PaperPlatform> platforms,
                          platforms_of(flags.platforms));
  json report = {{"simulated", true}, {"published", published()}};
  LayerStudyOptions layers;
  layers.samples = flags.samples;
  layers.layers = flags.layers;
  layers.seed = flags.seed;
  TANDEM_ASSIGN_OR_RETURN(const json of_layers, study_layers(platforms, layers));
  report.update(of_layers);
  NetworkStudyOptions networks;
  networks.networks = flags.networks;
  networks.platforms = flags.platforms;
  networks.samples = flags.network_samples;
  networks.seed = flags.seed;
  networks.offline_seconds = flags.offline_seconds;
  networks.python = flags.python;
  TANDEM_ASSIGN_OR_RETURN(const json of_networks, study_networks(networks));
  report.update(of_networks);
  if (flags.json) {
    fmt::print("{}\n", report.dump(1));
    return {};
  }
  print_layers(report);
  print_networks(report);
  return {};
}

}  // namespace tandem::cli
