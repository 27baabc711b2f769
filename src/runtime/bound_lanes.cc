#include "runtime/bound_lanes.h"

#include "support/clock.h"
#include "support/guarded.h"

namespace tandem {
namespace {

// On the lane's thread. `transfers`: by slice, or none.
Status bind_lane(const Graph& graph, const std::vector<ScheduledSlice>& slices,
                 const std::vector<Transfers::Around>& transfers, const TensorBindings& bindings,
                 Lane& lane, BoundLane* bound) {
  const Clock::time_point begin = Clock::now();
  if (!bound->program) {
    TANDEM_ASSIGN_OR_RETURN(bound->program, lane.load(graph, bindings));
  }
  for (const ScheduledSlice& scheduled : slices) {
    auto task = bound->program->bind(scheduled.slice, scheduled.threads);
    if (!task.ok()) return task.status().with_context(to_string(graph, scheduled.slice));
    Transfers::Around around;
    if (!transfers.empty()) around = transfers[bound->slices.size()];
    bound->slices.push_back(
        {scheduled.slice, scheduled.waits, std::move(task).value(), std::move(around)});
  }
  bound->bind_us = microseconds(Clock::now() - begin);
  return {};
}

std::vector<bool> lanes_with_own_memory(const LaneCrew& crew) {
  std::vector<bool> own_memory;
  for (size_t lane = 0; lane < crew.lanes().size(); ++lane) {
    const QueueLane* queue_lane = crew.queue_lane(static_cast<int>(lane));
    own_memory.push_back(queue_lane && computes_on_own_memory(*queue_lane));
  }
  return own_memory;
}

}  // namespace

StatusOr<std::vector<BoundLane>> bind_lanes(const Graph& graph, const Schedule& schedule,
                                            const TensorBindings& bindings, const LaneCrew& crew,
                                            const BindOptions& options) {
  const Transfers transfers =
      plan_transfers(graph, schedule, lanes_with_own_memory(crew), options.keep_all);
  std::vector<BoundLane> bound(schedule.lanes.size());
  if (!options.programs.empty()) {
    for (size_t lane = 0; lane < bound.size(); ++lane) bound[lane].program = options.programs[lane];
  }
  std::vector<Status> status(bound.size());
  for (size_t l = 0; l < bound.size(); ++l) {
    if (schedule.lanes[l].empty()) continue;
    crew.thread(static_cast<int>(l)).post([&, l] {
      status[l] = guarded([&] {
        return bind_lane(graph, schedule.lanes[l], transfers.lanes[l], bindings, *crew.lanes()[l],
                         &bound[l]);
      });
    });
  }
  for (size_t l = 0; l < bound.size(); ++l) {
    if (!schedule.lanes[l].empty()) crew.thread(static_cast<int>(l)).run([] {});
  }
  for (size_t l = 0; l < bound.size(); ++l) {
    TANDEM_RETURN_IF_ERROR(status[l].with_context("lane " + crew.info(static_cast<int>(l)).name));
  }
  return bound;
}

std::vector<LanePreparation> preparations(const std::vector<BoundLane>& lanes,
                                          const LaneCrew& crew) {
  std::vector<LanePreparation> preparations;
  for (size_t l = 0; l < lanes.size(); ++l) {
    if (lanes[l].slices.empty()) continue;
    const LaneProgram& program = *lanes[l].program;
    const PreparationStats stats = program.preparation();
    LanePreparation& lane = preparations.emplace_back();
    lane.lane = crew.info(static_cast<int>(l)).name;
    lane.compile_ms = stats.compile_us / 1000;
    lane.warm_ms = stats.warm_us / 1000;
    lane.pack_ms = lanes[l].bind_us / 1000 - lane.compile_ms - lane.warm_ms;
    lane.programs_compiled = stats.programs_compiled;
    lane.programs_cached = stats.programs_cached;
    lane.bytes = program.bytes();
  }
  return preparations;
}

}  // namespace tandem
