#include "schedule/single_lane.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/placement.h"

namespace tandem {

Schedule single_lane_schedule(const Problem& problem, int lane) {
  Schedule schedule;
  schedule.strategy = problem.lanes[lane].name;
  schedule.lanes.resize(problem.lanes.size());
  const Placement placement = analyse(*problem.graph);
  for (size_t op = 0; op < placement.launched.size(); ++op) {
    if (!placement.launched[op]) continue;
    ScheduledSlice scheduled;
    scheduled.slice.op = static_cast<OperatorId>(op);
    if (problem.cost) scheduled.predicted_us = problem.cost->slice_us(lane, scheduled.slice);
    schedule.lanes[lane].push_back(std::move(scheduled));
  }
  return schedule;
}

double single_lane_us(const Problem& problem, int lane) {
  const Schedule schedule = single_lane_schedule(problem, lane);
  double total = 0;
  for (const ScheduledSlice& scheduled : schedule.lanes[lane]) total += scheduled.predicted_us;
  if (problem.lanes[lane].own_memory) {
    const Graph& graph = *problem.graph;
    for (const TensorId input : graph.inputs()) {
      const TensorRegion all{input, whole_region(graph.tensor(input).dims)};
      total += problem.cost->copy_us(lane, copy_size(graph, all));
    }
  }
  return total;
}

StatusOr<Schedule> SingleLaneScheduler::schedule(const Problem& problem) const {
  const auto lane = std::find_if(problem.lanes.begin(), problem.lanes.end(),
                                 [&](const auto& l) { return l.asynchronous == asynchronous_; });
  if (lane == problem.lanes.end()) {
    std::vector<std::string> names;
    for (const LaneTraits& l : problem.lanes) names.push_back(l.name);
    return failed_precondition(fmt::format(
        "strategy '{}' needs a {} lane, and this platform has none (its lanes: {}); see `tandem "
        "devices`",
        asynchronous_ ? "gpu" : "cpu", asynchronous_ ? "GPU" : "CPU", fmt::join(names, ", ")));
  }
  Schedule schedule = single_lane_schedule(problem, static_cast<int>(lane - problem.lanes.begin()));
  schedule.strategy = asynchronous_ ? "gpu" : "cpu";
  return schedule;
}

}  // namespace tandem
