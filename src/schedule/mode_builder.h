// From a graph, lanes and a cost model to the short list of modes per operator that searches see.
#pragma once

#include <optional>
#include <vector>

#include "schedule/mode_problem.h"
#include "schedule/scheduler.h"

namespace tandem {

// A user's word on where an operator goes.
struct Pin {
  OperatorId op = kNone;
  int lane = 0;
  // How much of the output the lane makes, in (0, 1]; the other lanes make the rest. Rounded to
  // where the operator may be cut.
  double share = 1;
};

struct ModeOptions {
  int max_modes = 12;  // per operator, pins and `partitions` aside
  std::vector<Pin> pins;
  // Schedules whose partitions become modes too, so that searches can start from them.
  std::vector<const Schedule*> partitions;
};

// Operators that are launched, in the graph's order, and what their parts wait for by region rules,
// looking through those that are not launched. Modes of an operator, dominated ones left out:
// - whole, on each lane;
// - over each set of lanes (of two, three or all), cut along each of the best axes where the parts
//   end together; over all lanes also with some work shifted from one to another, for lanes that do
//   not become free together;
// - cut where its producer is cut, in proportion, so that chains of operators stay on their lanes.
// Each part with as many of its lane's threads as are fastest. kInvalidArgument for a pin that the
// operator's partition rule does not allow; problem.cost must be set.
StatusOr<ModeProblem> build_mode_problem(const Problem& problem, const ModeOptions& options = {});

// Every operator has one mode: what the schedule, which passes check_schedule(), makes of it.
StatusOr<ModeProblem> problem_of_schedule(const Problem& problem, const Schedule& schedule);

// The operators of the graph that are launched: what ModeProblem::operators stands for, in order.
std::vector<OperatorId> launched_operators(const Graph& graph);

// As a schedule of the graph that the problem was built from, with waits and predicted times (a
// part's us, waits and copies for others aside).
StatusOr<Schedule> to_schedule(const Graph& graph, const ModeProblem& problem,
                               const ModeSchedule& schedule, std::string strategy);

}  // namespace tandem
