// Improving a solution of a mode problem by local changes.
#pragma once

#include "schedule/mode_scheduler.h"
#include "schedule/order_evaluator.h"
#include "support/stopwatch.h"

namespace tandem {

// What a search may still use, and what it has used.
struct SearchBudget {
  int64_t evaluations = 0;  // left
  double budget_ms = 0;     // 0: no limit
  Stopwatch stopwatch;
  int64_t tried = 0;
  int64_t kept = 0;

  bool is_used_up() const {
    return evaluations <= 0 || (budget_ms > 0 && stopwatch.milliseconds() >= budget_ms);
  }
};

// A range of the order that is searched by itself.
struct Window {
  int first = 0;
  int last = 0;  // one past

  int size() const { return last - first; }
};

// Where every operator before comes before every operator after in the graph too: at articulation
// points and, where several operators' results meet (a concat that is made in place), at what is as
// good. Such stages are the same places of every topological order. Tiny ones are joined with the
// next, and huge ones are cut into windows that overlap.
std::vector<Window> stages_of(const ModeTables& tables);

// Improves the evaluator's current solution as long as that goes: operators on the critical path
// that lie in the window, those first that take longest; for each its other modes and places, and
// those of what it waits for its lane for. The best change to an operator is kept. Returns whether
// any was.
bool descend(const ModeTables& tables, OrderEvaluator* evaluator, const Window& window,
             SearchBudget* budget);

// Random changes to operators of the window on or beside the critical path, worse ones kept now and
// then, less and less so. Ends at the best solution that it came by.
void anneal(const ModeTables& tables, OrderEvaluator* evaluator, const Window& window,
            int64_t evaluations, uint64_t seed, SearchBudget* budget);

}  // namespace tandem
