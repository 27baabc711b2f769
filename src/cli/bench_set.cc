// `tandem bench op --set`: what dividing single operators over lanes brings.
#include "cli/bench.h"
#include "cli/conditions.h"
#include "cli/interrupt.h"
#include "cli/operator_splits.h"
#include "cli/progress.h"
#include "cli/shape_sets.h"
#include "cli/split_report.h"
#include "fmt/format.h"

namespace tandem::cli {
namespace {

constexpr std::string_view kPrefix = "set_";
constexpr std::string_view kSuffix = ".csv";

StatusOr<std::vector<CountedShape>> shapes_for(const BenchSetFlags& flags) {
  const std::string file = fmt::format("{}{}{}", kPrefix, flags.set, kSuffix);
  const auto found = shape_sets().find(file);
  if (found == shape_sets().end()) return not_found("there is no set of operators " + flags.set);
  TANDEM_ASSIGN_OR_RETURN(std::vector<CountedShape> shapes,
                          parse_csv(std::string(found->second), file));
  std::erase_if(shapes, [&](const CountedShape& shape) {
    const std::string name = shape.network + " " + to_string(shape.shape);
    return name.find(flags.filter) == std::string::npos;
  });
  if (shapes.empty()) {
    return not_found(fmt::format("no operator of the set {} has '{}' in its name; see {}",
                                 flags.set, flags.filter, "bench/shapes/" + file));
  }
  return shapes;
}

}  // namespace

std::vector<std::string> set_names() {
  std::vector<std::string> names;
  for (const auto& [file, text] : shape_sets()) {
    names.push_back(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
  }
  return names;
}

Status bench_set(const BenchSetFlags& flags) {
  const Conditions conditions;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<CountedShape> shapes, shapes_for(flags));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  SplitBenchOptions options;
  options.mechanisms = flags.sync;
  options.session.calibration_dir = flags.platform.calibration_dir();
  flags.costs.apply_to(&options.session);
  options.samples = flags.samples;
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<SplitBench> bench,
                          SplitBench::create(platform, options));
  const Probe before = probe(bench->cores());
  std::vector<OperatorSplits> operators;
  {
    const InterruptWatch interrupt;
    Progress progress("dividing operators", static_cast<int>(shapes.size()));
    for (const CountedShape& shape : shapes) {
      if (InterruptWatch::seen()) break;
      StatusOr<OperatorSplits> measured = bench->measure(shape);
      if (!measured.ok()) return measured.status().with_context(to_string(shape.shape));
      operators.push_back(*std::move(measured));
      progress.step();
    }
  }
  if (operators.empty()) return cancelled("interrupted before the first operator was measured");
  const Probe after = probe(bench->cores());
  if (flags.json) {
    nlohmann::json report = set_json(flags.set, operators, bench->crew());
    report["complete"] = operators.size() == shapes.size();
    report["probe_before"] = to_json(before);
    report["probe_after"] = to_json(after);
    report["conditions"] = conditions.to_json(*platform);
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  fmt::print("{}probe before: {}\nprobe after:  {}\n{}",
             set_text(flags.set, operators, bench->crew()), to_text(before), to_text(after),
             conditions.to_text(*platform));
  if (operators.size() < shapes.size()) {
    fmt::print("interrupted: {} of {} operators\n", operators.size(), shapes.size());
  }
  return {};
}

}  // namespace tandem::cli
