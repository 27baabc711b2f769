#include "profile/transfer_costs.h"

#include <algorithm>
#include <optional>

#include "lane/sim/world.h"
#include "profile/copy_timing.h"
#include "profile/on_lane.h"
#include "profile/slice_timer.h"

namespace tandem {
namespace {

// Turns of timing one slice: the first warms up.
constexpr int kTurns = 20;

// The operator that is launched and has least to do.
OperatorId smallest_operator(const Graph& graph) {
  const Placement placement = analyse(graph);
  OperatorId smallest = kNone;
  double least = 0;
  for (OperatorId op = 0; op < static_cast<OperatorId>(graph.operators().size()); ++op) {
    if (!placement.launched[op]) continue;
    const Work work = work_of(graph, op);
    const double size = work.flops + work.bytes;
    if (smallest == kNone || size < least) {
      smallest = op;
      least = size;
    }
  }
  return smallest;
}

Status time_enqueueing(const Graph& graph, LaneCrew& crew, int lane, OperatorId op,
                       const TensorBindings& bindings, double* us) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<LaneProgram> program,
                          crew.lanes()[lane]->load(graph, bindings));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, program->bind(Slice{.op = op}, 0));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<SliceTimer> timer, SliceTimer::create(crew, lane));
  for (int turn = 0; turn < kTurns; ++turn) {
    TANDEM_RETURN_IF_ERROR(timer->time({task.get()}).status());
  }
  *us = timer->enqueue_us();
  return {};
}

bool has_own_memory(const LaneCrew& crew, int lane) {
  const QueueLane* queue = crew.queue_lane(lane);
  return queue && computes_on_own_memory(*queue);
}

}  // namespace

Status measure_transfers(const Graph& graph, LaneCrew& crew, const std::string& mechanism,
                         const CalibrationSources& sources, CalibrationData* data) {
  const auto lanes = static_cast<int>(crew.lanes().size());
  for (int lane = 0; lane < lanes; ++lane) {
    const std::string& name = crew.info(lane).name;
    if (!has_own_memory(crew, lane) || data->copies.contains(name)) continue;
    TANDEM_ASSIGN_OR_RETURN(const TensorBindings* bindings, sources.memory());
    TANDEM_RETURN_IF_ERROR(on_lane(crew, lane, "measuring", [&]() -> Status {
      TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<LaneProgram> program,
                              crew.lanes()[lane]->load(graph, *bindings));
      TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<SliceTimer> timer,
                              SliceTimer::create(crew, lane));
      TANDEM_ASSIGN_OR_RETURN(data->copies[name], time_copies(graph, *program, *timer));
      return {};
    }));
  }
  for (int from = 0; from < lanes; ++from) {
    for (int to = 0; to < lanes; ++to) {
      if (from == to) continue;
      const auto [entry, fresh] = data->crossings.try_emplace(
          crossing_key(mechanism, crew.info(from).name, crew.info(to).name), 0);
      if (fresh) {
        TANDEM_ASSIGN_OR_RETURN(entry->second, sources.crossing(from, to));
      }
    }
  }
  return {};
}

Status measure_enqueueing(const Graph& graph, LaneCrew& crew, const CalibrationSources& sources,
                          CalibrationData* data) {
  const OperatorId op = smallest_operator(graph);
  for (int lane = 0; lane < static_cast<int>(crew.lanes().size()); ++lane) {
    const std::string& name = crew.info(lane).name;
    if (op == kNone || !crew.queue_lane(lane) || data->enqueueing.contains(name)) continue;
    TANDEM_ASSIGN_OR_RETURN(const TensorBindings* bindings, sources.memory());
    double us = 0;
    TANDEM_RETURN_IF_ERROR(on_lane(crew, lane, "measuring", [&] {
      return time_enqueueing(graph, crew, lane, op, *bindings, &us);
    }));
    data->enqueueing[name] = us;
  }
  return {};
}

Status measure_starts(const LaneCrew& crew, const CalibrationSources& sources,
                      TransferCosts* costs) {
  if (!sources.start) return {};
  costs->starts.assign(crew.lanes().size(), {});
  for (size_t lane = 0; lane < costs->starts.size(); ++lane) {
    if (!crew.queue_lane(static_cast<int>(lane))) continue;
    TANDEM_ASSIGN_OR_RETURN(costs->starts[lane], sources.start(static_cast<int>(lane)));
  }
  return {};
}

namespace {

// Where a device polls, a crossing from it to a host lane is measured as the interval at which the
// device works off signals (sync_bench.h): what one takes of its queue. A wait for what is done is
// a command as small. Simulated devices signal in no time.
double command_us(const LaneCrew& crew, const std::string& mechanism, int lane,
                  const std::vector<double>& crossings) {
  const bool polls = mechanism == "svm" || mechanism == "pinned";
  if (!polls || !crew.queue_lane(lane) || sim::as_simulated(crew.lanes()[lane])) return 0;
  std::optional<double> least;
  for (size_t to = 0; to < crossings.size(); ++to) {
    if (crew.queue_lane(static_cast<int>(to))) continue;
    least = std::min(least.value_or(crossings[to]), crossings[to]);
  }
  return least.value_or(0);
}

}  // namespace

double copy_us(const CopyTimes& copy, const CopySize& size) {
  return copy.base + copy.per_piece * static_cast<double>(size.pieces) +
         copy.per_byte * static_cast<double>(size.bytes);
}

TransferCosts transfer_costs(const LaneCrew& crew, const std::string& mechanism,
                             const CalibrationData& data) {
  const auto lanes = static_cast<int>(crew.lanes().size());
  TransferCosts costs;
  costs.crossings.assign(lanes, std::vector<double>(lanes, 0));
  costs.enqueueing.assign(lanes, 0);
  costs.commands.assign(lanes, 0);
  costs.copies.assign(lanes, {});
  const auto value_in = [](const auto& map, const std::string& key, auto* value) {
    const auto found = map.find(key);
    if (found != map.end()) *value = found->second;
  };
  for (int lane = 0; lane < lanes; ++lane) {
    const std::string& name = crew.info(lane).name;
    value_in(data.enqueueing, name, &costs.enqueueing[lane]);
    value_in(data.copies, name, &costs.copies[lane]);
    for (int to = 0; to < lanes; ++to) {
      value_in(data.crossings, crossing_key(mechanism, name, crew.info(to).name),
               &costs.crossings[lane][to]);
    }
    costs.commands[lane] = command_us(crew, mechanism, lane, costs.crossings[lane]);
  }
  return costs;
}

}  // namespace tandem
