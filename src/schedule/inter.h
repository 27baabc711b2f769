// `inter`: whole operators on lanes, by list scheduling.
#pragma once

#include "schedule/mode_scheduler.h"

namespace tandem {

// HEFT (Topcuoglu et al., 2002): operators by the longest way to the end, with mean times, each to
// the lane on which it ends first, into gaps where it fits.
class HeftScheduler : public ModeScheduler {
 public:
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
};

// PEFT (Arabnejad and Barbosa, 2014): each to the lane where its end, plus the most optimistic time
// from there to the end of the graph, is least.
class PeftScheduler : public ModeScheduler {
 public:
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
};

// The better of both.
class InterScheduler : public ModeScheduler {
 public:
  StatusOr<ModeSchedule> schedule(const ModeTables& tables, const SearchOptions& options,
                                  SearchReport* report) const override;
};

// The mean time from the start of each operator to the end of the graph, and the optimistic one by
// lane (OCT): what the two are ordered by.
std::vector<double> upward_ranks(const ModeTables& tables);
std::vector<std::vector<double>> optimistic_costs(const ModeTables& tables);

}  // namespace tandem
