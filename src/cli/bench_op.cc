// `tandem bench op --shapes`: the lanes' speed on operator shapes of real networks, beside oneDNN
// and XNNPACK called directly on the same cores.
#include <memory>

#include "cli/bench.h"
#include "cli/conditions.h"
#include "cli/lane_speed_report.h"
#include "cli/lane_speeds.h"
#include "cli/probe.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "support/clock.h"
#include "support/read_file.h"

namespace tandem::cli {
namespace {

StatusOr<std::vector<CountedShape>> read_shapes(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return parse_csv(text, path);
}

}  // namespace

Status bench_op(const BenchOpFlags& flags) {
  const Conditions conditions;
  std::vector<std::pair<std::string, CountedShape>> shapes;
  for (const std::string& file : flags.files) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<CountedShape> found, read_shapes(file));
    for (const CountedShape& shape : found) shapes.emplace_back(file, shape);
  }

  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  constexpr std::chrono::seconds kPatience{60};
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + kPatience));
  std::vector<Site> sites;
  std::vector<int> cores;
  for (size_t i = 0; i < crew->lanes().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(Site site, make_site(*crew, static_cast<int>(i)));
    const std::vector<int>& of_lane = site.lane->info().cores;
    cores.insert(cores.end(), of_lane.begin(), of_lane.end());
    sites.push_back(std::move(site));
  }

  const SpeedOptions options{flags.implementations, flags.samples};
  const Probe before = probe(cores);
  std::vector<SpeedRow> rows;
  {
    Progress progress("timing shapes", static_cast<int>(shapes.size()));
    for (const auto& [file, shape] : shapes) {
      TANDEM_ASSIGN_OR_RETURN(const Graph graph, graph_of(shape.shape));
      const double flops = work_of(graph, 0).flops;
      if (flops >= flags.least_gflop * 1e9) {
        StatusOr<SpeedRow> row = measure_speeds(sites, file, shape, graph, options);
        if (!row.ok()) return row.status().with_context(to_string(shape.shape));
        rows.push_back(*std::move(row));
      }
      progress.step();
    }
  }
  const Probe after = probe(cores);

  if (flags.json) {
    nlohmann::json report = speeds_json(rows, sites);
    report["conditions"] = conditions.to_json(*platform);
    report["probe_before"] = to_json(before);
    report["probe_after"] = to_json(after);
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  print_speeds(rows, sites);
  fmt::print("probe before: {}\nprobe after:  {}\n{}", to_text(before), to_text(after),
             conditions.to_text(*platform));
  return {};
}

}  // namespace tandem::cli
