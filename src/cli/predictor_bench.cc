#include "cli/predictor_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/conditions.h"
#include "fmt/format.h"
#include "platform/engine.h"
#include "profile/lone_operator.h"
#include "profile/predicted_costs.h"
#include "support/statistics.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr int kTurns = 9;

struct TableTimes {
  std::string network;
  int operators = 0;
  size_t asked = 0;        // lanes x slices
  size_t distinct = 0;     // of them, that lanes and predictors are asked about
  Summary create_ms = {};  // reading predictors for the graph
  Summary table_ms = {};   // filling the table
};

// "a+b": the operators of all of these networks in one graph, each by itself with what writes its
// inputs.
StatusOr<Graph> load_networks(const std::string& names) {
  Graph graph;
  ConstantPool constants(false);
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, '+');) {
    TANDEM_ASSIGN_OR_RETURN(const Model model, Model::load("zoo:" + name));
    if (name == names) return model.graph();
    const Placement placement = analyse(model.graph());
    for (size_t op = 0; op < model.graph().operators().size(); ++op) {
      if (!placement.launched[op]) continue;
      const auto id = static_cast<OperatorId>(op);
      TANDEM_RETURN_IF_ERROR(
          add_to(graph, lone_operator(model.graph(), id), fmt::format("{}.{}", name, op), constants)
              .status()
              .with_context(model.graph().op(id).name));
    }
  }
  return graph;
}

StatusOr<TableTimes> time_table(const std::string& network, const Platform& platform,
                                const predict::PredictorFile& file) {
  TANDEM_ASSIGN_OR_RETURN(const Graph graph, load_networks(network));
  TableTimes times{.network = network};
  const Placement placement = analyse(graph);
  times.operators =
      static_cast<int>(std::count(placement.launched.begin(), placement.launched.end(), true));
  std::vector<Lane*> lanes;
  for (const auto& lane : platform.lanes()) lanes.push_back(lane.get());
  const std::vector<LaneSlice> slices = usual_slices(graph, static_cast<int>(lanes.size()));
  times.asked = slices.size();
  std::vector<double> create_ms;
  std::vector<double> table_ms;
  for (int turn = 0; turn < kTurns; ++turn) {
    const Stopwatch create;
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<PredictedCosts> costs,
                            PredictedCosts::create(graph, lanes, file, TransferCosts()));
    create_ms.push_back(create.milliseconds());
    const Stopwatch table;
    TANDEM_RETURN_IF_ERROR(costs->prepare(slices));
    table_ms.push_back(table.milliseconds());
    times.distinct = costs->answered();
  }
  times.create_ms = summarize(create_ms);
  times.table_ms = summarize(table_ms);
  return times;
}

json to_json(const TableTimes& times) {
  return {{"network", times.network},
          {"operators", times.operators},
          {"asked", times.asked},
          {"distinct", times.distinct},
          {"read_ms", times.create_ms.median},
          {"table_ms", times.table_ms.median},
          {"table_spread", times.table_ms.spread}};
}

}  // namespace

Status bench_cost_table(const TrainLanesFlags& flags) {
  const Conditions conditions;
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  const std::string path = flags.output.empty()
                               ? predict::find_default_predictors(platform->fingerprint())
                               : flags.output;
  TANDEM_ASSIGN_OR_RETURN(
      const predict::PredictorFile file,
      predict::PredictorFile::load(path, {platform->fingerprint(), engine_fingerprint()},
                                   flags.allow_other));
  json document = {{"tables", json::array()}};
  if (!flags.json) {
    fmt::print("{:22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}\n", "network", "operators", "asked",
               "distinct", "read ms", "table ms", "spread");
  }
  for (const std::string& network : flags.bench_table) {
    TANDEM_ASSIGN_OR_RETURN(const TableTimes times, time_table(network, *platform, file));
    document["tables"].push_back(to_json(times));
    if (flags.json) continue;
    fmt::print("{:22} {:>9} {:>9} {:>9} {:>9.1f} {:>9.1f} {:>7.1f}%\n", times.network,
               times.operators, times.asked, times.distinct, times.create_ms.median,
               times.table_ms.median, 100 * times.table_ms.spread);
  }
  if (flags.json) {
    document["conditions"] = conditions.to_json(*platform);
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("{}", conditions.to_text(*platform));
  }
  return {};
}

}  // namespace tandem::cli
