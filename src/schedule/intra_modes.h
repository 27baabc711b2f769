// `intra` and `chain` on mode problems.
#pragma once

#include "schedule/mode_scheduler.h"

namespace tandem {

// Operators one after another, each in the mode in which it ends first; one that is divided ends
// when every lane can know of it.
class IntraModeScheduler : public ModeScheduler {
 public:
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
};

// The same, but runs of operators that each read only the one before may stay divided in the same
// way, where no part waits for another lane: lanes are joined after the last one only.
class ChainModeScheduler : public ModeScheduler {
 public:
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
};

}  // namespace tandem
