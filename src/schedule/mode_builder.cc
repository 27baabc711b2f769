#include "schedule/mode_builder.h"

#include <algorithm>

#include "schedule/edge_builder.h"
#include "schedule/operator_modes.h"
#include "schedule/placement.h"

namespace tandem {
namespace {

void add_lanes(const Problem& problem, ModeProblem* result) {
  const size_t lanes = problem.lanes.size();
  result->latency_us.assign(lanes, std::vector<double>(lanes, 0));
  for (size_t l = 0; l < lanes; ++l) {
    ModeLane lane;
    lane.name = problem.lanes[l].name;
    lane.fed_by = problem.lanes[l].fed_by;
    lane.enqueue_us = problem.cost->enqueue_us(static_cast<int>(l));
    lane.send_us = problem.cost->command_us(static_cast<int>(l));
    lane.receive_us = lane.send_us;
    result->lanes.push_back(lane);
  }
  for (size_t l = 0; l < lanes; ++l) {
    for (size_t to = 0; to < lanes; ++to) {
      if (to == l) continue;
      const double occupied = result->lanes[l].send_us + result->lanes[to].receive_us;
      const double crossing = problem.cost->crossing_us(static_cast<int>(l), static_cast<int>(to));
      result->latency_us[l][to] = std::max(0.0, crossing - occupied);
    }
  }
}

// By operator, the slices that each schedule cuts it into.
using Partitions = std::vector<std::vector<std::pair<int, ScheduledSlice>>>;
Partitions partitions_of(const Graph& graph, const Schedule& schedule) {
  Partitions partitions(graph.operators().size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      partitions[scheduled.slice.op].emplace_back(static_cast<int>(lane), scheduled);
    }
  }
  return partitions;
}

void add_unless_there(Mode mode, std::vector<Mode>* modes) {
  if (std::find(modes->begin(), modes->end(), mode) == modes->end()) {
    modes->push_back(std::move(mode));
  }
}

}  // namespace

std::vector<OperatorId> launched_operators(const Graph& graph) {
  const Placement placement = analyse(graph);
  std::vector<OperatorId> launched;
  for (size_t op = 0; op < placement.launched.size(); ++op) {
    if (placement.launched[op]) launched.push_back(static_cast<OperatorId>(op));
  }
  return launched;
}

namespace {

// `modes_of`: StatusOr<std::vector<Mode>>(OperatorId, const Placement&), called in the graph's
// order.
template <typename ModesOf>
StatusOr<ModeProblem> build(const Problem& problem, const ModesOf& modes_of) {
  if (!problem.cost) return invalid_argument("modes need a cost model");
  if (problem.lanes.empty()) return invalid_argument("there are no lanes");
  const Graph& graph = *problem.graph;
  const Placement placement = analyse(graph);
  const std::vector<OperatorId> launched = launched_operators(graph);
  ModeProblem result;
  result.name = graph.name;
  add_lanes(problem, &result);
  EdgeBuilder edges(problem, placement, launched, &result);
  for (const OperatorId id : launched) {
    ModeOperator& op = result.operators.emplace_back();
    op.name = graph.op(id).name;
    TANDEM_ASSIGN_OR_RETURN(op.modes, modes_of(id, placement));
    edges.add_edges_to(static_cast<int>(result.operators.size()) - 1);
  }
  TANDEM_RETURN_IF_ERROR(result.validate());
  return result;
}

}  // namespace

StatusOr<ModeProblem> build_mode_problem(const Problem& problem, const ModeOptions& options) {
  const Graph& graph = *problem.graph;
  std::vector<Partitions> partitions;
  for (const Schedule* schedule : options.partitions) {
    partitions.push_back(partitions_of(graph, *schedule));
  }
  std::vector<std::vector<Cut>> cuts(graph.operators().size());
  const auto modes_of = [&](OperatorId id,
                            const Placement& placement) -> StatusOr<std::vector<Mode>> {
    OperatorModes search(problem, placement, id);
    const auto pin = std::find_if(options.pins.begin(), options.pins.end(),
                                  [&](const Pin& p) { return p.op == id; });
    if (pin != options.pins.end()) {
      TANDEM_ASSIGN_OR_RETURN(cuts[id], search.pinned(*pin));
    } else {
      std::vector<const std::vector<Cut>*> producers;
      for (const TensorId input : graph.op(id).inputs) {
        const OperatorId producer = graph.tensor(input).producer;
        const bool same_rank = graph.tensor(input).dims.size() == graph.output_of(id).dims.size();
        if (producer != kNone && same_rank) producers.push_back(&cuts[producer]);
      }
      cuts[id] = search.search(producers, options.max_modes);
    }
    std::vector<Mode> modes;
    for (const Cut& cut : cuts[id]) modes.push_back(search.mode_of(cut));
    for (size_t s = 0; s < partitions.size() && pin == options.pins.end(); ++s) {
      if (!partitions[s][id].empty()) add_unless_there(search.mode_of(partitions[s][id]), &modes);
    }
    return modes;
  };
  return build(problem, modes_of);
}

StatusOr<ModeProblem> problem_of_schedule(const Problem& problem, const Schedule& schedule) {
  const Partitions partitions = partitions_of(*problem.graph, schedule);
  const auto modes_of = [&](OperatorId id,
                            const Placement& placement) -> StatusOr<std::vector<Mode>> {
    return std::vector<Mode>{OperatorModes(problem, placement, id).mode_of(partitions[id])};
  };
  return build(problem, modes_of);
}

StatusOr<Schedule> to_schedule(const Graph& graph, const ModeProblem& problem,
                               const ModeSchedule& schedule, std::string strategy) {
  Schedule result;
  result.strategy = std::move(strategy);
  result.lanes.resize(schedule.lanes.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const PartRef& ref : schedule.lanes[lane]) {
      const Part& part = problem.operators[ref.op].modes[schedule.modes[ref.op]].parts[ref.part];
      result.lanes[lane].push_back({part.slice, part.threads, part.us});
    }
  }
  TANDEM_RETURN_IF_ERROR(derive_waits(graph, &result));
  return result;
}

}  // namespace tandem
