#include "cli/network_problems.h"

#include <cmath>
#include <set>

#include "cli/random_network.h"
#include "fmt/format.h"
#include "platform/platform_file.h"
#include "schedule/local_search.h"
#include "schedule/mode_builder.h"
#include "schedule/sub_problem.h"
#include "simulate/oracle_costs.h"
#include "support/random_numbers.h"
#include "zoo/zoo.h"

namespace tandem::cli {
namespace {

// With 2, 3 and 4 lanes; with fine-grained shared memory and with copies.
constexpr const char* kPlatforms[] = {"intel_n5105",  "pixel4", "galaxy_s10",
                                      "intel_uhd620", "rk3588", "oneplus11"};

// Of topologies. Problems have some more: concatenations that cannot be made in place.
constexpr int kFewestOperators = 5;
constexpr int kMostOperators = 48;

StatusOr<ModeProblem> problem_on(const Graph& graph, const std::string& platform, int max_modes) {
  TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel model, load_platform(platform));
  const simulate::OracleCosts costs(graph, model, simulate::best_mechanism(model));
  ModeOptions options;
  options.max_modes = max_modes;
  TANDEM_ASSIGN_OR_RETURN(ModeProblem problem,
                          build_mode_problem(simulate::problem_of(graph, model, &costs), options));
  problem.name = fmt::format("{}@{}", graph.name, platform);
  remove_contention(&problem);
  return problem;
}

// What a problem is but for names.
std::string anonymous(ModeProblem problem) {
  problem.name.clear();
  for (ModeOperator& op : problem.operators) {
    op.name.clear();
    for (Mode& mode : op.modes) {
      for (Part& part : mode.parts) part.slice.op = 0;
    }
  }
  return to_json(problem);
}

}  // namespace

StatusOr<std::vector<BenchProblem>> random_network_problems(int count, uint64_t seed) {
  std::vector<BenchProblem> problems;
  RandomNumbers random(seed);
  for (int i = 0; i < count; ++i) {
    const GraphFamily family = graph_families()[i % graph_families().size()];
    const auto operators =
        static_cast<int>(std::lround(random.ratio(kFewestOperators, kMostOperators)));
    TANDEM_ASSIGN_OR_RETURN(
        const Model model,
        random_network(family, operators, seed * 10'000 + static_cast<uint64_t>(i)));
    const auto max_modes = static_cast<int>(random.integer(4, 12));
    TANDEM_ASSIGN_OR_RETURN(
        ModeProblem problem,
        problem_on(model.graph(), kPlatforms[i % std::size(kPlatforms)], max_modes));
    problems.push_back({"network", std::move(problem)});
  }
  return problems;
}

StatusOr<std::vector<BenchProblem>> zoo_stage_problems() {
  std::vector<BenchProblem> problems;
  std::set<std::string> known;
  size_t next_platform = 0;
  for (const zoo::Entry& entry : zoo::list()) {
    if (entry.name.starts_with("tiny_")) continue;
    TANDEM_ASSIGN_OR_RETURN(const Model model, Model::load("zoo:" + entry.name));
    TANDEM_ASSIGN_OR_RETURN(
        const ModeProblem whole,
        problem_on(model.graph(), kPlatforms[next_platform++ % std::size(kPlatforms)],
                   ModeOptions{}.max_modes));
    const ModeTables tables(whole);
    for (const Window& window : stages_of(tables)) {
      ModeProblem stage = sub_problem(whole, window.first, window.last);
      if (known.insert(anonymous(stage)).second) problems.push_back({"stage", std::move(stage)});
    }
  }
  return problems;
}

}  // namespace tandem::cli
