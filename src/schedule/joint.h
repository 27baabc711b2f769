// `joint`: partition, lane and order decided together.
#pragma once

#include "schedule/mode_scheduler.h"

namespace tandem {

// Starts from every other strategy and from beam searches, puts together the best of them stage by
// stage, and improves stage after stage by local search. With contention, searches with parts as
// slow as they are on average while others run, and judges what it found by the evaluator. Never
// worse, as the evaluator says, than what it started from.
class JointScheduler : public ModeScheduler {
 public:
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
  // With one more start.
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  const std::vector<std::pair<std::string, ModeSchedule>>& starts,
                                  SearchReport* report) const;
};

}  // namespace tandem
