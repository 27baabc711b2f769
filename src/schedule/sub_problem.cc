#include "schedule/sub_problem.h"

#include <fmt/format.h>

namespace tandem {

ModeProblem sub_problem(const ModeProblem& problem, int first, int last) {
  ModeProblem result;
  result.name = fmt::format("{}[{}:{}]", problem.name, first, last);
  result.lanes = problem.lanes;
  result.latency_us = problem.latency_us;
  result.operators.assign(problem.operators.begin() + first, problem.operators.begin() + last);
  for (const ModeEdge& edge : problem.edges) {
    if (edge.from < first || edge.to >= last) continue;
    ModeEdge& added = result.edges.emplace_back(edge);
    added.from -= first;
    added.to -= first;
  }
  return result;
}

}  // namespace tandem
