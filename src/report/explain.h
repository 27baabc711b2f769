// Why a schedule is as it is, operator by operator.
#pragma once

#include <string>
#include <vector>

#include "report/timeline.h"
#include "schedule/scheduler.h"

namespace tandem {

struct ExplainedSlice {
  int lane = 0;
  Slice slice;
  double begin_us = 0;  // predicted, from the start of the run
  double end_us = 0;
};

struct ExplainedOperator {
  OperatorId op = kNone;
  std::vector<ExplainedSlice> slices;
  bool critical = false;         // one of its slices is on a critical path
  std::vector<double> alone_us;  // by lane: the whole operator there, with nothing else running
};

// In the order in which they start. Operators that are never launched are left out. problem.cost
// must be set.
std::vector<ExplainedOperator> explain(const Problem& problem, const Schedule& schedule,
                                       const Timeline& prediction);

// A table of it.
std::string explanation_text(const Problem& problem,
                             const std::vector<ExplainedOperator>& operators);

}  // namespace tandem
