// A schedule for a graph, by strategy, with what is known of how it came about.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/mode_builder.h"
#include "schedule/mode_scheduler.h"
#include "schedule/scheduler.h"

namespace tandem {

struct PlanOptions {
  std::string strategy = "joint";
  SearchOptions search;
  // Where operators go, whatever the strategy thinks. Not with `cpu` and `gpu`.
  std::vector<Pin> pins;
  bool explain = false;  // fills in PlannedSchedule::choices, which takes longer than some searches
};

// Why an operator went where it went.
struct OperatorChoice {
  OperatorId op = kNone;
  Mode mode;              // the one that was chosen
  double us = 0;          // of its longest part
  bool critical = false;  // what the makespan follows from
  struct Alternative {
    Mode mode;
    double makespan_change_us = 0;  // had it been chosen, and nothing else changed; no contention
  };
  std::vector<Alternative> alternatives;  // best first
};

struct PlannedSchedule {
  Schedule schedule;
  // By the evaluator, with contention as far as the costs know of any. Empty without costs.
  Evaluation evaluation;
  double best_lane_us = 0;  // of single lanes; 0 without costs
  bool fell_back = false;   // a single lane is faster than what the strategy found: it is used
  SearchReport search;      // of `joint`
  std::vector<std::string> stage_names;  // of search.stages: "first operator .. last operator"
  std::vector<OperatorChoice> choices;
};

// Needs costs, but for `cpu` and `gpu`. Never slower, as predicted, than the best single lane,
// unless pins, `cpu` or `gpu` say so. Errors are those of make_scheduler(), of the search, and of
// pins that cannot be met.
StatusOr<PlannedSchedule> plan(const Problem& problem, const PlanOptions& options);

// What the evaluator says of any schedule of the graph that passes check_schedule(). Costs must be
// known.
StatusOr<Evaluation> evaluate_schedule(const Problem& problem, const Schedule& schedule);

// "OPERATOR=LANE" or "OPERATOR=LANE:SHARE", such as "conv1=gpu:0.6".
StatusOr<Pin> parse_pin(const Graph& graph, const std::vector<LaneTraits>& lanes,
                        std::string_view text);

}  // namespace tandem
