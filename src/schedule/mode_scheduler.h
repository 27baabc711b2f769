// Schedulers of mode problems, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/evaluator.h"

namespace tandem {

struct SearchOptions {
  // Where a search looks beside the greedy moves. The same seed and number of evaluations give the
  // same answer on every machine, unless `budget_ms` ends it.
  uint64_t seed = 1;
  int64_t evaluations = 0;  // at most; 0: what is worth it (worthwhile_evaluations())
  double budget_ms = 0;     // at most; 0: no limit
  // At most so many are worth it, where `evaluations` does not say how many; 0: no limit.
  int64_t most_worthwhile = 0;
};

// What `joint` does where nothing else is asked for, when it has found that makespan: by the number
// of operators, and by how far above the lower bound it is.
int64_t worthwhile_evaluations(const ModeTables& tables, double makespan_us);

// A stage of the search.
struct StageReport {
  int first = 0;  // operators, as places in the order that the stage was searched in
  int last = 0;   // one past
  int64_t tried = 0;
  int64_t kept = 0;
  double before_us = 0;  // makespan of the whole
  double after_us = 0;
};

// How a search went.
struct SearchReport {
  struct Start {
    std::string strategy;
    double makespan_us = 0;
  };
  std::vector<Start> starts;  // what it started from
  std::vector<StageReport> stages;
  int64_t tried = 0;  // moves
  int64_t kept = 0;
  int64_t evaluations = 0;
  double ms = 0;
};

class ModeScheduler {
 public:
  virtual ~ModeScheduler() = default;
  // The answer passes check_mode_schedule(). `report` may be null.
  virtual StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                          SearchReport* report) const = 0;
};

// `inter_heft`: whole operators, HEFT with insertion. `inter_lookahead`: PEFT. `inter`: the better
// of the two. `intra`: operators one after another, each in the mode in which it ends first, lanes
// joined after each. `chain`: the same with operators that follow each other without a crossing
// taken together. `joint`: everything decided together, from the best of those and of single lanes
// on. `exact`: branch and bound, for small problems (kResourceExhausted for others).
// Unknown name: kNotFound, listing the known ones.
StatusOr<std::unique_ptr<ModeScheduler>> make_mode_scheduler(std::string_view strategy);
std::vector<std::string_view> mode_scheduler_names();

// All operators whole on that lane, as far as they have such a mode: elsewhere, their first.
ModeSchedule single_lane_modes(const ModeTables& tables, int lane);

}  // namespace tandem
