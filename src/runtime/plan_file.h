// Plans: schedules on disk. docs/plans.md has the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/timeline.h"
#include "schedule/schedule.h"

namespace tandem {

// What a plan was made for. A plan is used only where all of it is the same.
struct PlanOrigin {
  std::string model;               // its name, for people; not compared
  std::string model_digest;        // see model_digest()
  std::string platform;            // Platform::fingerprint()
  std::vector<std::string> lanes;  // names, in the platform's order
  std::string costs;               // where predicted times came from; "none": nowhere
  std::string engine;              // version of Tandem

  bool operator==(const PlanOrigin&) const = default;
};

struct Plan {
  PlanOrigin origin;
  Schedule schedule;    // passes check_schedule()
  Timeline prediction;  // no lanes if there is none
};

// Of everything that a schedule depends on: operators by name with their attributes and operands,
// the extents and layouts of all tensors, inputs and outputs. Not of the values of weights.
std::string model_digest(const Graph& graph);

std::string to_json(const Graph& graph, const Plan& plan);

// A plan for that graph and origin. kFailedPrecondition if it was made for something else, saying
// for what; kCorrupt if the text is no plan, naming the part that is amiss; kUnsupported if it has
// another version; kInvalidArgument if its schedule is none for the graph, naming the operator, the
// range or the cycle. `label` names the text in errors.
StatusOr<Plan> plan_from_json(const Graph& graph, const PlanOrigin& origin, std::string_view text,
                              const std::string& label);

Status save_plan(const std::string& path, const Graph& graph, const Plan& plan);
// kNotFound if there is no such file; else as plan_from_json().
StatusOr<Plan> load_plan(const std::string& path, const Graph& graph, const PlanOrigin& origin);

}  // namespace tandem
